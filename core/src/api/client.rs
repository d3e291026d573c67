//! A client: the connection to one server or to a quorum, plus defaults.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;

use crate::api::builder::ClientBuilder;
use crate::api::call::Call;
use crate::api::held::Held;
use crate::api::lock::Lock;
use crate::api::sources::{Source, Sources, memory_name};
use crate::api::urls::IntoUrls;
use crate::clock::{Now, millis};
use crate::error::Error;
use crate::event::emitter::Emitter;
use crate::event::{Event, EventKind, Sink};
use crate::io::reactor::LazyReactor;
use crate::io::runtime::Runtime;
use crate::name::Keys;
use crate::op::{Adoption, Answer, Op, QuorumConfig};
use crate::options::{ClientOptions, milliseconds};
use crate::owner::Fields;
use crate::protocol::{Reports, ServerReport, trusted};
use crate::server::Server;
use crate::server::memory::MemoryServer;
use crate::server::own::OwnServer;
use crate::server::redis::{self, RedisServer, ServerState};
use crate::session::Session;
use crate::session::ask_all::AskAll;
use crate::wording::Text;

/// The connection to one lock server or to a quorum of independent ones. Cheap to clone; clones share everything.
///
/// Lazy: nothing is connected before the first operation. After a fork the child's operations connect anew.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

pub(crate) struct Inner {
    sources: Sources,
    options: Arc<ClientOptions>,
    emitter: Emitter,
    session: ArcSwapOption<Session>,
    closed: AtomicBool,
}

impl Client {
    /// A client of the server at a URL, or of the quorum of several, with default options. Several are a list, or one text
    /// with commas between them.
    ///
    /// ```
    /// use locktender::Client;
    /// let one = Client::open("redis://localhost")?;
    /// let quorum = Client::open(["redis://a", "redis://b", "redis://c"])?;
    /// let the_same = Client::open("redis://a,redis://b,redis://c")?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a URL that is malformed or of an unknown scheme, and for an empty list.
    pub fn open(urls: impl IntoUrls) -> Result<Self, Error> {
        Self::builder().urls(urls).build()
    }

    /// A client of what `LOCKTENDER_URL` names.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is not set, or as [`Client::open`].
    pub fn from_env() -> Result<Self, Error> {
        let client = Self::builder().build()?;
        client.0.sources()?;
        Ok(client)
    }

    /// A client by parts.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    /// The lock `name`. No I/O.
    pub fn lock(&self, name: impl Into<String>) -> Lock {
        Lock::new(self.clone(), name.into(), None)
    }

    /// Takes a lock over from another process, by the string its `hand_over` gave. The hold is a new one: new owner, larger fence.
    ///
    /// # Errors
    /// `LOCK_LOST`, with the reason [`LossReason::Ended`](crate::LossReason::Ended), if that hold has ended or was adopted before, also
    /// by an attempt of this call that lost its answer; see [`Lock::or_acquire`]. `INVALID_ARGUMENT` if the string is none of
    /// `hand_over`, or of a lock that has another key here, because the prefix differs; otherwise as [`Lock::acquire`].
    pub fn adopt(&self, ticket: &str) -> Call<Held> {
        match self.adoption(ticket) {
            Ok(lock) => lock.acquire(),
            Err(error) => Call::ready(Err(error)),
        }
    }

    /// [`Client::adopt`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-adopt-blocking")?;
    /// let held = client.lock("report").acquire_blocking()?;
    /// let text = held.hand_over()?; // send it to another process
    /// let mine = client.adopt_blocking(&text)?;
    /// assert!(mine.fence() > held.fence());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Client::adopt`].
    pub fn adopt_blocking(&self, ticket: &str) -> Result<Held, Error> {
        self.adopt(ticket).wait()
    }

    /// The lock that [`Client::adopt`] acquires, to set options on it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the string is none of `hand_over`, or of a lock that has another key here, because the prefix differs.
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
        let ttl = fields.get("ttl").and_then(|ttl| ttl.parse().ok()).ok_or_else(refuse)?;
        let ttl = milliseconds("ttl", ttl).map_err(|_| refuse())?;
        let adopt = Adoption { owner: owner.into(), or_acquire: false };
        Ok(Lock::new(self.clone(), name, Some(adopt)).ttl(ttl))
    }

    /// Marks the servers of a quorum as trusted, so that they vote at once instead of after `max_ttl`.
    ///
    /// Only for servers that are new, and only while no lock of this quorum may be held anywhere: a server that lost its data
    /// is kept from voting exactly because it may have forgotten a hold. Does nothing with one server.
    ///
    /// # Errors
    /// `UNAVAILABLE` if a server doesn't answer (those that did are trusted), `INVALID_ARGUMENT` if one belongs to a quorum
    /// of another size or `max_ttl`, `CLOSED`.
    pub fn initialize_quorum(&self) -> Call<()> {
        if let Err(error) = self.0.sources() {
            return Call::ready(Err(error));
        }
        let Some(quorum_config) = self.quorum_config() else { return Call::ready(Ok(())) };
        self.inquire(vec![Op::Trust { quorum_config }], move |servers| {
            move |answers: &[_]| trusted(&servers, answers, quorum_config)
        })
    }

    /// [`Client::initialize_quorum`], blocking this thread.
    ///
    /// ```
    /// # let urls = ["memory://docs-new-1", "memory://docs-new-2", "memory://docs-new-3"];
    /// let client = locktender::Client::open(urls)?;
    /// client.initialize_quorum_blocking()?; // these servers are new, and nobody holds a lock on them
    /// let held = client.lock("nightly").acquire_blocking()?; // without it: after max_ttl, a minute
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Client::initialize_quorum`].
    pub fn initialize_quorum_blocking(&self) -> Result<(), Error> {
        self.initialize_quorum().wait()
    }

    /// What each server really guarantees: version, role, persistence, eviction, clock, the rights of this client's user, and
    /// what is worth a warning. A server that doesn't answer has an error in its report.
    ///
    /// The rights are tried on a key that no lock has, `<prefix>:~lt:probe`.
    ///
    /// # Errors
    /// `CLOSED`.
    pub fn report(&self) -> Call<Vec<ServerReport>> {
        let keys = Arc::new(Keys::of_no_lock(&self.0.options.prefix, self.quorum_config().is_none()));
        self.inquire(vec![Op::Examine, Op::Probe { keys }], |servers| {
            let reports = Reports::of(servers);
            move |answers: &[_]| reports.take(answers, Now::read()).map(Ok)
        })
    }

    /// [`Client::report`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-check")?;
    /// for report in client.report_blocking()? {
    ///     println!("{}: {:?}", report.server, report.warnings);
    /// }
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Client::report`].
    pub fn report_blocking(&self) -> Result<Vec<ServerReport>, Error> {
        self.report().wait()
    }

    /// Asks every server all of `ops`. Nobody waits for a lock here: a server may take its time to connect.
    fn inquire<T: Send + 'static, J>(&self, ops: Vec<Op>, judge: impl FnOnce(Arc<[String]>) -> J + Send + 'static) -> Call<T>
    where
        J: Fn(&[Option<Answer>]) -> Option<Result<T, Error>> + Send + Sync + 'static,
    {
        let client = self.clone();
        Call::new(move |responder| {
            match client.session(None) {
                Ok(session) => {
                    let timeout = session.options.connect_timeout + session.response_timeout();
                    AskAll::begin(&session, &ops, timeout, judge(Arc::clone(&session.addresses)), responder);
                }
                Err(error) => responder.respond(Err(error)),
            }
            None
        })
    }

    /// Closes the client: acquires under way fail with `CLOSED`, held locks are lost (reason `closed`) and released, then
    /// connections are let go. Takes at most a response timeout or so. Closing twice does nothing.
    ///
    /// # Cancel safety
    /// Once started it goes on.
    pub fn close(&self) -> Call<()> {
        let inner = Arc::clone(&self.0);
        Call::new(move |responder| {
            let first = !inner.closed.swap(true, Ordering::SeqCst);
            let session = inner.session.load_full().filter(|session| !session.is_inherited());
            match session {
                Some(session) if first => {
                    let runtime = session.runtime().handle().clone();
                    runtime.spawn(async move {
                        session.close().await;
                        responder.respond(Ok(()));
                    });
                }
                _ => responder.respond(Ok(())),
            }
            None
        })
    }

    /// [`Client::close`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-close")?;
    /// let held = client.lock("nightly").acquire_blocking()?;
    /// client.close_blocking()?;
    /// assert!(client.is_closed() && !held.is_valid());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// None but `INTERNAL`.
    pub fn close_blocking(&self) -> Result<(), Error> {
        self.close().wait()
    }

    /// Whether [`Client::close`] was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::SeqCst)
    }

    /// Emits an event of kind `warning`: what a binding has seen and a person should look at.
    pub fn warn(&self, lock: Option<&str>, message: String) {
        let mut event = Event::new(EventKind::Warning);
        event.lock = lock.map(str::to_owned);
        event.message = Some(message);
        self.0.emitter.emit(&event);
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &ClientOptions {
        &self.0.options
    }

    pub(crate) fn of(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// The quorum, `None` with a single server; that is also what counts as long as nobody has named any.
    pub(crate) fn quorum_config(&self) -> Option<QuorumConfig> {
        self.0.quorum_config()
    }

    /// Whether the servers are named, so that what depends on their number stays as it is.
    pub(crate) fn has_servers(&self) -> bool {
        self.0.sources().is_ok()
    }

    /// This process's servers and holds, made by the first operation.
    pub(crate) fn session(&self, lock: Option<&str>) -> Result<Arc<Session>, Error> {
        if self.is_closed() {
            return Err(Error::closed(lock));
        }
        if let Some(session) = self.0.session.load_full() {
            if !session.is_inherited() {
                return Ok(session);
            }
            // The parent's: dropping it here would close what the parent uses.
            std::mem::forget(session);
        }
        let made = Arc::new(self.make_live()?);
        let previous = self.0.session.rcu(|current| match current {
            Some(session) if !session.is_inherited() => Arc::clone(session),
            _ => Arc::clone(&made),
        });
        #[cfg(feature = "testing")]
        crate::testing::note(&made);
        std::mem::forget(previous.filter(|session| session.is_inherited()));
        self.0.session.load_full().ok_or_else(|| Error::closed(lock))
    }

    fn make_live(&self) -> Result<Session, Error> {
        let runtime = Runtime::current()?;
        let quorum_config = self.0.quorum_config();
        let reactor = Arc::default();
        let servers = self.0.sources()?.iter().map(|source| self.0.connect(source, &runtime, &reactor));
        let servers = servers.collect::<Result<Vec<_>, Error>>()?;
        Ok(Session::new(runtime, servers, Arc::clone(&self.0.options), quorum_config, self.0.emitter.clone()))
    }
}

impl Inner {
    pub(crate) fn new(sources: Sources, options: ClientOptions, sink: Option<Arc<dyn Sink>>) -> Self {
        Self {
            sources,
            emitter: Emitter::new(sink, options.log_holds),
            options: Arc::new(options),
            session: ArcSwapOption::const_empty(),
            closed: AtomicBool::new(false),
        }
    }

    fn sources(&self) -> Result<&[Source], Error> {
        self.sources.known(&self.options)
    }

    fn server_count(&self) -> usize {
        self.sources().map_or(1, <[_]>::len)
    }

    fn quorum_config(&self) -> Option<QuorumConfig> {
        let servers = u32::try_from(self.server_count()).unwrap_or(u32::MAX);
        (servers > 1).then(|| QuorumConfig { servers, max_ttl_ms: millis(self.options.max_ttl) })
    }

    fn connect(&self, source: &Source, runtime: &Runtime, reactor: &Arc<LazyReactor>) -> Result<Arc<dyn Server>, Error> {
        match source {
            Source::Own(server) => Ok(Arc::new(OwnServer::new(Arc::clone(server), self.emitter.clone()))),
            Source::Url(url) => match memory_name(url) {
                Some(name) => Ok(MemoryServer::named(name)),
                None => {
                    let (emitter, address) = (self.emitter.clone(), redis::redacted(url));
                    let (quorum_config, host) = (self.quorum_config(), runtime.handle());
                    let timeout = self.options.response_timeout_for(quorum_config.is_none());
                    let tell = move |state: ServerState| emitter.emit(&server_event(&address, state));
                    let server = RedisServer::driven(url, &self.options, timeout, quorum_config, host, reactor, tell)?;
                    Ok(server)
                }
            },
        }
    }
}

fn server_event(address: &str, state: ServerState) -> Event {
    let (kind, message) = match state {
        ServerState::Failed(failure) => (EventKind::ServerFailed, Some(failure.message)),
        ServerState::Recovered => (EventKind::ServerRecovered, None),
    };
    let mut event = Event::new(kind);
    event.server = Some(address.to_owned());
    event.message = message;
    event
}

impl Drop for Inner {
    fn drop(&mut self) {
        // In a forked child what the parent made is the parent's.
        if let Some(session) = self.session.swap(None).filter(|session| session.is_inherited()) {
            std::mem::forget(session);
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("servers", &self.0.server_count()).field("closed", &self.is_closed()).finish()
    }
}
