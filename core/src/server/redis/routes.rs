//! Routes: the connections to one server, and which of them an operation takes.
//!
//! The background (renewals, undone rounds, retries) has a connection on the core's I/O thread. An operation of a task on another
//! runtime is sent and answered on that runtime. An operation that a thread waits for is sent and answered by that thread. A hop to
//! the I/O thread and back costs more than the operation. Operations on different routes have no order, and the protocol needs
//! none: a success that arrives after its round was undone is undone again. A route ends with its runtime.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::runtime::{Handle, Id};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::clock::Tick;
use crate::error::Error;
use crate::io::drivers::has_drivers;
use crate::io::reactor::{Io, LazyReactor};
use crate::name::Keys;
use crate::op::{Op, QuorumConfig};
use crate::options::ClientOptions;
use crate::server::redis::connection::failure::closed;
use crate::server::redis::connection::in_flight::InFlight;
use crate::server::redis::connection::input::Input;
use crate::server::redis::connection::primary::{Lineage, Primary};
use crate::server::redis::connection::server_state::ServerState;
use crate::server::redis::listening::one_server::OneServer;
use crate::server::redis::listening::pub_sub::{Channel, Kind};
use crate::server::redis::listening::{NodeMap, listen};
use crate::server::redis::replicated::Replicated;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::hints::Hints;
use crate::server::redis::transport::provided::{Change, Provided, Renewal};
use crate::server::redis::transport::reactor_task::ReactorTask;
use crate::server::redis::transport::{sentinels, tokio_task};
use crate::server::{Completion, Listener, Request, Server};
use crate::sync::Mutex;

/// One Redis or Valkey server, with a connection for each kind of caller. A connection is made when it is first needed, and
/// replaced when it breaks.
pub struct Routes {
    settings: Arc<Settings>,
    primary: Arc<Primary>,
    host: Handle,
    background: UnboundedSender<Input>,
    per_runtime: ArcSwap<Vec<RuntimeRoute>>,
    /// What waiters and observers listen to.
    listening: Arc<OneServer>,
    reactor: Arc<LazyReactor>,
    driven: Mutex<Driven>,
    /// What a sentinel reports of failovers, where sentinels name the server.
    hints: Option<Hints>,
    /// The connection for what replicas have to confirm, where they have to.
    replicated: Option<Arc<Replicated>>,
    renewal: Mutex<Option<Renewal>>,
}

/// The connection that waiting threads drive.
#[derive(Default)]
enum Driven {
    #[default]
    Unmade,
    Made(Arc<ReactorTask>),
    /// The close leaves nothing of it: a closed client may be kept for long.
    Closed,
}

impl Driven {
    fn made(&self) -> Option<Arc<ReactorTask>> {
        if let Self::Made(reactor_task) = self { Some(Arc::clone(reactor_task)) } else { None }
    }
}

/// A connection on a caller's runtime. One that can't do I/O has the background's.
#[derive(Clone)]
struct RuntimeRoute {
    host: Id,
    inbox: UnboundedSender<Input>,
}

impl Routes {
    /// A server at `url`: `redis://`, `rediss://` (TLS), `unix://`, or `redis+sentinel://` for the primary that sentinels name.
    /// Reads the certificate files of `options`, but does no network I/O.
    ///
    /// `quorum_config` is the quorum of the server, `None` if it is the only server. `host` runs the work that no caller does
    /// itself. `on_state` is called once for every change, on any thread; it must not block. An operation whose answer takes longer
    /// than `response_timeout` has an unknown outcome.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a URL or a certificate file that can't be used. Passwords are never shown.
    pub fn new(
        url: &str,
        options: &ClientOptions,
        response_timeout: Duration,
        quorum_config: Option<QuorumConfig>,
        host: Handle,
        on_state: impl Fn(ServerState) + Send + Sync + 'static,
    ) -> Result<Arc<Self>, Error> {
        Self::driven(url, options, response_timeout, quorum_config, &host, &Arc::default(), on_state)
    }

    /// [`Routes::new`] for one of several servers, which one blocked thread drives all at once.
    pub(crate) fn driven(
        url: &str,
        options: &ClientOptions,
        response_timeout: Duration,
        quorum_config: Option<QuorumConfig>,
        host: &Handle,
        reactor: &Arc<LazyReactor>,
        on_state: impl Fn(ServerState) + Send + Sync + 'static,
    ) -> Result<Arc<Self>, Error> {
        let mut settings = Settings::new(url, options, response_timeout, quorum_config)?;
        let provided = options.credentials.as_ref();
        let provided = provided.map(|provider| Provided::new(provider, &settings.target.address, options.connect_timeout, host));
        settings.provided.clone_from(&provided);
        let routes = Self::reporting(settings, None, (host, reactor), on_state);
        *routes.renewal.lock() = provided.map(|provided| {
            provided.renew(&routes, |routes, change| match change {
                Change::Login => routes.log_in(),
                Change::Trouble(failure) => routes.primary.health.report(ServerState::Warning(failure.message)),
            })
        });
        Ok(routes)
    }

    fn of(settings: Settings, primary: Primary, host: &Handle, reactor: Arc<LazyReactor>) -> Self {
        let (settings, primary) = (Arc::new(settings), Arc::new(primary));
        let background = open(&settings, &primary, host);
        let hints = settings.target.endpoint.service().map(|_| Hints::default());
        let replicated =
            settings.replicas.map(|terms| Replicated::new(open(&settings, &primary, host), terms, settings.response_timeout));
        let listening = OneServer::new(&settings, &primary, host);
        Self {
            settings,
            primary,
            host: host.clone(),
            background,
            per_runtime: ArcSwap::default(),
            listening,
            reactor,
            driven: Mutex::default(),
            hints,
            replicated,
            renewal: Mutex::default(),
        }
    }

    /// Connections whose changes `on_state` gets. `lineage` has the replication ids of the other nodes, for a node of a cluster.
    pub(crate) fn reporting(
        settings: Settings,
        lineage: Option<Arc<Lineage>>,
        (host, reactor): (&Handle, &Arc<LazyReactor>),
        on_state: impl Fn(ServerState) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new_cyclic(|routes: &Weak<Self>| {
            let routes = Weak::clone(routes);
            let report = move |state: ServerState| {
                let others = routes.upgrade().filter(|_| matches!(state, ServerState::FailedOver(_)));
                // The other connections leave the old primary before the new one is reported.
                others.inspect(|routes| routes.wake());
                on_state(state);
            };
            Self::of(settings, Primary::of(lineage, report), host, Arc::clone(reactor))
        })
    }

    pub(crate) fn send(&self, pending: InFlight) {
        if pending.request.op.survives_reconnect() && self.primary.has_cancelled() {
            // What it undoes may come late on another connection.
            self.notify_all(|| Input::Undo(pending.request.op.clone()));
        }
        if let Some(replicated) = &self.replicated
            && Replicated::concerns(&pending.request.op)
        {
            return replicated.submit(pending);
        }
        if pending.request.io.is_driven()
            && let Some(reactor_task) = self.driven_by_threads()
        {
            return reactor_task.submit(pending);
        }
        let is_tasks = self.settings.callers_runtime && matches!(pending.request.io, Io::Task);
        let caller = if is_tasks { Handle::try_current().ok() } else { None };
        let input = Input::Submit(pending);
        let refused = match caller.filter(|caller| caller.id() != self.host.id()) {
            Some(caller) => self.send_on(&caller, input),
            None => self.background.send(input).err().map(|refused| refused.0),
        };
        if let Some(Input::Submit(pending)) = refused {
            pending.completion.complete_by(&pending.request.io, Err(closed(false)));
        }
    }

    /// The connection that waiting threads drive. Where no reactor can be made there is none: then they use the background's
    /// route, as they do after a close.
    fn driven_by_threads(&self) -> Option<Arc<ReactorTask>> {
        let mut driven = self.driven.lock();
        if matches!(*driven, Driven::Unmade) {
            let reactor = self.reactor.get()?;
            *driven = Driven::Made(ReactorTask::new(&self.settings, &self.primary, &self.host, &reactor));
        }
        driven.made()
    }

    fn close_driven(&self) {
        let driven = std::mem::replace(&mut *self.driven.lock(), Driven::Closed);
        if let Driven::Made(reactor_task) = driven {
            reactor_task.close();
        }
    }

    /// Sends on the route of the caller's runtime, or on the background's route if the first has ended. Gives the input back if
    /// both have ended.
    fn send_on(&self, caller: &Handle, input: Input) -> Option<Input> {
        if self.background.is_closed() {
            return Some(input);
        }
        let known = self.per_runtime.load();
        let known_route = known.iter().find(|route| route.host == caller.id()).map(|route| &route.inbox);
        let input = match known_route {
            Some(inbox) => inbox.send(input).err()?.0,
            None => self.admit(caller).send(input).err()?.0,
        };
        self.background.send(input).err().map(|refused| refused.0)
    }

    fn admit(&self, caller: &Handle) -> UnboundedSender<Input> {
        let inbox = if has_drivers(caller) { open(&self.settings, &self.primary, caller) } else { self.background.clone() };
        let route = RuntimeRoute { host: caller.id(), inbox: inbox.clone() };
        self.per_runtime.rcu(|per_runtime| {
            let alive = per_runtime.iter().filter(|route| !route.inbox.is_closed());
            alive.cloned().chain([route.clone()]).collect::<Vec<_>>()
        });
        inbox
    }

    /// Has the background's route ask the server for its replication id, on a connection that is open or made for that.
    pub(crate) fn verify(&self) {
        let _ = self.background.send(Input::Verify);
    }

    /// This node has the slots of another one, which fails.
    pub(crate) fn replaces(&self, other: &Self) {
        self.primary.replaces(&other.primary);
    }

    /// Brings an input to the connections that do operations. A route that has ended has no connection, and needs none.
    fn notify_all(&self, input: impl Fn() -> Input) {
        let driven = self.driven.lock().made();
        if let Some(reactor_task) = driven {
            reactor_task.bring(input());
        }
        let _ = self.background.send(input());
        for route in self.per_runtime.load().iter().filter(|route| !route.inbox.same_channel(&self.background)) {
            let _ = route.inbox.send(input());
        }
        if let Some(replicated) = &self.replicated {
            let _ = replicated.inbox.send(input());
        }
    }

    /// Wakes every connection: what they know of the server has changed.
    pub(crate) fn wake(&self) {
        self.notify_all(|| Input::Wake);
        self.listening.listening().wake();
    }

    /// Has every connection send the newest credentials.
    pub(crate) fn log_in(&self) {
        self.notify_all(|| Input::LogIn);
        self.listening.listening().log_in();
    }
}

/// The other routes end when they are dropped.
impl Server for Routes {
    fn address(&self) -> &str {
        &self.settings.target.address
    }

    fn submit(&self, request: Request, completion: Completion) {
        let service = self.settings.target.endpoint.service().filter(|_| matches!(request.op, Op::Examine));
        let completion = match service {
            Some(service) => sentinels::with_facts(service, self.settings.connect_timeout, &self.host, completion),
            None => completion,
        };
        self.send(InFlight::new(request, completion));
    }

    /// Whether the name was not met held lately.
    fn may_be_free(&self, keys: &Keys) -> bool {
        self.replicated.is_none() && !self.primary.busy.has(keys.lock())
    }

    /// The server's clock at this time.
    fn clock(&self, at: Tick) -> Option<u64> {
        self.primary.clock.at(at)
    }

    /// Makes the background's route connect, and listens to a sentinel, where there are some.
    fn keep_warm(&self) {
        if let Some(hints) = &self.hints {
            hints.listen(&self.settings, &self.primary, &self.host);
        }
        // A route that has ended renews nothing.
        let _ = self.background.send(Input::KeepWarm);
    }

    /// Listens on a connection for all channels, which is closed some seconds after the last listener is gone.
    fn listen(&self, channel: &str, listener: Listener) -> bool {
        listen(&self.listening, Channel { name: channel.into(), kind: Kind::Both }, &listener)
    }

    /// Cancels all operations but releases, also those that are submitted later.
    fn cancel(&self) {
        self.notify_all(|| Input::Cancel);
    }

    fn close(&self) {
        drop(self.renewal.lock().take());
        self.hints.iter().for_each(Hints::close);
        self.close_driven();
        self.notify_all(|| Input::Close);
        self.listening.listening().close();
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        self.close_driven();
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes").field("address", &self.address()).finish_non_exhaustive()
    }
}

/// A connection, on a runtime.
fn open(settings: &Arc<Settings>, primary: &Arc<Primary>, host: &Handle) -> UnboundedSender<Input> {
    let (sender, inbox) = unbounded_channel();
    host.spawn(tokio_task::run(Arc::clone(settings), inbox, Arc::clone(primary)));
    sender
}
