//! Builder: the parts of a client before it is made.

mod failover;
mod servers;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::api::client::{Client, Inner, Sinks};
use crate::api::setters::setters;
use crate::api::sources::{Source, Sources};
use crate::api::urls::{IntoServer, IntoUrls};
use crate::error::Error;
use crate::event::Sink;
use crate::options::{ClientOptions, Wait};

/// A builder of a [`Client`]: servers, the client's options, and defaults for its locks.
///
/// A time out of bounds and any other mistake is an error of [`ClientBuilder::build`].
///
/// ```
/// # use std::time::Duration;
/// use locktender::Client;
///
/// let client = Client::builder().url("memory://docs-builder").prefix("prod:").app("billing").ttl(Duration::from_secs(30)).build()?;
/// let hold = client.lock("orders:42").acquire_blocking()?; // the key is prod:orders:42
/// assert!(hold.owner().starts_with("app=billing "));
/// assert!(hold.remaining() > Duration::from_secs(20));
/// # Ok::<(), locktender::Error>(())
/// ```
pub struct ClientBuilder {
    sources: Vec<Source>,
    options: ClientOptions,
    sinks: Sinks,
    /// Whether a list without a URL was given: that is a mistake, and doesn't mean the environment's URLs.
    empty_list: bool,
}

impl ClientBuilder {
    pub(crate) fn new() -> Self {
        Self { sources: Vec::new(), options: ClientOptions::default(), sinks: Sinks::default(), empty_list: false }
    }

    /// Adds the server at `url`. More than one server is a quorum: independent servers, of which a majority decides.
    ///
    /// | URL | server |
    /// | --- | --- |
    /// | `redis://[user:password@]host[:6379][/database]` | one server; `rediss://…` with TLS |
    /// | `unix:///path[?db=2&user=…&pass=…]` | one server, by its unix socket |
    /// | `redis+sentinel://[user:password@]host[:26379][,host…]/service[/database]` | the primary that sentinels name; `rediss+sentinel://…` with TLS |
    /// | `redis+cluster://[user:password@]host[:6379][,host…]` | a cluster; `rediss+cluster://…` with TLS |
    /// | `memory://name` | locks within one process, without a server |
    ///
    /// `valkey` in the place of `redis` means the same.
    ///
    /// ```
    /// # use locktender::Client;
    /// let quorum = Client::builder().url("redis://a").url("redis://b").url("redis://c").build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.sources.push(Source::url(url.into()));
        self
    }

    /// Adds servers: one text with commas between several URLs, or a list of texts.
    ///
    /// ```
    /// # use locktender::Client;
    /// let quorum = Client::builder().urls(["redis://a", "redis://b", "redis://c"]).build()?;
    /// let the_same = Client::builder().urls("redis://a,redis://b,redis://c").build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn urls(mut self, urls: impl IntoUrls) -> Self {
        let urls = urls.into_urls();
        self.empty_list |= urls.is_empty();
        self.sources.extend(urls.into_iter().map(Source::url));
        self
    }

    /// Adds a server for tests (feature `testing`), or one of your own (feature `unstable-server`).
    ///
    /// ```
    /// # #[cfg(feature = "testing")] {
    /// # use std::sync::Arc;
    /// # use locktender::{Client, testing::MemoryServer};
    /// let apart = Arc::new(MemoryServer::new("docs-builder-server")); // no other client can reach it
    /// let client = Client::builder().server(apart).build()?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// # }
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn server(mut self, server: impl IntoServer) -> Self {
        self.sources.push(Source::Own(server.into_server()));
        self
    }

    /// Replaces all options, also those that were set before. [`ClientOptions`] has their defaults and bounds.
    ///
    /// ```
    /// # use locktender::{Client, ClientOptions};
    /// let mut options = ClientOptions::default();
    /// options.prefix = "prod:".into();
    /// options.lock.fair = true;
    /// let client = Client::builder().url("memory://docs-builder-options").options(options).build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[doc(hidden)]
    #[must_use]
    pub fn options(mut self, options: ClientOptions) -> Self {
        self.options = options;
        self
    }
}

setters! { ClientBuilder, configure:
    /// The prefix of every lock's key: the key is the prefix and the name. Default empty; at most 256 bytes of UTF-8, without NUL.
    ///
    /// ```
    /// # use locktender::Client;
    /// let staging = Client::builder().url("memory://docs-prefix").prefix("staging:").build()?;
    /// let prod = Client::builder().url("memory://docs-prefix").prefix("prod:").build()?;
    /// let one = staging.lock("nightly").acquire_blocking()?;
    /// let other = prod.lock("nightly").acquire_blocking()?; // another key
    /// # Ok::<(), locktender::Error>(())
    /// ```
    prefix(prefix: impl Into<String>) |options| options.prefix = prefix.into();

    /// The application's name, a part of each owner value. Default: the environment's `LOCKTENDER_APP`, else none; at most 256 bytes
    /// of UTF-8, without NUL.
    ///
    /// ```
    /// # use locktender::Client;
    /// let client = Client::builder().url("memory://docs-app").app("billing").build()?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// assert!(hold.owner().starts_with("app=billing host="));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    app(app: impl Into<String>) |options| options.app = Some(app.into());

    /// The longest that making a connection may take, TLS included. Default 1 s; from 1 ms to 366 days.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::Client;
    /// let client = Client::builder().url("redis://far.example").connect_timeout(Duration::from_secs(3)).build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    connect_timeout(span: Duration) |options| options.connect_timeout = span;

    /// The longest that a server's answer may take. Default 1 s, and 200 ms with more than one server; from 1 ms to 366 days.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::Client;
    /// let seconds = Duration::from_secs;
    /// let client = Client::builder()
    ///     .url("redis://far.example")
    ///     .connect_timeout(seconds(3))
    ///     .response_timeout(seconds(2))
    ///     .unavailable_after(seconds(20))
    ///     .build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    response_timeout(span: Duration) |options| options.response_timeout = Some(span);

    /// How long an operation keeps trying while too few servers can be reached, before it fails with `UNAVAILABLE`. Default 5 s;
    /// from 1 ms to 366 days.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::{Client, Code};
    /// let nobody = Client::builder().url("redis://127.0.0.1:1").unavailable_after(Duration::from_millis(50)).build()?;
    /// assert_eq!(nobody.lock("nightly").acquire_blocking().unwrap_err().code(), Code::Unavailable);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    unavailable_after(span: Duration) |options| options.unavailable_after = span;

    /// The longest that a hold may remain on a quorum, and so how long a server that is new or lost its data doesn't vote. Default
    /// 60 s; from 10 ms to 24 h. Without effect with one server.
    ///
    /// All clients of a quorum need the same value. A lock's [`ttl`](crate::Lock::ttl) is at most this.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::Client;
    /// let servers = ["memory://docs-max-ttl-1", "memory://docs-max-ttl-2", "memory://docs-max-ttl-3"];
    /// let client = Client::builder().urls(servers).max_ttl(Duration::from_millis(200)).ttl(Duration::from_millis(200)).build()?;
    /// let hold = client.lock("nightly").acquire_blocking()?; // granted once new servers vote: after max_ttl
    /// # Ok::<(), locktender::Error>(())
    /// ```
    max_ttl(span: Duration) |options| options.max_ttl = span;

    /// Whether the events `acquired`, `extended`, `released` and `handed_over` have the level info instead of debug. Default false.
    ///
    /// ```
    /// # use locktender::{Client, Level, LockEvent};
    /// let check = |event: &LockEvent| assert!(event.level == Level::Info || event.kind.as_str() == "round");
    /// let client = Client::builder().url("memory://docs-log-holds").log_holds(true).sink(std::sync::Arc::new(check)).build()?;
    /// client.lock("nightly").acquire_blocking()?.release_blocking()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    log_holds(log: bool) |options| options.log_holds = log;

    /// Whether holds are noted in the [history](Client::history) of a single server or of a cluster, and read there when a release finds
    /// no holder. Default true.
    ///
    /// ```
    /// let client = locktender::Client::builder().url("memory://docs-no-history").history(false).build()?;
    /// assert!(client.history(None, None).blocking()?.is_empty());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    history(notes: bool) |options| options.history = notes;

    /// Whether operations do their I/O on the tokio runtime in which they are called. Otherwise, and outside of any runtime, this crate's own
    /// thread does it, for some more time per operation.
    ///
    /// Default true: a runtime that was built without timers or I/O is noticed at its first operation, and left alone. tokio panics where
    /// it is tried, which is caught here. In a program built with `panic = "abort"` a panic can't be caught. There the default is false:
    /// say true if every runtime that calls has timers and I/O.
    ///
    /// ```
    /// # use locktender::Client;
    /// let client = Client::builder().url("memory://docs-callers-runtime").callers_runtime(false).build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    callers_runtime(used: bool) |options| options.callers_runtime = used;

    /// The ttl of locks without one of their own: how long a key lives without a renewal. Default 10 s; see
    /// [`Lock::ttl`](crate::Lock::ttl).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::Client;
    /// let client = Client::builder().url("memory://docs-builder-ttl").ttl(Duration::from_secs(30)).build()?;
    /// assert!(client.lock("nightly").acquire_blocking()?.remaining() > Duration::from_secs(20));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ttl(ttl: Duration) |options| options.lock.ttl = ttl;

    /// The wait of locks without one of their own: how long an acquire waits. By default it waits without end; see [`Lock::wait`](crate::Lock::wait).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::{Client, Code};
    /// let client = Client::builder()
    ///     .url("memory://docs-defaults")
    ///     .wait(Duration::ZERO)
    ///     .renew(false)
    ///     .max_hold(Duration::from_secs(60))
    ///     .fair(true)
    ///     .build()?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// assert_eq!(client.lock("nightly").acquire_blocking().unwrap_err().code(), Code::AcquireTimeout);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    wait(wait: impl Into<Wait>) |options| options.lock.wait = wait.into();

    /// Whether holds of locks that don't say it are renewed in the background. Default true; see
    /// [`Lock::renew`](crate::Lock::renew).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::Client;
    /// let client = Client::builder().url("memory://docs-builder-renew").renew(false).build()?;
    /// let hold = client.lock("nightly").ttl(Duration::from_millis(20)).acquire_blocking()?;
    /// assert_eq!(hold.lost_blocking(Duration::from_secs(9))?.expect("nothing renews it").reason.as_str(), "expired");
    /// # Ok::<(), locktender::Error>(())
    /// ```
    renew(renew: bool) |options| options.lock.renew = renew;

    /// The bound of locks without one of their own: the longest a hold lasts. Default none; see
    /// [`Lock::max_hold`](crate::Lock::max_hold).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::Client;
    /// let client = Client::builder().url("memory://docs-builder-max-hold").max_hold(Duration::from_millis(20)).build()?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// assert_eq!(hold.lost_blocking(Duration::from_secs(9))?.expect("it is lost after 20 ms").reason.as_str(), "max_hold");
    /// # Ok::<(), locktender::Error>(())
    /// ```
    max_hold(span: impl Into<Option<Duration>>) |options| options.lock.max_hold = span.into();

    /// Whether locks that don't say it are strictly first come, first served. Default false; see [`Lock::fair`](crate::Lock::fair).
    ///
    /// ```
    /// # use locktender::Client;
    /// let client = Client::builder().url("memory://docs-builder-fair").fair(true).build()?;
    /// assert!(client.lock("tickets").validate()?.fair);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    fair(fair: bool) |options| options.lock.fair = fair;
}

impl ClientBuilder {
    /// Changes the options by a function, and keeps the others.
    ///
    /// ```
    /// # use locktender::Client;
    /// let client = Client::builder().url("memory://docs-configure").configure(|options| options.log_holds = true).build()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[doc(hidden)]
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut ClientOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Sends the client's events to `sink`, besides `tracing`. The sink may be a function. The last one that was set counts.
    ///
    /// ```
    /// # use std::sync::{Arc, mpsc};
    /// # use locktender::{Client, LockEvent, EventKind};
    /// let (sender, events) = mpsc::channel();
    /// let sink = Arc::new(move |event: &LockEvent| drop(sender.send(event.kind)));
    /// let client = Client::builder().url("memory://docs-sink").sink(sink).build()?;
    /// client.lock("nightly").acquire_blocking()?;
    /// assert!(events.iter().any(|kind| kind == EventKind::Acquired));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn sink(mut self, sink: Arc<dyn Sink>) -> Self {
        self.sinks.sink = Some(sink);
        self
    }

    /// The number of events that a listener behind the sink never got. The sink counts them, and [`Client::metrics`] shows them.
    #[doc(hidden)]
    #[must_use]
    pub fn dropped_events(mut self, dropped: Arc<AtomicU64>) -> Self {
        self.sinks.dropped = dropped;
        self
    }

    /// Makes the client. No I/O, but for TLS files.
    ///
    /// Without a server it is a client of the servers that `LOCKTENDER_URL` names. If that isn't set yet, it is read again when a
    /// server is first needed: a client may be made before the environment is complete. Without any server the first operation
    /// fails.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::{Client, Code};
    /// let refused = Client::builder().url("redis://localhost").ttl(Duration::ZERO).build().unwrap_err();
    /// assert_eq!((refused.code(), refused.argument()), (Code::InvalidArgument, Some("ttl")));
    /// ```
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: a URL is malformed or listed twice, a list of URLs is empty, a TLS file can't be used, or an option is out
    /// of its bounds.
    pub fn build(self) -> Result<Client, Error> {
        if self.empty_list {
            return Err(Error::invalid("url", "[]", "the list of servers is empty"));
        }
        self.options.check()?;
        let sources = Sources::of(self.sources, &self.options)?;
        Ok(Client::of(Inner::new(sources, self.options, self.sinks)))
    }
}
