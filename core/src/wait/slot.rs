//! Slot: one place in a lock's queue on the servers, and the waiter in this process to which it belongs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use crate::clock::Tick;
use crate::mutant::mutant;
use crate::op::Place;
use crate::wait::shared_outage::SharedOutage;

/// Which servers tell this client of releases.
#[derive(Debug)]
pub struct ListenState(Box<[AtomicU8]>);

/// Nobody has listened there yet, or what was heard is being asked for again.
const UNKNOWN: u8 = 0;
const HEARS: u8 = 1;
const DEAF: u8 = 2;

impl ListenState {
    /// Nothing is known of any of the servers.
    #[must_use]
    pub fn new(servers: usize) -> Self {
        Self((0..servers).map(|_| AtomicU8::new(UNKNOWN)).collect())
    }

    /// The server tells now, or tells nothing.
    pub fn set(&self, server: usize, listens: bool) {
        self.0[server].store(if listens { HEARS } else { DEAF }, Ordering::Relaxed);
    }

    /// Whether `needed` servers tell, as far as one knows.
    #[must_use]
    pub fn suffices(&self, needed: usize) -> bool {
        self.0.iter().filter(|server| server.load(Ordering::Relaxed) != DEAF).count() >= needed
    }
}

/// A place in the queue. Shared by the waiters of one process on one lock, unless they queue by principle.
#[derive(Debug)]
pub struct Slot {
    /// Tells the slots of a client apart.
    pub number: u64,
    /// Whether its waiter queues by principle.
    pub fair: bool,
    entry: Arc<str>,
    users: AtomicUsize,
    /// When it arrived at each server, by that server's clock; 0 for not yet, or not since the last grant.
    arrivals: Box<[AtomicU64]>,
    /// Which servers may have it in their queues.
    stands: Box<[AtomicBool]>,
    /// When the lock was last granted here while others waited behind it, by this process's clock, in microseconds.
    granted_us: AtomicU64,
    /// How often each server has put it in its queue.
    lineups: Box<[AtomicU64]>,
    outage: Arc<SharedOutage>,
    listen_state: Arc<ListenState>,
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
            lineups: zeros(),
            outage,
            listen_state,
        }
    }

    pub(super) fn enter(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether that was the last.
    pub(super) fn quit(&self) -> bool {
        self.users.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// Whether anybody waits here.
    pub(crate) fn is_used(&self) -> bool {
        self.users.load(Ordering::Relaxed) > 0
    }

    /// The waiter, as the servers know it.
    #[must_use]
    pub fn entry(&self) -> &Arc<str> {
        &self.entry
    }

    /// Whether others of this process wait here, too.
    pub(crate) fn is_shared(&self) -> bool {
        self.users.load(Ordering::Relaxed) > 1
    }

    /// What an acquire at `server` says of the place.
    pub(crate) fn place(&self, server: usize) -> Place {
        let arrival = self.arrivals[server].load(Ordering::Relaxed);
        Place { entry: Arc::clone(&self.entry), arrival, stays: self.is_shared() }
    }

    /// A server has put it in its queue, in answer to an acquire that was sent then. A refusal from before the last grant may be
    /// heard after it: that place was used up.
    pub(crate) fn arrived(&self, server: usize, arrival: u64, (sent, is_vote): (Tick, bool)) {
        let is_used_up = !is_vote && sent.as_micros() < self.granted_us.load(Ordering::Relaxed);
        if !is_used_up || mutant!(UsedPlaceNamed) {
            self.arrivals[server].store(arrival, Ordering::Relaxed);
        }
        self.stands[server].store(true, Ordering::Relaxed);
        self.lineups[server].fetch_add(1, Ordering::Relaxed);
    }

    /// How often this server has put it in its queue, as far as one knows.
    pub(crate) fn lineups(&self, server: usize) -> u64 {
        self.lineups[server].load(Ordering::Relaxed)
    }

    /// Whether some server has it in its queue, as far as one knows.
    pub(crate) fn has_arrived(&self) -> bool {
        (0..self.stands.len()).any(|server| self.has_arrived_at(server))
    }

    /// Whether this server has it in its queue, as far as one knows.
    pub(crate) fn has_arrived_at(&self, server: usize) -> bool {
        self.stands[server].load(Ordering::Relaxed)
    }

    /// The lock was granted here, and others wait behind: who comes next begins at the tail, where the place `stays` put already.
    pub(crate) fn served(&self, now: Tick, stays: bool) {
        self.granted_us.store(now.as_micros(), Ordering::Relaxed);
        if !stays {
            self.arrivals.iter().for_each(|arrival| arrival.store(0, Ordering::Relaxed));
            self.stands.iter().for_each(|stands| stands.store(false, Ordering::Relaxed));
        }
    }

    pub(crate) fn unavailable_since(&self) -> Option<Tick> {
        self.outage.since()
    }

    /// The line gets no majority since then, the time not counted in which this process stood still.
    pub(crate) fn begin_outage(&self, since: Tick) {
        self.outage.begin(since);
    }

    /// One of the line had a majority.
    pub(crate) fn end_outage(&self) {
        self.outage.end();
    }

    pub(crate) fn listen_state(&self) -> &ListenState {
        &self.listen_state
    }
}

/// What a waiter may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It speaks for its line: tries when it is told to, and looks by itself.
    First,
    /// It may try once, to line up or because it was told; then it waits.
    OneTry,
    /// It waits until it is told.
    Parked,
}

/// An acquire's place in the line of its process.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The place in the servers' queues.
    pub slot: Arc<Slot>,
    /// What the acquire may do at first.
    pub role: Role,
}

impl Seat {
    /// Lets the waiter try at least once.
    pub(crate) fn may_try(mut self) -> Self {
        if self.role == Role::Parked {
            self.role = Role::OneTry;
        }
        self
    }
}
