//! The builder: what a client is put together from.

use std::sync::Arc;
use std::time::Duration;

use crate::api::client::{Client, Inner};
use crate::api::sources::{Source, Sources};
use crate::api::urls::IntoUrls;
use crate::error::Error;
use crate::event::Sink;
use crate::options::{ClientOptions, Wait};
use crate::server::Server;

/// Puts a [`Client`] together: servers, the client's options, and defaults for its locks.
///
/// ```
/// # use std::time::Duration;
/// use locktender::Client;
///
/// let client = Client::builder().url("memory://docs-builder").prefix("prod:").app("billing").ttl(Duration::from_secs(30)).build()?;
/// let held = client.lock("orders:42").acquire_blocking()?; // the key is prod:orders:42
/// assert!(held.owner().starts_with("app=billing "));
/// assert!(held.remaining() > Duration::from_secs(20));
/// # Ok::<(), locktender::Error>(())
/// ```
#[must_use]
pub struct ClientBuilder {
    sources: Vec<Source>,
    options: ClientOptions,
    sink: Option<Arc<dyn Sink>>,
    /// A list without a URL in it was given: a mistake, not a wish for the environment's.
    empty_list: bool,
}

impl ClientBuilder {
    pub(crate) fn new() -> Self {
        Self { sources: Vec::new(), options: ClientOptions::default(), sink: None, empty_list: false }
    }

    /// Adds the server at `url`.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.sources.push(Source::url(url.into()));
        self
    }

    /// Adds servers: one text, with commas between several URLs, or a list of texts. More than one server is a quorum.
    pub fn urls(mut self, urls: impl IntoUrls) -> Self {
        let urls = urls.into_urls();
        self.empty_list |= urls.is_empty();
        self.sources.extend(urls.into_iter().map(Source::url));
        self
    }

    /// Adds a server of your own, or a scripted one.
    pub fn server(mut self, server: Arc<dyn Server>) -> Self {
        self.sources.push(Source::Own(server));
        self
    }

    /// Sets the options.
    pub fn options(mut self, options: ClientOptions) -> Self {
        self.options = options;
        self
    }

    /// What stands before every lock's name. Default empty.
    ///
    /// ```
    /// # use locktender::Client;
    /// let staging = Client::builder().url("memory://docs-prefix").prefix("staging:").build()?;
    /// let prod = Client::builder().url("memory://docs-prefix").prefix("prod:").build()?;
    /// let one = staging.lock("nightly").acquire_blocking()?;
    /// let other = prod.lock("nightly").acquire_blocking()?; // another key
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.options.prefix = prefix.into();
        self
    }

    /// The application, shown in owner values. Default: the environment's `LOCKTENDER_APP`, else none.
    ///
    /// ```
    /// # use locktender::Client;
    /// let client = Client::builder().url("memory://docs-app").app("billing").build()?;
    /// let held = client.lock("nightly").acquire_blocking()?;
    /// assert!(held.owner().starts_with("app=billing host="));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn app(mut self, app: impl Into<String>) -> Self {
        self.options.app = Some(app.into());
        self
    }

    /// How long a connection may take. Default 1 s.
    pub fn connect_timeout(mut self, span: Duration) -> Self {
        self.options.connect_timeout = span;
        self
    }

    /// How long an answer may take. Default 1 s; 200 ms with more than one server.
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
    pub fn response_timeout(mut self, span: Duration) -> Self {
        self.options.response_timeout = Some(span);
        self
    }

    /// How long an operation keeps trying while too few servers can be reached. Default 5 s.
    pub fn unavailable_after(mut self, span: Duration) -> Self {
        self.options.unavailable_after = span;
        self
    }

    /// On a quorum, the longest a hold may remain: how long a server that lost its data must not vote. Default 60 s.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::Client;
    /// let servers = ["memory://docs-max-ttl-1", "memory://docs-max-ttl-2", "memory://docs-max-ttl-3"];
    /// let client = Client::builder().urls(servers).max_ttl(Duration::from_millis(200)).ttl(Duration::from_millis(200)).build()?;
    /// let held = client.lock("nightly").acquire_blocking()?; // granted once new servers vote: after max_ttl
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn max_ttl(mut self, span: Duration) -> Self {
        self.options.max_ttl = span;
        self
    }

    /// A PEM file with the authorities to trust instead of the system's, for `rediss://`.
    ///
    /// ```
    /// # use locktender::Client;
    /// let no_file = Client::builder().url("rediss://db.example").tls_ca("/none/ca.pem").build();
    /// assert!(no_file.unwrap_err().to_string().starts_with("tls_ca: "));
    /// ```
    pub fn tls_ca(mut self, file: impl Into<String>) -> Self {
        self.options.tls_ca = Some(file.into());
        self
    }

    /// A PEM file with the client's certificate; it needs [`ClientBuilder::tls_key`].
    pub fn tls_cert(mut self, file: impl Into<String>) -> Self {
        self.options.tls_cert = Some(file.into());
        self
    }

    /// A PEM file with the key of the client's certificate.
    pub fn tls_key(mut self, file: impl Into<String>) -> Self {
        self.options.tls_key = Some(file.into());
        self
    }

    /// Whether the events `acquired`, `extended`, `released` and `handed_over` are at level info instead of debug. Default false.
    ///
    /// ```
    /// # use locktender::{Client, Event};
    /// # use locktender::event::Level;
    /// let told = |event: &Event| assert!(event.level == Level::Info || event.kind.as_str() == "attempt");
    /// let client = Client::builder().url("memory://docs-log-holds").log_holds(true).sink(std::sync::Arc::new(told)).build()?;
    /// client.lock("nightly").acquire_blocking()?.release_blocking()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn log_holds(mut self, log: bool) -> Self {
        self.options.log_holds = log;
        self
    }

    /// The locks' default for how long a key lives without a renewal: 10 s unless set. See [`Lock::ttl`](crate::Lock::ttl).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.options.lock.ttl = ttl;
        self
    }

    /// The locks' default for how long an acquire waits: for ever unless set. See [`Lock::wait`](crate::Lock::wait).
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
    /// let held = client.lock("nightly").acquire_blocking()?;
    /// assert_eq!(client.lock("nightly").acquire_blocking().unwrap_err().code(), Code::AcquireTimeout);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn wait(mut self, wait: impl Into<Wait>) -> Self {
        self.options.lock.wait = wait.into();
        self
    }

    /// The locks' default for whether holds are renewed in the background: true unless set.
    pub fn renew(mut self, renew: bool) -> Self {
        self.options.lock.renew = renew;
        self
    }

    /// The locks' default for the longest a hold lasts: no bound unless set. See [`Lock::max_hold`](crate::Lock::max_hold).
    pub fn max_hold(mut self, span: impl Into<Option<Duration>>) -> Self {
        self.options.lock.max_hold = span.into();
        self
    }

    /// The locks' default for queueing by principle: false unless set. See [`Lock::fair`](crate::Lock::fair).
    pub fn fair(mut self, fair: bool) -> Self {
        self.options.lock.fair = fair;
        self
    }

    /// Changes the options in place.
    pub fn configure(mut self, change: impl FnOnce(&mut ClientOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Sends the client's events to `sink`, besides `tracing`.
    pub fn sink(mut self, sink: Arc<dyn Sink>) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Makes the client. No I/O. Without any server it is one of what `LOCKTENDER_URL` names: now, or if that isn't set yet, when it is
    /// first needed, so that a client may be made before the environment is complete.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a URL that is malformed or listed twice, and for bad options. That no server is named is told by the first
    /// operation.
    pub fn build(self) -> Result<Client, Error> {
        if self.empty_list {
            return Err(Error::invalid("url", "[]", "the list of servers is empty"));
        }
        self.options.check()?;
        let sources = Sources::of(self.sources, &self.options)?;
        Ok(Client::of(Inner::new(sources, self.options, self.sink)))
    }
}
