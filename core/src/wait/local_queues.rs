//! Local queues: the waiters of one client, lock by lock.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::clock::Tick;
use crate::mutant::mutant;
use crate::wait::passed::PassedTurns;
use crate::wait::shared_outage::SharedOutage;
use crate::wait::{Hint, Hinted, ListenState, Role, Seat, Slot};

/// The lines of one client: for every lock whoever of this process waits for it, in the order in which they came.
#[derive(Debug)]
pub struct LocalQueues {
    client: Arc<str>,
    who: Arc<str>,
    listen_state: Arc<ListenState>,
    servers: usize,
    queues: BTreeMap<Box<str>, LocalQueue>,
    last_number: u64,
    passed: PassedTurns,
}

#[derive(Debug, Default)]
struct LocalQueue {
    /// The slot of those that don't queue by principle.
    shared: Option<Arc<Slot>>,
    outage: Arc<SharedOutage>,
    waiters: VecDeque<(u64, Arc<Slot>)>,
}

/// Why a waiter left its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// It got the lock, and at best the next one gets it at `until`.
    Granted {
        /// The end of its validity.
        until: Tick,
        /// The slot lined up again in the same moment.
        stays: bool,
    },
    /// It gave up: what it was told, or was about to be told, is for the next one.
    GaveUp,
    /// It failed, and so may the others: each finds out for itself.
    Failed,
}

/// What a waiter is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The waiter.
    pub waiter: u64,
    /// What it may do from now on.
    pub role: Role,
    /// When to try; `None` for at once.
    pub at: Option<Tick>,
}

impl LocalQueues {
    /// No lines. `client` is unique, `who` are the readable fields of this process.
    #[must_use]
    pub fn new(client: &str, who: &str, servers: usize) -> Self {
        Self {
            client: client.into(),
            who: who.into(),
            listen_state: Arc::new(ListenState::new(servers)),
            servers,
            queues: BTreeMap::new(),
            last_number: 0,
            passed: PassedTurns::default(),
        }
    }

    /// Which servers tell of releases.
    #[must_use]
    pub fn listen_state(&self) -> &Arc<ListenState> {
        &self.listen_state
    }

    /// The entry of a waiter of this client.
    #[must_use]
    pub fn entry(&self, fair: bool, number: u64) -> Arc<str> {
        let mut entry = String::with_capacity(self.client.len() + self.who.len() + 16);
        let _ = write!(entry, "{}:{}:{number} {}", if fair { 'f' } else { 'b' }, self.client, self.who);
        entry.into()
    }

    fn slot(&mut self, lock: &str, fair: bool) -> Arc<Slot> {
        self.last_number += 1;
        let entry = self.entry(fair, self.last_number);
        let outage = Arc::clone(&self.queues.entry(lock.into()).or_default().outage);
        Arc::new(Slot::new(self.last_number, fair, entry, self.servers, (outage, Arc::clone(&self.listen_state))))
    }

    /// Puts a waiter at the end of the line for the lock with the key `lock`.
    pub fn join(&mut self, lock: &str, waiter: u64, fair: bool) -> Seat {
        let known = self.queues.get(lock);
        let is_first = known.is_none_or(|queue| queue.waiters.is_empty());
        let shared = known.and_then(|queue| queue.shared.clone()).filter(|_| !fair || mutant!(FairSharesPlace));
        // A new slot has to be made known to the servers.
        let role = match (is_first, &shared) {
            (true, _) => Role::First,
            (false, None) => Role::OneTry,
            (false, Some(_)) => Role::Parked,
        };
        let slot = shared.unwrap_or_else(|| self.slot(lock, fair));
        slot.enter();
        let queue = match self.queues.get_mut(lock) {
            Some(queue) => queue,
            None => self.queues.entry(lock.into()).or_default(),
        };
        if !fair {
            queue.shared = Some(Arc::clone(&slot));
        }
        queue.waiters.push_back((waiter, Arc::clone(&slot)));
        Seat { slot, role }
    }

    /// Takes a waiter out of its line; the answer is what others are to be told.
    pub fn quit(&mut self, lock: &str, waiter: u64, reason: LeaveReason) -> Vec<Wakeup> {
        let Some(queue) = self.queues.get_mut(lock) else { return Vec::new() };
        let Some(at) = queue.waiters.iter().position(|(other, _)| *other == waiter) else { return Vec::new() };
        let Some((_, slot)) = queue.waiters.remove(at) else { return Vec::new() };
        if slot.quit() && !slot.fair {
            queue.shared = None;
        }
        let wakeups = queue.after(at == 0, &slot, reason);
        if queue.waiters.is_empty() {
            self.queues.remove(lock);
        }
        wakeups
    }

    /// A waiter can't make use of its turn, but goes on: what the others are to be told.
    #[must_use]
    pub fn pass(&self, lock: &str, waiter: u64) -> Vec<Wakeup> {
        let others = self.queues.get(lock).into_iter().flat_map(|queue| &queue.waiters).filter(|(other, _)| *other != waiter);
        others.filter(|_| !mutant!(YieldKept)).map(|(other, _)| Wakeup { waiter: *other, role: Role::OneTry, at: None }).collect()
    }

    /// Who is meant by a hint; `None` if nobody waits there any more.
    #[must_use]
    pub fn find(&self, hinted: &Hinted<'_>) -> Option<u64> {
        let queue = self.queues.get(hinted.lock)?;
        let is_meant = |slot: &Slot| slot.number == hinted.number && slot.fair == hinted.fair && !mutant!(HintMissed);
        queue.waiters.iter().find(|(_, slot)| is_meant(slot)).map(|(waiter, _)| *waiter)
    }

    /// Whether the turn of a waiter that is gone is to be passed on to the next one: for each server and lock once in a claim
    /// window, because anybody who may publish can make up such waiters. What is not passed on costs the next one that window.
    pub fn passes_on(&mut self, server: usize, hinted: &Hinted<'_>, now: Tick) -> bool {
        hinted.hint.is_now() && self.passed.may_pass(server, hinted.lock, now)
    }

    /// The front of every line.
    pub fn fronts(&self) -> impl Iterator<Item = u64> {
        self.queues.values().filter_map(|queue| queue.waiters.front()).map(|(waiter, _)| *waiter)
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }
}

impl LocalQueue {
    fn after(&self, was_front: bool, slot: &Arc<Slot>, reason: LeaveReason) -> Vec<Wakeup> {
        // They all try at once then; that the next of them fails, too, is no news.
        if reason == LeaveReason::Failed && !mutant!(FailureKept) && self.outage.spreads() {
            let others = self.waiters.iter().enumerate();
            return others
                .map(|(at, (waiter, _))| Wakeup {
                    waiter: *waiter,
                    role: if at == 0 { Role::First } else { Role::OneTry },
                    at: None,
                })
                .collect();
        }
        let front = self.waiters.front().filter(|_| was_front && !mutant!(TurnKept));
        let wakeup = front.map(|(waiter, next)| {
            let same = Arc::ptr_eq(next, slot);
            let at = match reason {
                // Whoever has a slot of its own is lined up already.
                LeaveReason::Granted { until, stays } if stays || !same || mutant!(TurnNotLinedUp) => Some(until),
                LeaveReason::Granted { .. } | LeaveReason::GaveUp | LeaveReason::Failed => None,
            };
            Wakeup { waiter: *waiter, role: Role::First, at }
        });
        wakeup.into_iter().chain(self.lines_up_again(wakeup, slot, reason)).collect()
    }

    /// A place that the grant took out of the queue, and in which others wait who came behind its acquire: the first of them lines
    /// it up again, also where it doesn't speak for the line.
    fn lines_up_again(&self, first: Option<Wakeup>, slot: &Arc<Slot>, reason: LeaveReason) -> Option<Wakeup> {
        if !matches!(reason, LeaveReason::Granted { stays: false, .. }) || mutant!(SharedPlaceDropped) {
            return None;
        }
        let (waiter, _) = self.waiters.iter().find(|(_, other)| Arc::ptr_eq(other, slot))?;
        let is_told = first.is_some_and(|first| first.waiter == *waiter);
        (!is_told).then_some(Wakeup { waiter: *waiter, role: Role::OneTry, at: None })
    }
}

impl Hint {
    /// Whether the lock may be had now.
    #[must_use]
    pub fn is_now(self) -> bool {
        matches!(self, Self::Free | Self::Claim)
    }
}

#[cfg(test)]
#[path = "local_queues_tests.rs"]
mod tests;
