//! Local queues: the waiters of one client, lock by lock.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::ops::Bound;
use std::sync::Arc;

use crate::clock::Tick;
use crate::machine;
use crate::mutant::mutant;
use crate::name::{self, Keys, Kind};
use crate::stack_text::StackText;
use crate::wait::passed::PassedNotices;
use crate::wait::shared_outage::SharedOutage;
use crate::wait::{Hint, Hinted, ListenState, Mode, Role, Slot, Waiter};

/// The local queues of one client: for every lock the waiters of this process, in the order in which they came.
#[derive(Debug)]
pub struct LocalQueues {
    client: Arc<str>,
    who: Arc<str>,
    /// What is known of the channels of the client; `None` if each lock has its own ones.
    listen_state: Option<Arc<ListenState>>,
    servers: usize,
    queues: BTreeMap<Box<str>, LocalQueue>,
    last_number: u64,
    passed: PassedNotices,
}

#[derive(Debug)]
struct LocalQueue {
    /// The slot of all waiters that are not fair.
    shared: Option<Arc<Slot>>,
    outage: Arc<SharedOutage>,
    listen_state: Arc<ListenState>,
    waiters: VecDeque<(u64, Arc<Slot>)>,
    /// The kind of the lock. If several hold it at once, the next one may get it after a grant, too.
    kind: Kind,
}

/// The reason why a waiter left its local queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// The waiter got the lock, and the next one gets it at `until` at best.
    Granted {
        /// The end of validity of the hold.
        until: Tick,
        /// Whether the slot joined the servers' queues again with the grant.
        stays: bool,
    },
    /// The waiter gave up: its notices, also those on their way, are for the next waiter.
    GaveUp,
    /// The waiter failed, and the other waiters may fail alike: each finds out by a try of its own.
    Failed,
}

/// The entry of a waiter in the queues of the servers: its mode, its client and its number, and who that is, for people.
fn entry((client, who): (&str, &str), mode: Mode, number: u64) -> Arc<str> {
    let mut entry = StackText::default();
    let _ = write!(entry, "{}:{client}:{number}", machine::mode_of(mode.kind, mode.fair));
    if let Kind::Semaphore(limit) = mode.kind {
        let _ = write!(entry, "{}{limit}", machine::LIMIT_OF_PERMITS);
    }
    let _ = write!(entry, " {who}");
    entry.share()
}

/// What stands before and behind each key in the name of a local queue for several locks. No lock's key has it.
const BETWEEN: char = '\0';

/// The name of the local queue of those who wait for the same several locks.
pub(crate) fn queue_key_of_several(keys: &Keys) -> String {
    let each = keys.parts().iter().flat_map(|part| [part.lock(), "\0"]);
    [BETWEEN.to_string()].into_iter().chain(each.map(str::to_owned)).collect()
}

/// The wake-up of one waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The waiter.
    pub waiter: u64,
    /// The role of the waiter from now on.
    pub role: Role,
    /// The time of its next try; `None` for at once.
    pub at: Option<Tick>,
}

impl LocalQueues {
    /// No queues. `client` is a unique id, `who` the readable fields of this process.
    #[must_use]
    pub fn new(client: &str, who: &str, servers: usize) -> Self {
        Self {
            client: client.into(),
            who: who.into(),
            listen_state: Some(Arc::new(ListenState::new(servers))),
            servers,
            queues: BTreeMap::new(),
            last_number: 0,
            passed: PassedNotices::default(),
        }
    }

    /// The same where releases are announced on a channel of each lock.
    pub(crate) fn by_lock(self) -> Self {
        Self { listen_state: None, ..self }
    }

    /// A server announces releases from now on, or announces none: of the lock with the key `lock`, or of all. Gives the first waiter of
    /// each queue that this concerns.
    pub fn set_listening(&self, server: usize, listens: bool, lock: Option<&str>) -> Vec<u64> {
        if let Some(state) = &self.listen_state {
            state.set(server, listens);
        }
        let sides = lock.map(name::sides_of);
        // The queues of waiters for a job, for a read lock and for a permit go by other keys of the lock.
        let concerns = |key: &str| match (lock, &sides) {
            (Some(lock), Some(sides)) => {
                let is_among = || key.starts_with(BETWEEN) && key.split(BETWEEN).any(|among| among == lock);
                key == lock || sides.iter().any(|side| key.starts_with(&**side)) || is_among()
            }
            _ => true,
        };
        let concerned = self.queues.iter().filter(|(key, _)| concerns(key)).map(|(_, queue)| queue);
        let firsts = concerned.filter_map(|queue| {
            queue.listen_state.set(server, listens);
            queue.waiters.front().map(|(waiter, _)| *waiter)
        });
        firsts.collect()
    }

    /// Whether anybody waits in a local queue.
    #[must_use]
    pub fn is_waited_for(&self, key: &str) -> bool {
        self.queues.contains_key(key)
    }

    /// The entry of a waiter of this client.
    #[must_use]
    pub fn entry(&self, mode: Mode, number: u64) -> Arc<str> {
        entry((&self.client, &self.who), mode, number)
    }

    /// Puts a waiter at the end of the local queue of the lock with the key `lock`.
    pub fn join(&mut self, lock: &str, waiter: u64, mode: impl Into<Mode>) -> Waiter {
        let mode = mode.into();
        let fair = mode.fair;
        let (servers, known) = (self.servers, &self.listen_state);
        let queue = self.queues.entry(lock.into()).or_insert_with(|| LocalQueue {
            shared: None,
            outage: Arc::default(),
            listen_state: known.clone().unwrap_or_else(|| Arc::new(ListenState::new(servers))),
            waiters: VecDeque::new(),
            kind: mode.kind,
        });
        // Those who wait for several locks stand in the queues of different ones.
        let is_alone = fair && !mutant!(FairSharesPlace) || mode.kind == Kind::Several;
        let shared = queue.shared.clone().filter(|_| !is_alone);
        // The servers don't know a new slot yet: its waiter tries once, to make the slot known.
        let role = match (queue.waiters.is_empty(), &shared) {
            (true, _) => Role::First,
            (false, None) => Role::OneTry,
            (false, Some(_)) => Role::Parked,
        };
        let slot = shared.unwrap_or_else(|| {
            self.last_number += 1;
            let entry = entry((&self.client, &self.who), mode, self.last_number);
            let shared = (Arc::clone(&queue.outage), Arc::clone(&queue.listen_state));
            Arc::new(Slot::new(self.last_number, fair, entry, servers, shared))
        });
        slot.enter();
        if !fair && mode.kind != Kind::Several {
            queue.shared = Some(Arc::clone(&slot));
        }
        queue.waiters.push_back((waiter, Arc::clone(&slot)));
        Waiter { slot, role }
    }

    /// Takes a waiter out of its local queue; gives the wake-ups of the others.
    pub fn quit(&mut self, lock: &str, waiter: u64, reason: LeaveReason) -> Vec<Wakeup> {
        let Some(queue) = self.queues.get_mut(lock) else { return Vec::new() };
        let Some(at) = queue.waiters.iter().position(|(other, _)| *other == waiter) else { return Vec::new() };
        let Some((_, slot)) = queue.waiters.remove(at) else { return Vec::new() };
        if slot.quit() && !slot.fair {
            queue.shared = None;
        }
        if queue.waiters.is_empty() {
            self.queues.remove(lock);
            return Vec::new();
        }
        queue.after(at == 0, &slot, reason)
    }

    /// Gives the wake-ups of the others where a waiter can't use its own, and continues.
    #[must_use]
    pub fn pass(&self, lock: &str, waiter: u64) -> Vec<Wakeup> {
        let others = self.queues.get(lock).into_iter().flat_map(|queue| &queue.waiters).filter(|(other, _)| *other != waiter);
        others.filter(|_| !mutant!(YieldKept)).map(|(other, _)| Wakeup { waiter: *other, role: Role::OneTry, at: None }).collect()
    }

    /// The waiter that a hint names; `None` if that waiter has left.
    #[must_use]
    pub fn find(&self, hinted: &Hinted<'_>) -> Option<u64> {
        let is_meant = |slot: &Slot| slot.number == hinted.number && slot.fair == hinted.mode.fair && !mutant!(HintMissed);
        let find = |key: &str| {
            let waiters = &self.queues.get(key)?.waiters;
            waiters.iter().find(|(_, slot)| is_meant(slot)).map(|(waiter, _)| *waiter)
        };
        // All waiters stand in the same queue on the servers, and here in queues of their own: those for a job one for each scheduled time,
        // those for permits one for each limit.
        find(hinted.lock)
            .or_else(|| {
                name::sides_of(hinted.lock).into_iter().find_map(|side| {
                    let from = (Bound::Included(&*side), Bound::Unbounded);
                    let of_side = self.queues.range::<str, _>(from).take_while(|(key, _)| key.starts_with(&side));
                    of_side.map(|(key, _)| key).find_map(|key| find(key))
                })
            })
            .or_else(|| {
                let several = self
                    .queues
                    .range::<str, _>((Bound::Included("\0"), Bound::Unbounded))
                    .map(|(key, _)| key)
                    .take_while(|key| key.starts_with(BETWEEN));
                several.filter(|key| key.split(BETWEEN).any(|among| among == hinted.lock)).find_map(|key| find(key))
            })
    }

    /// Whether a notice to a waiter that has left is to be passed on to the next one: once in a claim window for each server and
    /// lock, because anybody who may publish can invent such waiters. If a notice is not passed on, the next waiter tries one
    /// claim window later.
    pub fn passes_on(&mut self, server: usize, hinted: &Hinted<'_>, now: Tick) -> bool {
        hinted.hint.is_now() && self.passed.may_pass(server, hinted.lock, now)
    }

    /// The first waiter of every queue.
    pub fn fronts(&self) -> impl Iterator<Item = u64> {
        self.queues.values().filter_map(|queue| queue.waiters.front()).map(|(waiter, _)| *waiter)
    }

    /// The number of queues that are not empty.
    #[must_use]
    pub fn count(&self) -> usize {
        self.queues.len()
    }

    /// Whether no waiter is in any queue.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }
}

impl LocalQueue {
    fn after(&self, was_front: bool, slot: &Arc<Slot>, reason: LeaveReason) -> Vec<Wakeup> {
        // Then all waiters try at once. If the next of them fails, too, the others know already.
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
        let front = self.waiters.front().filter(|_| was_front && !mutant!(FirstRoleKept));
        let wakeup = front.map(|(waiter, next)| {
            let same = Arc::ptr_eq(next, slot);
            let at = match reason {
                // A waiter with a slot of its own is in the servers' queues already.
                LeaveReason::Granted { until, stays }
                    if (stays || !same || mutant!(FirstRoleNotQueued)) && !self.kind.is_shared() =>
                {
                    Some(until)
                }
                LeaveReason::Granted { .. } | LeaveReason::GaveUp | LeaveReason::Failed => None,
            };
            Wakeup { waiter: *waiter, role: Role::First, at }
        });
        wakeup.into_iter().chain(self.enqueues_again(wakeup, slot, reason)).chain(self.readers(wakeup, slot, reason)).collect()
    }

    /// The wake-ups of the readers that wait in the place of one that was granted the lock: they enter beside it, all at once.
    fn readers(&self, first: Option<Wakeup>, slot: &Arc<Slot>, reason: LeaveReason) -> impl Iterator<Item = Wakeup> {
        let is_reader = matches!(reason, LeaveReason::Granted { .. }) && self.kind == Kind::Read;
        let enter = is_reader && slot.lets_in() && !mutant!(ReaderEntersAlone);
        let same = self.waiters.iter().filter(move |(waiter, other)| {
            enter && Arc::ptr_eq(other, slot) && first.is_none_or(|first| first.waiter != *waiter)
        });
        same.map(|(waiter, _)| Wakeup { waiter: *waiter, role: Role::OneTry, at: None })
    }

    /// A wake-up where the grant took a shared slot out of the servers' queues, and waiters of that slot came after its acquire.
    /// The first of them puts the slot into the queues again, even if it is not the first of the local queue.
    fn enqueues_again(&self, first: Option<Wakeup>, slot: &Arc<Slot>, reason: LeaveReason) -> Option<Wakeup> {
        if !matches!(reason, LeaveReason::Granted { stays: false, .. }) || self.kind == Kind::Read || mutant!(SharedPlaceDropped)
        {
            return None;
        }
        let (waiter, _) = self.waiters.iter().find(|(_, other)| Arc::ptr_eq(other, slot))?;
        let is_notified = first.is_some_and(|first| first.waiter == *waiter);
        (!is_notified).then_some(Wakeup { waiter: *waiter, role: Role::OneTry, at: None })
    }
}

impl Hint {
    /// Whether the lock can be taken now.
    #[must_use]
    pub fn is_now(self) -> bool {
        matches!(self, Self::Free | Self::Claim)
    }
}

#[cfg(test)]
#[path = "local_queues_tests.rs"]
mod tests;
