//! Client: the servers that keep the locks, and the defaults of the locks.

mod blocking;
mod history;
mod inner;
mod kinds;
mod locks;
mod marker;
mod open;

use std::fmt;
use std::sync::Arc;

pub use self::history::Grant;
pub(crate) use self::inner::{Inner, Sinks};
pub use self::locks::HoldInfo;
pub use self::marker::Markers;
use crate::api::election::Election;
use crate::api::hold::Hold;
use crate::api::job::Job;
use crate::api::lock::Lock;
use crate::api::sources::Source;
use crate::clock::Now;
use crate::error::Error;
use crate::event::{EventKind, LockEvent};
use crate::io::call::Call;
use crate::metrics::Metrics;
use crate::name::{self, Keys, Kind};
use crate::op::{Adoption, Answer, Op};
use crate::options::{ClientOptions, LockOverrides, milliseconds};
use crate::owner::Fields;
use crate::protocol::{ClientTerms, Reports, ServerReport, trusted};
use crate::session::ask_all::AskAll;
use crate::wording::Text;

/// A client of one lock server, or of a quorum: several independent servers, of which a majority decides.
///
/// It is cheap to clone, and clones share everything. Making one does no I/O: the first operation connects. A forked child makes
/// connections of its own with its first operation.
///
/// ```
/// use locktender::Client;
///
/// let client = Client::open("memory://docs-client")?;
/// let hold = client.lock("orders:42").acquire_blocking()?;
/// # Ok::<(), locktender::Error>(())
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

impl Client {
    /// The lock `name`, with the client's options. No I/O.
    ///
    /// A name has 1 to 1,024 bytes of UTF-8, without NUL, and at most one `{tag}`; [`safe_name`](crate::safe_name) makes one of any
    /// text. A name that can't be a lock's is an error of each operation.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-client-lock")?;
    /// let orders = client.lock("orders:42");
    /// let hold = orders.acquire_blocking()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn lock(&self, name: impl Into<String>) -> Lock {
        Lock::new(Arc::clone(&self.0), name.into(), None)
    }

    /// The job `name`, with the client's options: work that must be done once, by one of any number of workers. No I/O.
    ///
    /// Its name is that of a lock: while an attempt runs, [`Client::lock`] of the same name is held.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-client-job")?;
    /// let outcome = client.job("mail:2026-11-21").run_blocking(|_| Ok::<_, String>("\"sent\""))?;
    /// assert!(outcome.ran);
    /// # Ok::<(), locktender::RunError<String>>(())
    /// ```
    pub fn job(&self, name: impl Into<String>) -> Job {
        Job::new(self.lock(name))
    }

    /// The job `name` of a schedule, with the client's options: work that must run once per scheduled time, however many replicas a
    /// cron line or a timer starts it in. No I/O.
    ///
    /// It is a [`Job`] that begins again with each later scheduled time, which [`at`](Job::at) or [`every`](Job::every) must give,
    /// and never again for one that has begun. It has one attempt: a run that fails or dies is not repeated, unless
    /// [`max_attempts`](Job::max_attempts) allows more. Its outcome says the [reason](crate::JobOutcome::reason) why nothing ran,
    /// which is no error.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-client-cron-job")?;
    /// // In each replica, at 02:00 by its own clock:
    /// let hour = std::time::Duration::from_secs(3600);
    /// let outcome = client.cron_job("nightly").every(hour).run_blocking(|_| Ok::<_, String>("\"tidied\""))?;
    /// assert!(outcome.ran);
    /// # Ok::<(), locktender::RunError<String>>(())
    /// ```
    pub fn cron_job(&self, name: impl Into<String>) -> Job {
        Job::cron_job(self.lock(name))
    }

    /// The election `name`, with the client's options: one leader of any number of candidates. No I/O.
    ///
    /// Its name is that of a lock: while there is a leader, [`Client::lock`] of the same name is held.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-client-election")?;
    /// let leadership = client.election("scheduler").campaign_blocking()?;
    /// assert!(leadership.is_valid());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn election(&self, name: impl Into<String>) -> Election {
        Election::new(self.lock(name))
    }

    /// Takes a lock over from another process, by the ticket that its [`Hold::hand_over`] gave.
    ///
    /// The hold is a new one, with another owner and a larger fence. The lock was never free in between.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-adopt").unwrap();
    /// let ticket = client.lock("report").acquire().await?.hand_over()?; // in one process
    /// let hold = client.adopt(&ticket).await?; // in another
    /// hold.release().await?;
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`]. The ticket may be used up.
    ///
    /// # Errors
    /// * `LOCK_LOST`, with the reason [`Ended`](crate::LossReason::Ended): that hold has ended, or was adopted before. An attempt of
    ///   this call that lost its answer may have adopted it. See [`Lock::or_acquire`].
    /// * `INVALID_ARGUMENT`: no `hand_over` gave that string, or its lock has another key here, because the prefix differs.
    /// * Otherwise as [`Lock::acquire`].
    pub fn adopt(&self, ticket: &str) -> Call<Hold> {
        self.adoption(ticket).map_or_else(Call::refused, |lock| lock.acquire())
    }

    /// The lock that [`Client::adopt`] acquires, to set options on it. Its ttl, its grace and what is left of its
    /// `min_hold` are those of the hold that was handed over. No I/O.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-adoption")?;
    /// let ticket = client.lock("report").acquire_blocking()?.hand_over()?;
    /// let hold = client.adoption(&ticket)?.max_hold(Duration::from_secs(3600)).acquire_blocking()?;
    /// assert_eq!(hold.name(), "report");
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` as [`Client::adopt`].
    pub fn adoption(&self, ticket: &str) -> Result<Lock, Error> {
        let fields = Fields::parse(ticket);
        let refuse = || Error::invalid("ticket", ticket, Text::new("is no text that {hand_over}() gave", []));
        fields.get("locktender").filter(|version| version == "1").ok_or_else(refuse)?;
        let (name, owner) = fields.get("name").zip(fields.get("owner")).ok_or_else(refuse)?;
        let (theirs, ours) = (fields.get("key").ok_or_else(refuse)?, format!("{}{name}", self.0.options.prefix));
        if theirs != ours {
            let why = format!("it is about the key {theirs:?}, and this client, by its prefix, would take {ours:?} instead");
            return Err(Error::invalid("ticket", ticket, why));
        }
        // What is left out is none.
        let span = |field: &str| match fields.get(field).map(|span| span.parse().map(|span| milliseconds(field, span))) {
            None => Ok(None),
            Some(Ok(Ok(span))) => Ok(Some(span)),
            Some(_) => Err(refuse()),
        };
        let settings = LockOverrides {
            ttl: Some(span("ttl")?.ok_or_else(refuse)?),
            min_hold: span("min_hold")?,
            grace: span("grace")?,
            ..LockOverrides::default()
        };
        let adopt = Adoption { owner: owner.into(), or_acquire: false, beside: false };
        let lock = Lock::new(Arc::clone(&self.0), name, Some(adopt)).settings(settings);
        match fields.get("kind").as_deref() {
            None => Ok(lock),
            Some("read") => Ok(lock.of_kind(Kind::Read)),
            Some(_) => Err(refuse()),
        }
    }

    /// Marks the servers of a quorum as trusted, so that they vote at once instead of after
    /// [`max_ttl`](crate::ClientBuilder::max_ttl). Does nothing with one server.
    ///
    /// Call it only for new servers, and only while no lock of this quorum may be held anywhere. A server that lost its data doesn't
    /// vote for `max_ttl` because it may have forgotten a hold; this call ends that protection.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let urls = ["memory://docs-new-1", "memory://docs-new-2", "memory://docs-new-3"];
    /// let client = locktender::Client::open(urls)?;
    /// client.initialize_quorum().await?; // these servers are new, and nobody holds a lock on them
    /// let hold = client.lock("nightly").acquire().await?; // without it: after max_ttl, a minute
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Once started it continues.
    ///
    /// # Errors
    /// * `UNAVAILABLE`: a server doesn't answer. Those that did are trusted.
    /// * `INVALID_ARGUMENT`: a server belongs to a quorum of another size or `max_ttl`.
    /// * `CLOSED`: the client is closed.
    pub fn initialize_quorum(&self) -> Call<()> {
        if let Err(error) = self.0.sources() {
            return Call::refused(error);
        }
        let Some(quorum_config) = self.0.quorum_config() else { return Call::started(|responder| responder.respond(Ok(()))) };
        self.ask_servers(vec![Op::Trust { quorum_config }], move |servers| {
            move |answers: &[_]| trusted(&servers, answers, quorum_config)
        })
    }

    /// Reports what each server guarantees: version, role, persistence, eviction, clock, the rights of this client's user, and
    /// warnings for a person to read.
    ///
    /// A server that doesn't answer has an error in its report. The rights are tried on a key that no lock has,
    /// `<prefix>:~lt:probe`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-report").unwrap();
    /// for report in client.check_servers().await? {
    ///     println!("{}: {:?}", report.server, report.warnings);
    /// }
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call changes nothing.
    ///
    /// # Errors
    /// `CLOSED`; `INVALID_ARGUMENT` if no server is named.
    pub fn check_servers(&self) -> Call<Vec<ServerReport>> {
        let quorum_config = self.0.quorum_config();
        let kind = if quorum_config.is_some_and(|config| config.servers > 1) { Kind::Quorum } else { Kind::Job };
        let keys = Arc::new(Keys::of_no_lock(kind, &self.0.options.prefix, quorum_config.is_none()));
        let ClientOptions { min_replicas, lock, prefix, .. } = &*self.0.options;
        let (quarantine, has_one_slot) = (self.0.quorum_config().is_some(), name::has_tag(prefix));
        let terms = ClientTerms { ttl: lock.ttl, quarantine, replicas: *min_replicas, has_one_slot };
        let mut ops = vec![Op::Examine, Op::Probe { keys }];
        if terms.replicas > 0 {
            // No replica is waited for: the answer says whether the command is permitted.
            ops.push(Op::AwaitReplicas { replicas: 0, timeout_ms: 1 });
        }
        self.ask_servers(ops, move |servers| {
            let reports = Reports::of(servers, terms);
            move |answers: &[_]| reports.take(answers, Now::read()).map(Ok)
        })
    }

    /// Asks every server all of `ops`. No caller waits for a lock here: a server may take its time to connect.
    fn ask_servers<T: Send + 'static, J>(&self, ops: Vec<Op>, assess: impl FnOnce(Arc<[String]>) -> J + Send + 'static) -> Call<T>
    where
        J: Fn(&[Option<Answer>]) -> Option<Result<T, Error>> + Send + Sync + 'static,
    {
        let client = self.clone();
        Call::new(move |responder| {
            let (session, responder) = responder.unless_failed(client.0.session(None))?;
            let timeout = session.options.connect_timeout + session.response_timeout();
            AskAll::begin(&session, &ops, timeout, assess(Arc::clone(&session.addresses)), responder);
            None
        })
    }

    /// Closes the client and all its clones. Takes about a response timeout at most.
    ///
    /// Acquires under way fail with `CLOSED`. Held locks are lost, with the reason [`Closed`](crate::LossReason::Closed), and
    /// released. Then the connections are closed. Closing twice does nothing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use locktender::{Client, Code};
    /// # let client = Client::open("memory://docs-client-close").unwrap();
    /// client.close().await?;
    /// assert_eq!(client.lock("nightly").acquire().await.unwrap_err().code(), Code::Closed);
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Once started it continues.
    ///
    /// # Errors
    /// None but `INTERNAL`.
    pub fn close(&self) -> Call<()> {
        let inner = Arc::clone(&self.0);
        Call::started(move |responder| inner.close(move || responder.respond(Ok(()))))
    }

    /// Whether [`Client::close`] was called, on this client or a clone.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-is-closed")?;
    /// let clone = client.clone();
    /// client.close_blocking()?;
    /// assert!(clone.is_closed());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// The client's metrics at this moment: what is held and waited for, and how often and how long it was since the client was made.
    ///
    /// They are always counted. Reading them costs no I/O, and some microseconds for each category of locks that the client has
    /// used. In a forked process they begin at zero. `docs/observability.md` has their table.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-client-metrics")?;
    /// client.lock("orders:42").acquire_blocking()?.release_blocking()?;
    /// let metrics = client.metrics();
    /// assert_eq!(metrics.value("locktender_acquires_total", &[("category", "orders"), ("end", "acquired")]), 1.0);
    /// assert_eq!(metrics.value("locktender_held", &[]), 0.0);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.0.metrics()
    }

    /// Emits an event of kind `warning`, about something that a binding has seen and a person should look at.
    #[doc(hidden)]
    pub fn warn(&self, lock: Option<&str>, message: String) {
        let lock_name = lock.map(Into::into);
        self.0.emitter.emit(&LockEvent { lock_name, message: Some(message), ..LockEvent::new(EventKind::Warning) });
    }

    /// The client's options, with the defaults for its locks in [`lock`](ClientOptions::lock).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-client-options")?;
    /// assert_eq!(client.options().unavailable_after, Duration::from_secs(5));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[doc(hidden)]
    #[must_use]
    pub fn options(&self) -> &ClientOptions {
        &self.0.options
    }

    #[cfg(test)]
    pub(crate) fn session(&self) -> Result<Arc<crate::session::Session>, Error> {
        self.0.session(None)
    }

    pub(crate) fn of(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }
}

/// What a binding shows of a client.
#[doc(hidden)]
impl Client {
    /// The addresses of the servers, without credentials. None as long as no server is named.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        self.0.sources().map(|sources| sources.iter().map(Source::address).collect()).unwrap_or_default()
    }

    /// The prefix of the keys.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.0.options.prefix
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (servers, prefix) = (self.addresses(), self.prefix());
        f.debug_struct("Client").field("servers", &servers).field("prefix", &prefix).field("closed", &self.is_closed()).finish()
    }
}
