//! Wake-ups: the local queues of waiters, and the delivery of notices from servers and from other waiters.
//!
//! A server publishes a release on the client's channel. The message names a waiter, whose actor gets a hint. A wake-up that
//! concerns only the waiters of this process needs no server: the first one leaves, another takes its role.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::clock::Tick;
use crate::io::reactor::Io;
use crate::machine;
use crate::name::{Keys, Kind};
use crate::op::{FailureKind, LockOp, Op, Verb};
use crate::protocol::{Input, Recipe};
use crate::server::{Completion, Listener, Notice, Request, Server};
use crate::session::Session;
use crate::session::actor::LockActor;
use crate::session::asks::Asks;
use crate::sync::Mutex;
use crate::wait::{Hinted, LeaveReason, LocalQueues, Mode, Waiter, Wakeup};

pub(super) struct Wakeups {
    queues: Mutex<LocalQueues>,
    /// The number of local queues, read without a lock.
    count: AtomicUsize,
    client: String,
    listening: AtomicBool,
    /// Kept here, because servers have only weak references to them.
    listeners: Mutex<Vec<Listener>>,
    /// The same where each lock has a channel of its own.
    by_lock: Option<Mutex<HashMap<Box<str>, LockListener>>>,
}

/// The listener of a lock's channel, and the local queues for which it is kept.
struct LockListener {
    listener: Listener,
    queue_keys: HashSet<Box<str>>,
}

impl Wakeups {
    pub(super) fn new(client: &str, who: &str, servers: &[Arc<dyn Server>]) -> Self {
        let by_lock = servers.iter().any(|server| server.notifies_by_lock());
        let client = if by_lock { machine::notified_by_lock(client) } else { client.to_owned() };
        let queues = LocalQueues::new(&client, who, servers.len());
        Self {
            queues: Mutex::new(if by_lock { queues.by_lock() } else { queues }),
            count: AtomicUsize::new(0),
            client,
            listening: AtomicBool::new(false),
            listeners: Mutex::default(),
            by_lock: by_lock.then(Mutex::default),
        }
    }
}

impl Session {
    /// Puts a waiter into its local queue and into the registry in one step: a waiter that leaves the queue may wake the new one
    /// at once.
    pub(super) fn join_queue(&self, lock: &str, id: u64, mode: Mode, actor: &Arc<LockActor>) {
        let mut queues = self.wakeups.queues.lock();
        actor.take_place(queues.join(lock, id, mode));
        self.wakeups.count.store(queues.count(), Ordering::Release);
        self.registry.insert(id, actor);
    }

    /// Puts an acquisition of the registry into its local queue.
    pub(super) fn place_in_queue(&self, recipe: &Recipe, id: u64) -> Waiter {
        let mut queues = self.wakeups.queues.lock();
        let waiter = queues.join(&recipe.queue_key(), id, recipe.mode());
        self.wakeups.count.store(queues.count(), Ordering::Release);
        waiter
    }

    /// Marks that the acquisition `id` asks for the lock on the fast path. `None` if another way is better: the lock isn't free, or others of
    /// this process want it.
    pub(super) fn may_ask_first(&self, recipe: &Recipe, id: u64) -> Option<Asks> {
        let lock = recipe.keys.lock();
        if !recipe.suits_fast_path() || !self.server(0).may_be_free(&recipe.keys) {
            return None;
        }
        let is_waited_for = || self.wakeups.queues.lock().is_waited_for(&recipe.queue_key());
        match self.asking.ask(lock, id, recipe.asks_at_once()) {
            Ok(_) if self.wakeups.count.load(Ordering::Acquire) > 0 && is_waited_for() => None,
            Ok(asks) => Some(asks),
            // Whoever wants a permit doesn't wait for the answers of others: there may be one for each.
            Err(_) if recipe.keys.kind().is_shared() => None,
            Err(other) => {
                let other = self.registry.get(other).filter(|other| other.recipe.keys.lock() == lock);
                other.into_iter().for_each(|other| other.lets_wait_behind());
                None
            }
        }
    }

    /// Takes a waiter out of its local queue, and wakes the next one.
    pub(super) fn leave_queue(&self, recipe: &Recipe, waiter: u64, reason: LeaveReason, io: &Io) {
        let queue_key = recipe.queue_key();
        let mut queues = self.wakeups.queues.lock();
        let wakeups = queues.quit(&queue_key, waiter, reason);
        self.wakeups.count.store(queues.count(), Ordering::Release);
        if let Some(by_lock) = self.wakeups.by_lock.as_ref().filter(|_| !queues.is_waited_for(&queue_key)) {
            let mut by_lock = by_lock.lock();
            for keys in recipe.keys.each() {
                let known = by_lock.get_mut(keys.lock());
                if known.is_some_and(|known| known.queue_keys.remove(&*queue_key) && known.queue_keys.is_empty()) {
                    by_lock.remove(keys.lock());
                }
            }
        }
        drop(queues);
        self.deliver_all(wakeups, io);
    }

    /// Lets the others of a waiter's local queue try once.
    pub(super) fn let_others_try(&self, lock: &str, waiter: u64, io: &Io) {
        let wakeups = self.wakeups.queues.lock().pass(lock, waiter);
        self.deliver_all(wakeups, io);
    }

    fn deliver_all(&self, wakeups: Vec<Wakeup>, io: &Io) {
        for Wakeup { waiter, role, at } in wakeups {
            self.deliver(waiter, Input::Role(role, at), io);
        }
    }

    fn deliver(&self, waiter: u64, input: Input, io: &Io) {
        if let Some(actor) = self.registry.get(waiter) {
            send_in_turn(actor, input, io);
        }
    }

    /// Subscribes to the servers' notices, at the first wait of this client; where each lock has a channel of its own, at the first wait
    /// for the lock.
    pub(super) fn listen(self: &Arc<Self>, recipe: &Recipe) {
        if let Some(by_lock) = &self.wakeups.by_lock {
            return recipe.keys.each().for_each(|keys| self.listen_to_lock(by_lock, keys, &recipe.queue_key()));
        }
        if self.wakeups.listening.swap(true, Ordering::Relaxed) {
            return;
        }
        let channel = machine::channel(&self.wakeups.client);
        for (index, server) in self.servers.iter().enumerate() {
            let listener = self.listener(index, None);
            self.wakeups.listeners.lock().push(Arc::clone(&listener));
            if !server.listen(&channel, listener) {
                self.wakeups.queues.lock().set_listening(index, false, None);
            }
        }
    }

    fn listen_to_lock(self: &Arc<Self>, by_lock: &Mutex<HashMap<Box<str>, LockListener>>, keys: &Keys, queue_key: &str) {
        let lock = keys.lock();
        let listener = {
            let mut by_lock = by_lock.lock();
            let known = by_lock
                .entry(lock.into())
                .or_insert_with(|| LockListener { listener: self.listener(0, Some(lock)), queue_keys: HashSet::new() });
            // A waiter behind the first one that listens.
            if !known.queue_keys.insert(queue_key.into()) {
                return;
            }
            Arc::clone(&known.listener)
        };
        let channel = machine::channel_of(keys, &self.wakeups.client);
        if !self.server(0).listen(&channel, listener) {
            self.wakeups.queues.lock().set_listening(0, false, Some(lock));
        }
    }

    /// A listener to a server, or to the channel of a lock there.
    fn listener(self: &Arc<Self>, server: usize, lock: Option<&str>) -> Listener {
        let (session, lock) = (Arc::downgrade(self), lock.map(str::to_owned));
        Arc::new(move |notice| {
            if let Some(session) = session.upgrade() {
                session.notice(server, lock.as_deref(), notice);
            }
        })
    }

    fn notice(&self, server: usize, lock: Option<&str>, notice: Notice) {
        match notice {
            Notice::Message(message) => self.hint(server, &message),
            Notice::Listening => self.set_listening(server, true, lock),
            Notice::NotListening(failure) => {
                self.set_listening(server, false, lock);
                // A broken connection has an event of its own, and is opened again.
                if matches!(failure.kind, FailureKind::Denied | FailureKind::Protocol | FailureKind::Other) {
                    self.warn_about(server, format!("waiters poll, because this server announces no releases: {failure}"));
                }
            }
        }
    }

    /// Notes that a server announces releases from now on, or no longer. The first waiter of each local queue tries, and then
    /// knows how long it may wait.
    fn set_listening(&self, server: usize, listens: bool, lock: Option<&str>) {
        let first = self.wakeups.queues.lock().set_listening(server, listens, lock);
        first.into_iter().for_each(|waiter| self.deliver(waiter, Input::Listens(server), &Io::Background));
    }

    fn hint(&self, server: usize, message: &str) {
        let Some(hinted) = Hinted::parse(message) else { return };
        let waiter = self.wakeups.queues.lock().find(&hinted);
        match waiter {
            Some(waiter) => self.deliver(waiter, Input::Hint(server, hinted.hint), &Io::Background),
            None => self.pass_on(server, &hinted),
        }
    }

    /// Takes a waiter that has left off the server's queue, so that the server wakes the next one. A message still named it.
    fn pass_on(&self, server: usize, hinted: &Hinted<'_>) {
        let name = hinted.lock.strip_prefix(&*self.options.prefix);
        let single = hinted.mode.kind;
        let (kind, has_marker) = (if self.server_count() > 1 { Kind::Quorum } else { single }, self.quorum_config.is_some());
        let Some(Ok(keys)) = name.map(|name| Keys::new(kind, &self.options.prefix, name, !has_marker)) else {
            return;
        };
        let entry = {
            let mut queues = self.wakeups.queues.lock();
            if !queues.passes_on(server, hinted, Tick::now()) {
                return;
            }
            queues.entry(hinted.mode, hinted.number)
        };
        let op = Op::Lock(LockOp { keys: Arc::new(keys), by: entry, verb: Verb::Leave });
        let deadline = Tick::now().after(self.response_timeout());
        self.server(server).submit(Request::new(op, deadline), Completion::new(|_| ()));
    }
}

type PendingInputs = VecDeque<(Arc<LockActor>, Input, Io)>;

thread_local! {
    /// The inputs that this thread still has to send, while it sends one.
    static PENDING: RefCell<Option<PendingInputs>> = const { RefCell::new(None) };
}

/// Sends inputs one after the other, also those that arise meanwhile. A waiter that fails at once wakes the next one, and a long
/// queue must not fill the stack.
fn send_in_turn(actor: Arc<LockActor>, input: Input, io: &Io) {
    struct Done;
    impl Drop for Done {
        fn drop(&mut self) {
            drop(PENDING.take());
        }
    }
    let mut next = Some((actor, input, io.clone()));
    let is_first = PENDING.with_borrow_mut(|pending| match pending {
        Some(pending) => {
            pending.extend(next.take());
            false
        }
        None => {
            *pending = Some(VecDeque::new());
            true
        }
    });
    if !is_first {
        return;
    }
    let _done = Done;
    while let Some((actor, input, io)) = next {
        actor.send(input, &io);
        next = PENDING.with_borrow_mut(|pending| pending.as_mut().and_then(VecDeque::pop_front));
    }
}

#[cfg(test)]
#[path = "wakeups_tests.rs"]
mod tests;
