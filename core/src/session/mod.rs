//! Session: everything that a client keeps running in one process. It has the servers, the registry of acquisitions, the local
//! queues of waiters and their wake-ups.
//!
//! Each acquisition has an [actor](actor::LockActor), which executes the commands of its state machine. The session decides
//! nothing.

pub(crate) mod actor;
pub(crate) mod announce;
pub(crate) mod ask_all;
mod asks;
pub(crate) mod bodies;
pub(crate) mod caller;
mod history;
pub(crate) mod listing;
mod own_holds;
mod registry;
#[cfg(test)]
#[path = "stub_tests.rs"]
mod stub;
pub(crate) mod trace;
mod wakeups;
mod warnings;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::clock::{Now, Tick};
use crate::entropy;
use crate::event::emitter::Emitter;
use crate::event::{EventKind, LockEvent, callback};
use crate::io::reactor::Io;
use crate::io::runtime::Runtime;
use crate::io::timers::Alarm;
use crate::metrics::meter::Meters;
use crate::metrics::reading::{Present, Reading};
use crate::name::Label;
use crate::op::QuorumConfig;
use crate::options::ClientOptions;
use crate::owner::Signature;
use crate::process::Process;
use crate::protocol::Input;
use crate::server::{Listener, Server};
use crate::session::asks::Asking;
use crate::session::bodies::Bodies;
use crate::session::history::History;
use crate::session::own_holds::OwnHolds;
pub(crate) use crate::session::registry::Registry;
use crate::session::wakeups::Wakeups;
use crate::session::warnings::Warnings;

/// The pause between two notices to the servers that something is held.
const KEEP_WARM_EVERY: Duration = Duration::from_secs(30);

/// The time after which the servers are notified of the first hold. The connection that granted it may belong to a caller that
/// reads no socket now. So the end of that connection would not be noticed, but that of the background's connection is. A client
/// whose holds are all shorter needs none.
const KEEP_WARM_FROM: Duration = Duration::from_millis(200);

/// A client in the process that uses it. A forked child gets a new session, and never touches the parent's.
pub(crate) struct Session {
    of: Process,
    runtime: Arc<Runtime>,
    servers: Vec<Arc<dyn Server>>,
    pub(crate) addresses: Arc<[String]>,
    pub(crate) quorum_config: Option<QuorumConfig>,
    pub(crate) signature: Arc<Signature>,
    pub(crate) options: Arc<ClientOptions>,
    emitter: Emitter,
    pub(crate) meters: Arc<Meters>,
    /// Set before the registry is read for closing, so an acquisition that is registered later finds it set.
    closing: AtomicBool,
    /// Whether the alarm is set with which the servers are notified that something is held.
    keeps_warm: AtomicBool,
    alarm_id: u64,
    /// Whether an acquire has waited for the answers of all servers.
    all_answered: AtomicBool,
    pub(crate) registry: Arc<Registry>,
    /// The locks that each task of this process holds, for a task that waits for itself.
    pub(crate) bodies: Bodies,
    own_holds: OwnHolds,
    wakeups: Wakeups,
    asking: Arc<Asking>,
    warnings: Warnings,
    history: History,
}

impl Session {
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        servers: Vec<Arc<dyn Server>>,
        options: Arc<ClientOptions>,
        quorum_config: Option<QuorumConfig>,
        (emitter, meters): (Emitter, Arc<Meters>),
        registry: Arc<Registry>,
    ) -> Self {
        let signature = Signature::of_this_process(options.app_name().as_deref());
        let client = format!("{:016x}", entropy::draw());
        let alarm_id = runtime.next_id();
        Self {
            of: Process::current(),
            runtime,
            addresses: servers.iter().map(|server| server.address().to_owned()).collect(),
            wakeups: Wakeups::new(&client, signature.who(), &servers),
            servers,
            quorum_config,
            signature: Arc::new(signature),
            options,
            emitter,
            meters,
            closing: AtomicBool::new(false),
            keeps_warm: AtomicBool::new(false),
            alarm_id,
            all_answered: AtomicBool::new(false),
            registry,
            bodies: Bodies::default(),
            own_holds: OwnHolds::default(),
            asking: Arc::default(),
            warnings: Warnings::default(),
            history: History::default(),
        }
    }

    /// Whether this is the parent's session, seen from a forked child.
    pub(crate) fn is_inherited(&self) -> bool {
        !self.of.is_current()
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn server(&self, index: usize) -> &dyn Server {
        &*self.servers[index]
    }

    /// Has the listener receive one more channel of every server, as long as it is kept.
    pub(crate) fn listen_to(&self, channel: &str, listener: &Listener) {
        self.servers.iter().for_each(|server| _ = server.listen(channel, Arc::clone(listener)));
    }

    pub(crate) fn server_count(&self) -> usize {
        self.servers.len()
    }

    /// The time, by this machine and by the servers.
    pub(crate) fn now(&self) -> Now {
        let now = Now::read();
        // A single server gives its fences by its own clock.
        if self.servers.len() == 1 {
            return now;
        }
        now.with_servers(self.servers.len(), self.servers.iter().filter_map(|server| server.clock(now.tick)))
    }

    pub(crate) fn emit(&self, event: &LockEvent) {
        self.emitter.emit(event);
    }

    /// Calls a callback that a user gave for the lock of this name.
    pub(crate) fn call_back(&self, lock: &str, whose: &str, code: impl FnOnce()) {
        if let Err(panic) = callback::call(code) {
            let mut warning = panic.warning(whose);
            warning.lock_name = Some(lock.into());
            self.emit(&warning);
        }
    }

    /// Whether the client is being closed.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// The time in which a server has to answer.
    pub(crate) fn response_timeout(&self) -> Duration {
        self.options.response_timeout_for(self.servers.len() == 1)
    }

    /// Whether the next acquire has to wait for the answers of all servers.
    pub(crate) fn must_ask_all(&self) -> bool {
        self.quorum_config.is_some() && !self.all_answered.load(Ordering::Relaxed)
    }

    /// Notes that an acquire has waited for the answers of all servers.
    pub(crate) fn all_have_answered(&self) {
        self.all_answered.store(true, Ordering::Relaxed);
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.runtime.next_id()
    }

    /// Takes a finished acquisition out of the registry.
    pub(crate) fn remove(&self, id: u64) {
        if let Some(finished) = self.registry.remove(id) {
            finished.forget_bodies();
        }
    }

    /// The address of a server that has a clock of its own, if a lock is held or waited for there.
    #[cfg(feature = "testing")]
    pub(crate) fn own_clock(&self) -> Option<&str> {
        let server = self.servers.iter().find(|server| !server.moves_with_clock())?;
        if self.registry.all().is_empty() { None } else { Some(server.address()) }
    }

    /// The earliest alarm of all acquisitions; `None` while an input is being handled.
    #[cfg(feature = "testing")]
    pub(crate) fn wakes_at(&self) -> Option<Tick> {
        self.registry.all().iter().try_fold(Tick::NEVER, |first, actor| Some(first.min(actor.wakes_at()?)))
    }

    /// Makes the servers prepare the connections of the background.
    pub(crate) fn keep_warm(&self) {
        self.servers.iter().for_each(|server| server.keep_warm());
    }

    /// Something is held: the servers are notified soon, and then every half a minute, as long as that is true.
    pub(crate) fn start_keep_warm(self: &Arc<Self>) {
        // Read first: every grant comes here, and most find it set.
        if !self.keeps_warm.load(Ordering::Relaxed) && !self.keeps_warm.swap(true, Ordering::SeqCst) {
            self.set_keep_warm(KEEP_WARM_FROM);
        }
    }

    fn set_keep_warm(self: &Arc<Self>, after: Duration) {
        let alarm: Weak<dyn Alarm> = Arc::downgrade(self) as _;
        self.runtime.set_alarm(Tick::now().after(after), self.alarm_id, alarm);
    }

    /// Closes the client within a response timeout: acquires fail, holds are lost and released, connections end. To be run on the
    /// I/O thread.
    pub(crate) async fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        let mut actors = self.registry.all();
        // Waiters first: else the release of a hold would grant the lock to one of them.
        actors.sort_by_key(|actor| actor.valid_until());
        for actor in actors {
            actor.send(Input::Close, &Io::Background);
        }
        // By now each acquisition has sent its removals. On every connection, the earlier requests are undone behind them.
        self.servers.iter().for_each(|server| server.cancel());
        self.registry.wait_until_empty(self.response_timeout()).await;
        for server in &self.servers {
            server.close();
        }
        // The connections of this thread's runtime close their sockets now, before the caller learns of the end.
        tokio::task::yield_now().await;
    }

    /// Adds the numbers of this session to those of its client.
    pub(crate) fn read(&self, reading: &mut Reading) {
        let (now, mut present) = (Tick::now(), HashMap::<Label, Present>::new());
        for actor in self.registry.all() {
            actor.add_to(present.entry(actor.recipe.keys.label().clone()).or_default(), now);
        }
        reading.meters(&self.meters.all(), present);
        self.addresses.iter().zip(&self.meters.servers).for_each(|(address, meter)| reading.server(address, meter));
    }

    fn warn_about(&self, server: usize, message: String) {
        let server = self.addresses.get(server).cloned();
        self.emit(&LockEvent { server, message: Some(message), ..LockEvent::new(EventKind::Warning) });
    }
}

impl Alarm for Session {
    fn ring(self: Arc<Self>) {
        if self.registry.is_anything_held(Tick::now()) {
            self.keep_warm();
            return self.set_keep_warm(KEEP_WARM_EVERY);
        }
        self.keeps_warm.store(false, Ordering::SeqCst);
        // A hold that was granted before the line above found the alarm set.
        if self.registry.is_anything_held(Tick::now()) {
            self.start_keep_warm();
        }
    }
}
