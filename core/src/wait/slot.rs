//! Slot: one place in a lock's queue on the servers, and the waiter in this process to which it belongs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use crate::clock::Tick;
use crate::mutant::mutant;
use crate::op::QueuePlace;
use crate::per_server::PerServer;
use crate::sync::Mutex;
use crate::wait::shared_outage::SharedOutage;

/// The servers that announce releases to this client.
#[derive(Debug)]
pub struct ListenState(Box<[AtomicU8]>);

/// This client has not listened there yet.
const UNKNOWN: u8 = 0;
const LISTENING: u8 = 1;
const NOT_LISTENING: u8 = 2;

impl ListenState {
    /// The state before any server has answered.
    #[must_use]
    pub fn new(servers: usize) -> Self {
        Self((0..servers).map(|_| AtomicU8::new(UNKNOWN)).collect())
    }

    /// The server announces releases from now on, or announces none.
    pub fn set(&self, server: usize, listens: bool) {
        self.0[server].store(if listens { LISTENING } else { NOT_LISTENING }, Ordering::Relaxed);
    }

    /// Whether `needed` servers announce releases, or may do so.
    #[must_use]
    pub fn suffices(&self, needed: usize) -> bool {
        self.0.iter().filter(|server| server.load(Ordering::Relaxed) != NOT_LISTENING).count() >= needed
    }
}

/// A place in the queue. The waiters of one process on one lock share it, except fair waiters.
#[derive(Debug)]
pub struct Slot {
    /// Unique among the slots of a client.
    pub number: u64,
    /// Whether its waiter is a fair one.
    pub fair: bool,
    entry: Arc<str>,
    users: AtomicUsize,
    /// The arrival at each server, by that server's clock; 0 for not yet, or not since the last grant.
    arrivals: PerServer<AtomicU64>,
    /// Whether each server may have the slot in its queue.
    stands: PerServer<AtomicBool>,
    /// The last grant to this slot while others waited in it, by this process's clock, in microseconds.
    granted_us: AtomicU64,
    /// The number of times that each server has put the slot into its queue.
    enqueue_counts: PerServer<AtomicU64>,
    pub(crate) outage: Arc<SharedOutage>,
    pub(crate) listen_state: Arc<ListenState>,
    /// The owner value of the reader that entered last, and when the first one entered that had to stand in the queue.
    reader: Mutex<Option<(Arc<str>, Tick)>>,
    lets_in: AtomicBool,
}

impl Slot {
    pub(super) fn new(
        number: u64,
        fair: bool,
        entry: Arc<str>,
        servers: usize,
        queue: (Arc<SharedOutage>, Arc<ListenState>),
    ) -> Self {
        let (outage, listen_state) = queue;
        let zeros = || (0..servers).map(|_| AtomicU64::new(0)).collect();
        Self {
            number,
            fair,
            entry,
            users: AtomicUsize::new(0),
            arrivals: zeros(),
            stands: (0..servers).map(|_| AtomicBool::new(false)).collect(),
            granted_us: AtomicU64::new(0),
            enqueue_counts: zeros(),
            outage,
            listen_state,
            reader: Mutex::new(None),
            lets_in: AtomicBool::new(false),
        }
    }

    pub(super) fn enter(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    /// A waiter leaves the slot; gives whether it was the last one.
    pub(super) fn quit(&self) -> bool {
        self.users.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// Whether any waiter uses the slot.
    pub(crate) fn is_used(&self) -> bool {
        self.users.load(Ordering::Relaxed) > 0
    }

    /// The name of the slot in the servers' queues.
    #[must_use]
    pub fn entry(&self) -> &Arc<str> {
        &self.entry
    }

    /// Whether several waiters of this process use the slot.
    pub(crate) fn is_shared(&self) -> bool {
        self.users.load(Ordering::Relaxed) > 1
    }

    /// A reader of the slot has entered: in its turn, or beside another one, past the queue. Who entered past the queue lets nobody in whom a
    /// reader before it would not have let in.
    pub(crate) fn entered(&self, owner: &Arc<str>, is_beside: bool, now: Tick) {
        let mut reader = self.reader.lock();
        let since = reader.as_ref().map(|(_, since)| *since).filter(|_| is_beside);
        if let Some(since) = since.or((!is_beside).then_some(now)) {
            *reader = Some((Arc::clone(owner), since));
        }
        self.lets_in.store(!is_beside, Ordering::Relaxed);
    }

    /// Whether a reader has entered in its turn since this was asked last: those that wait in the slot may enter now.
    pub(super) fn lets_in(&self) -> bool {
        self.lets_in.swap(false, Ordering::Relaxed)
    }

    /// The reader of the slot beside whom one may enter that has waited since `started`: the slot has stood in the queue for both of them. Who
    /// comes later waits in the queue.
    pub(crate) fn reader(&self, started: Tick) -> Option<Arc<str>> {
        let reader = self.reader.lock();
        reader.as_ref().filter(|(_, since)| started < *since || mutant!(LaterReaderEnters)).map(|(owner, _)| Arc::clone(owner))
    }

    /// The place as an acquire at `server` names it.
    pub(crate) fn place(&self, server: usize) -> QueuePlace {
        let arrival = self.arrivals[server].load(Ordering::Relaxed);
        QueuePlace { entry: Arc::clone(&self.entry), arrival, stays: self.is_shared() }
    }

    /// A server has put the slot into its queue, in answer to an acquire that was sent at `sent`. If a refusal from before the
    /// last grant arrives after the grant, its place is used up.
    pub(crate) fn arrived(&self, server: usize, arrival: u64, (sent, is_vote): (Tick, bool)) {
        let is_used_up = !is_vote && sent.as_micros() < self.granted_us.load(Ordering::Relaxed);
        if !is_used_up || mutant!(UsedPlaceNamed) {
            self.arrivals[server].store(arrival, Ordering::Relaxed);
        }
        self.stands[server].store(true, Ordering::Relaxed);
        self.enqueue_counts[server].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of times that this server has put the slot into its queue, as far as this process knows.
    pub(crate) fn enqueue_counts(&self, server: usize) -> u64 {
        self.enqueue_counts[server].load(Ordering::Relaxed)
    }

    /// Whether some server has the slot in its queue, as far as this process knows.
    pub(crate) fn has_arrived(&self) -> bool {
        (0..self.stands.len()).any(|server| self.has_arrived_at(server))
    }

    /// Whether this server has the slot in its queue, as far as this process knows.
    pub(crate) fn has_arrived_at(&self, server: usize) -> bool {
        self.stands[server].load(Ordering::Relaxed)
    }

    /// The lock was granted to a waiter of the slot, and others wait behind it. They begin at the tail of the queue; if the place
    /// `stays`, the vote has put it there already. A server that didn't vote keeps the place.
    pub(crate) fn served(&self, now: Tick, stays: bool, was_taken_out: impl Fn(usize) -> bool) {
        self.granted_us.store(now.as_micros(), Ordering::Relaxed);
        if stays {
            return;
        }
        self.arrivals.iter().for_each(|arrival| arrival.store(0, Ordering::Relaxed));
        let left = (0..self.stands.len()).filter(|server| was_taken_out(*server) || mutant!(SharedPlaceForgotten));
        left.for_each(|server| self.stands[server].store(false, Ordering::Relaxed));
    }
}

/// The tries that a waiter may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The waiter tries for its whole local queue: when a server notifies it, and when its timer is due.
    First,
    /// The waiter may try once, to join the servers' queues or because it was woken. Then it waits.
    OneTry,
    /// The waiter waits until it is woken.
    Parked,
}

/// An acquire's place in the local queue.
#[derive(Clone, Debug)]
pub struct Waiter {
    /// The place in the servers' queues.
    pub slot: Arc<Slot>,
    /// The role of the acquire at first.
    pub role: Role,
}

impl Waiter {
    /// Lets the waiter try at least once.
    pub(crate) fn may_try(mut self) -> Self {
        if self.role == Role::Parked {
            self.role = Role::OneTry;
        }
        self
    }
}
