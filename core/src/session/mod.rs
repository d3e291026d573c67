//! A client's servers and holds in one process.

pub(crate) mod actor;
pub(crate) mod ask_all;
pub(crate) mod bodies;
pub(crate) mod caller;
mod own_holds;

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::clock::Tick;
use crate::entropy;
use crate::error::quoted::quoted;
use crate::event::callback;
use crate::event::emitter::Emitter;
use crate::event::{Event, EventKind};
use crate::io::runtime::Runtime;
use crate::machine;
use crate::name::{Keys, Kind};
use crate::op::{FailureKind, Op, QuorumConfig};
use crate::options::ClientOptions;
use crate::owner::Signature;
use crate::process::Process;
use crate::protocol::{Input, Jump, Jumps};
use crate::server::{Completion, Listener, Notice, Request, Server};
use crate::session::actor::LockActor;
use crate::session::bodies::Bodies;
use crate::session::own_holds::OwnHolds;
use crate::sync::Mutex;
use crate::wait::{Hinted, LeaveReason, LocalQueues, Seat, Wakeup};

/// What a client is in the process that uses it. A forked child gets a new one; the parent's is left alone.
pub(crate) struct Session {
    of: Process,
    runtime: Arc<Runtime>,
    servers: Vec<Arc<dyn Server>>,
    pub(crate) addresses: Arc<[String]>,
    pub(crate) quorum_config: Option<QuorumConfig>,
    pub(crate) signature: Arc<Signature>,
    pub(crate) options: Arc<ClientOptions>,
    emitter: Emitter,
    /// Set before the roll is read for closing: whoever enrols later sees it.
    closing: AtomicBool,
    /// Whether all servers were heard once.
    heard_all: AtomicBool,
    seeds: Mutex<fastrand::Rng>,
    /// Every acquisition that is not finished: this is what keeps them alive.
    registry: Mutex<HashMap<u64, Arc<LockActor>>>,
    emptied: Notify,
    /// The task that holds each owner value, where the caller told.
    holders: Mutex<HashMap<Arc<str>, u64>>,
    pub(crate) bodies: Bodies,
    own_holds: OwnHolds,
    /// Who waits here for which lock.
    queues: Mutex<LocalQueues>,
    channel: String,
    listening: AtomicBool,
    untold: AtomicBool,
    jumps: Mutex<Jumps>,
    /// Servers keep them only weakly.
    listeners: Mutex<Vec<Listener>>,
}

impl Session {
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        servers: Vec<Arc<dyn Server>>,
        options: Arc<ClientOptions>,
        quorum_config: Option<QuorumConfig>,
        emitter: Emitter,
    ) -> Self {
        let signature = Signature::of_this_process(options.app_name().as_deref());
        let mut seeds = fastrand::Rng::with_seed(entropy::draw());
        let client = format!("{:016x}", seeds.u64(..));
        Self {
            queues: Mutex::new(LocalQueues::new(&client, signature.who(), servers.len())),
            channel: machine::channel(&client),
            listening: AtomicBool::new(false),
            untold: AtomicBool::new(false),
            jumps: Mutex::default(),
            listeners: Mutex::default(),
            of: Process::current(),
            runtime,
            addresses: servers.iter().map(|server| server.address().to_owned()).collect(),
            servers,
            quorum_config,
            signature: Arc::new(signature),
            options,
            emitter,
            closing: AtomicBool::new(false),
            heard_all: AtomicBool::new(false),
            seeds: Mutex::new(seeds),
            registry: Mutex::default(),
            emptied: Notify::new(),
            holders: Mutex::default(),
            bodies: Bodies::default(),
            own_holds: OwnHolds::default(),
        }
    }

    /// Whether this is the parent's, seen from a forked child.
    pub(crate) fn is_inherited(&self) -> bool {
        !self.of.is_current()
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn server(&self, index: usize) -> &dyn Server {
        &*self.servers[index]
    }

    pub(crate) fn server_count(&self) -> usize {
        self.servers.len()
    }

    pub(crate) fn emit(&self, event: &Event) {
        self.emitter.emit(event);
    }

    /// Calls a callback that a user gave for the lock of this name.
    pub(crate) fn call_back(&self, lock: &str, whose: &str, code: impl FnOnce()) {
        if let Err(panic) = callback::call(code) {
            let mut warning = panic.warning(whose);
            warning.lock = Some(lock.to_owned());
            self.emit(&warning);
        }
    }

    /// Whether the client is being closed.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Whether an acquire still has to hear every server out.
    pub(crate) fn must_hear_all(&self) -> bool {
        self.quorum_config.is_some() && !self.heard_all.load(Ordering::Relaxed)
    }

    /// An acquire has heard every server out.
    pub(crate) fn has_heard_all(&self) {
        self.heard_all.store(true, Ordering::Relaxed);
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seeds.lock().u64(..)
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.runtime.next_id()
    }

    pub(crate) fn insert(&self, id: u64, actor: &Arc<LockActor>) {
        self.registry.lock().insert(id, Arc::clone(actor));
    }

    /// Takes a finished acquisition off the roll.
    pub(crate) fn remove(&self, id: u64) {
        let mut registry = self.registry.lock();
        let finished = registry.remove(&id);
        let empty = registry.is_empty();
        drop(registry);
        if let Some(finished) = finished {
            finished.noted_owner().into_iter().for_each(|owner| self.forget_holder(owner));
            finished.forget_bodies();
        }
        if empty {
            self.emptied.notify_waiters();
        }
    }

    pub(crate) fn note_holder(&self, owner: &Arc<str>, context: u64) {
        self.holders.lock().insert(Arc::clone(owner), context);
    }

    pub(crate) fn forget_holder(&self, owner: &str) {
        self.holders.lock().remove(owner);
    }

    pub(crate) fn holder_context(&self, owner: &str) -> Option<u64> {
        self.holders.lock().get(owner).copied()
    }

    /// This client's own hold on `lock`, if it has had it for a second at least. Cheap also where thousands ask.
    pub(crate) fn own_hold(&self, lock: &str, now: Tick) -> Option<Arc<LockActor>> {
        self.own_holds.find(lock, now, || self.registry.lock().values().cloned().collect())
    }

    /// LocalQueues a waiter up behind the others of this client, and puts it on the roll in the same moment: who leaves the line may
    /// tell it at once that it is next.
    pub(crate) fn enlist(&self, lock: &str, id: u64, fair: bool, begin: impl FnOnce(Seat) -> Arc<LockActor>) -> Arc<LockActor> {
        let mut queues = self.queues.lock();
        let actor = begin(queues.join(lock, id, fair));
        self.insert(id, &actor);
        actor
    }

    /// A waiter leaves its line; who is next listens of it.
    pub(crate) fn quit(&self, lock: &str, waiter: u64, reason: LeaveReason) {
        let wakeups = self.queues.lock().quit(lock, waiter, reason);
        self.wake_all(wakeups);
    }

    /// The others of a waiter's line may try for themselves.
    pub(crate) fn pass(&self, lock: &str, waiter: u64) {
        let wakeups = self.queues.lock().pass(lock, waiter);
        self.wake_all(wakeups);
    }

    fn wake_all(&self, wakeups: Vec<Wakeup>) {
        for Wakeup { waiter, role, at } in wakeups {
            self.tell(waiter, Input::Role(role, at));
        }
    }

    fn tell(&self, waiter: u64, input: Input) {
        let actor = self.registry.lock().get(&waiter).cloned();
        if let Some(actor) = actor {
            bring(actor, input);
        }
    }

    /// Has the servers make ready what the background will use.
    pub(crate) fn warm(&self) {
        self.servers.iter().for_each(|server| server.warm());
    }

    /// Has the servers tell of releases, from the first time on that somebody waits.
    pub(crate) fn listen(self: &Arc<Self>) {
        if self.listening.swap(true, Ordering::Relaxed) {
            return;
        }
        for (index, server) in self.servers.iter().enumerate() {
            let session = Arc::downgrade(self);
            let listener = move |notice| {
                if let Some(session) = session.upgrade() {
                    session.hear(index, notice);
                }
            };
            let listener: Listener = Arc::new(listener);
            self.listeners.lock().push(Arc::clone(&listener));
            if !server.listen(&self.channel, listener) {
                self.queues.lock().listen_state().set(index, false);
            }
        }
    }

    fn hear(&self, server: usize, notice: Notice) {
        match notice {
            Notice::Message(message) => self.hinted(server, &message),
            Notice::Listening => self.listens(server, true),
            Notice::Deaf(failure) => {
                self.listens(server, false);
                // A broken connection is told of as such, and mended.
                if matches!(failure.kind, FailureKind::Denied | FailureKind::Protocol | FailureKind::Other) {
                    let mut event = Event::new(EventKind::Warning);
                    event.server = self.addresses.get(server).cloned();
                    event.message = Some(format!("waiters poll, because this server tells of no releases: {failure}"));
                    self.emit(&event);
                }
            }
        }
    }

    /// Messages come from now on, or no longer: whoever speaks for a line looks for itself, and knows how long to wait then.
    fn listens(&self, server: usize, listens: bool) {
        let fronts: Vec<u64> = {
            let queues = self.queues.lock();
            queues.listen_state().set(server, listens);
            queues.fronts().collect()
        };
        fronts.into_iter().for_each(|waiter| self.tell(waiter, Input::Listens(server)));
    }

    /// The next waiter could not be told of a release. Said once: it won't be otherwise at the next one.
    pub(crate) fn untold(&self, keys: &Keys, why: &str) {
        if !self.untold.swap(true, Ordering::Relaxed) {
            let mut event = Event::of(EventKind::Warning, keys);
            event.message =
                Some(format!("the next waiter is not told of a release, and notices within a second: {}", quoted(why)));
            self.emit(&event);
        }
    }

    /// A server's clock jumped. Said once a jump, however many holds see it.
    pub(crate) fn jumped(&self, jump: &Jump) {
        if self.jumps.lock().is_news(jump) {
            let mut event = Event::new(EventKind::Warning);
            event.server = self.addresses.get(jump.server).cloned();
            event.message = Some(format!(
                "this server's clock jumped forward by {:.3} s, and its keys expire so much earlier; it counts again for a hold once \
                 it has confirmed it on the new clock",
                jump.by.as_secs_f64()
            ));
            self.emit(&event);
        }
    }

    fn hinted(&self, server: usize, message: &str) {
        let Some(hinted) = Hinted::parse(message) else { return };
        let waiter = self.queues.lock().find(&hinted);
        match waiter {
            Some(waiter) => self.tell(waiter, Input::Hint(server, hinted.hint)),
            None => self.pass_on(server, &hinted),
        }
    }

    /// The waiter that is meant is gone: the next one must not wait for it.
    fn pass_on(&self, server: usize, hinted: &Hinted<'_>) {
        let name = hinted.lock.strip_prefix(&*self.options.prefix);
        let Some(Ok(keys)) =
            name.map(|name| Keys::new(Kind::Exclusive, &self.options.prefix, name, self.quorum_config.is_none()))
        else {
            return;
        };
        let entry = {
            let mut queues = self.queues.lock();
            if !queues.passes_on(server, hinted, Tick::now()) {
                return;
            }
            queues.entry(hinted.fair, hinted.number)
        };
        let op = Op::Leave { keys: Arc::new(keys), entry, single_server: self.quorum_config.is_none() };
        let deadline = Tick::now().after(self.options.response_timeout_for(self.quorum_config.is_none()));
        self.server(server).submit(Request::new(op, deadline), Completion::new(|_| ()));
    }

    /// Ends everything: acquires fail, holds are lost and released, connections are let go, all within a response timeout.
    pub(crate) async fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        let all: Vec<Arc<LockActor>> = self.registry.lock().values().cloned().collect();
        for actor in all {
            actor.send(Input::Close);
        }
        // Each of them has said by now what is to be released; what was sent before is taken back behind that, on every connection.
        self.servers.iter().for_each(|server| server.give_up());
        let emptied = self.emptied.notified();
        tokio::pin!(emptied);
        emptied.as_mut().enable();
        if !self.registry.lock().is_empty() {
            let timeout = self.options.response_timeout_for(self.quorum_config.is_none());
            let _ = tokio::time::timeout(timeout, emptied).await;
        }
        for server in &self.servers {
            server.close();
        }
    }
}

type PendingInputs = VecDeque<(Arc<LockActor>, Input)>;

thread_local! {
    /// What this thread still has to bring, while it brings something.
    static BROUGHT: RefCell<Option<PendingInputs>> = const { RefCell::new(None) };
}

/// Brings inputs one after the other, also those that come up meanwhile: who fails at once tells the next one, and a long line
/// must not end on the stack.
fn bring(actor: Arc<LockActor>, input: Input) {
    struct Done;
    impl Drop for Done {
        fn drop(&mut self) {
            drop(BROUGHT.take());
        }
    }
    let mut next = Some((actor, input));
    let is_first = BROUGHT.with_borrow_mut(|brought| match brought {
        Some(brought) => {
            brought.extend(next.take());
            false
        }
        None => {
            *brought = Some(VecDeque::new());
            true
        }
    });
    if !is_first {
        return;
    }
    let _done = Done;
    while let Some((actor, input)) = next {
        actor.send(input);
        next = BROUGHT.with_borrow_mut(|brought| brought.as_mut().and_then(VecDeque::pop_front));
    }
}
