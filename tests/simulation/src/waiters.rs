//! Waiters: the queue forgets no waiter, keeps no waiter that has given up, and serves the first one first.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use locktender::internals::name::Kind;
use locktender::internals::wait::Hinted;
use locktender::op::{LockOp, Op, Queued, Reply, Verb, Verdict};

use super::clock::{Instant, micros, ms};
use super::handover::Handover;
use super::ledger::Ledger;
use super::room::Rooms;
use super::slot::Slot;
use super::standing::{Refused, Signs};
use super::world::World;

/// The longest pause between two looks of a waiter at the front of its local queue.
pub(super) const LOOK: u64 = ms(1_000);

/// The knowledge about waiters that no single process has.
#[derive(Default)]
pub(super) struct Watch {
    /// The waiters of an entry: client, slot. A shared entry has several.
    pub(super) users: HashMap<Arc<str>, Vec<(usize, usize)>>,
    /// Since when no waiter uses an entry.
    unused_since: HashMap<Arc<str>, Instant>,
    /// Fair waiters by lock, in the order in which the server first added them to its queue.
    order: HashMap<usize, Vec<Arc<str>>>,
    /// Entries that had the lock. After an undone grant they are at their old places, but no order is promised for them.
    served: HashSet<Arc<str>>,
    /// Locks of which a message was lost.
    lost_notices: HashSet<usize>,
    /// The waiters for which no waiter of their process looked, at the last sample.
    forgotten: Vec<(usize, usize)>,
    /// The time of the last acquire of a client's waiters, by client and lock.
    pub(super) asked: HashMap<(usize, usize), Instant>,
    pub(super) signs: Signs,
    pub(super) refused: Refused,
    /// The owners that a transaction has granted a lock.
    pub(super) by_transaction: HashSet<Arc<str>>,
    pub(super) handover: Handover,
    pub(super) rooms: Rooms,
}

impl World {
    /// An acquire uses this entry in the queue from now on.
    pub(super) fn joins_queue(&mut self, entry: &Arc<str>, client: usize, slot: usize) {
        self.watch.users.entry(Arc::clone(entry)).or_default().push((client, slot));
        // A waiter for several locks comes to each queue with its arrival in another one: no order is promised for it.
        if self.processes[client].slots[slot].recipe.keys.kind() == Kind::Several {
            self.watch.served.insert(Arc::clone(entry));
        }
    }

    /// A message to a waiter doesn't arrive.
    pub(super) fn notice_is_lost(&mut self, client: usize, message: &str) {
        let Some(hinted) = Hinted::parse(message) else { return };
        let entry = self.processes[client].local_queues.entry(hinted.mode, hinted.number);
        self.watch.handover.misses_notice(entry);
        self.watch.lost_notices.extend(self.name_of(hinted.lock));
    }

    fn is_used(&self, entry: &str) -> bool {
        let waits = |(client, slot): &(usize, usize)| {
            let process = &self.processes[*client];
            process.alive && process.slots[*slot].is_waiting()
        };
        self.watch.users.get(entry).is_some_and(|users| users.iter().any(waits))
    }

    /// A server has answered an acquire. On a single server without faults, fair waiters get the lock in the order in which the
    /// server first added them to its queue.
    pub(super) fn served(&mut self, op: &Op, reply: &Reply) {
        // The end of a job notifies up to eight waiters at once, also those for its lock alone. They come in any order.
        let asks = matches!(op.verb(), Some(Verb::EndAttempt { .. } | Verb::Acquire { job: Some(_), .. }));
        let name = op.keys().filter(|_| asks).and_then(|keys| self.name_of(keys.lock()));
        if let Some(name) = name.filter(|name| self.jobs.get(*name).is_some_and(Ledger::has_ended)) {
            let all = self.watch.order.remove(&name);
            self.watch.served.extend(all.into_iter().flatten());
        }
        let Op::Lock(LockOp { keys, verb: Verb::Acquire { fair, place, adopt, .. }, .. }) = op else { return };
        let Some(name) = self.name_of(keys.lock()) else { return };
        if reply.verdict == Verdict::Vote && self.plan.servers == 1 {
            // The lock may be free again at the next sample.
            self.idle_since[name] = Instant::MAX;
            self.idle_since[self.plan.names] = Instant::MAX;
        }
        // Those that may enter together are let in together, and come in any order.
        let Some(place) = place.as_ref().filter(|_| *fair && !keys.kind().is_shared() && keys.kind() != Kind::Job) else {
            return;
        };
        let order = self.watch.order.entry(name).or_default();
        let at = order.iter().position(|entry| *entry == place.entry);
        match (&reply.verdict, &reply.queued) {
            (Verdict::Held { .. }, Queued::At { .. }) if at.is_none() && !self.watch.served.contains(&place.entry) => {
                order.push(Arc::clone(&place.entry));
            }
            (Verdict::Vote, _) => {
                let before: Vec<Arc<str>> = order[..at.unwrap_or(order.len())].to_vec();
                order.retain(|entry| *entry != place.entry);
                let first = self.watch.served.insert(Arc::clone(&place.entry));
                let passed = before.iter().find(|entry| self.is_used(entry)).filter(|_| first && adopt.is_none());
                if let Some(passed) = passed.filter(|_| self.is_orderly(name)) {
                    self.violate(format!("l{name}: {} was served before {passed}, which came first", place.entry));
                }
            }
            _ => (),
        }
    }

    fn is_orderly(&self, name: usize) -> bool {
        self.plan.servers == 1 && self.plan.is_calm && self.plan.lost_per_mille == 0 && !self.watch.lost_notices.contains(&name)
    }

    /// For every waiter, one waiter of its process looks within a second, or has a round under way.
    pub(super) fn look_for_forgotten_waiters(&mut self) {
        let mut forgotten = Vec::new();
        for client in 0..self.processes.len() {
            let process = &self.processes[client];
            if !process.alive || process.closed || process.stopped_until > self.now {
                continue;
            }
            let limit = LOOK.max(micros(self.plan.response_timeout)) + ms(10);
            let latest = process.clock.at(self.now) + limit;
            let looks = |name: usize| {
                let fronts = process.local_queues.fronts().map(|waiter| &process.slots[waiter as usize]);
                fronts
                    .filter(|slot| slot.name == name && slot.is_waiting())
                    .any(|slot| slot.machine.wake_at().as_micros() <= latest)
            };
            let waits = |slot: &&usize| process.slots[**slot].is_waiting() && process.slots[**slot].recipe.waits_in_queues();
            // On the fast path it has a round under way, and stands in no queue.
            let asks = |slot: &Slot| slot.machine.is_asking() && slot.machine.wake_at().as_micros() <= latest;
            let waiting = process.live.iter().filter(waits).filter(|slot| !asks(&process.slots[**slot]));
            let unseen = waiting.filter(|slot| !looks(process.slots[**slot].name));
            forgotten.extend(unseen.map(|slot| (client, *slot)));
        }
        // The next waiter is notified at the same instant, but not in the same event.
        let still = forgotten.iter().find(|waiter| self.watch.forgotten.contains(waiter)).copied();
        self.watch.forgotten = forgotten;
        if let Some((client, slot)) = still {
            self.violate(format!("c{client}.{slot} waits, and nobody of its process looks for it"));
        }
    }

    /// No entry stays in a queue after its waiters have left.
    pub(super) fn look_for_ghosts(&mut self) {
        let entries: Vec<Arc<str>> = self.watch.users.keys().cloned().collect();
        for entry in entries {
            if self.is_used(&entry) {
                self.watch.unused_since.remove(&entry);
            } else {
                self.watch.unused_since.entry(entry).or_insert(self.now);
            }
        }
        let ghost = (0..self.plan.servers).find_map(|server| self.ghost_at(server));
        if let Some(ghost) = ghost {
            self.violate(ghost);
        }
    }

    fn ghost_at(&self, server: usize) -> Option<String> {
        let node = &self.nodes[server];
        // No client deletes data that a crash brought back.
        if !node.up || node.forgot_at.is_some() {
            return None;
        }
        let now_us = node.wall_us(self.now);
        for keys in &self.keys {
            let Some(members) = node.state.members(keys.queue(), now_us) else { continue };
            for (_, entry) in members.from(0) {
                let client = entry.split(':').nth(1).unwrap_or_default();
                let lives = members.score(client).is_some_and(|life| life.unsigned_abs() >= now_us);
                if lives && self.is_ghost(server, entry) {
                    return Some(format!("s{server}: {entry} is still in the queue for l{}", keys.name()));
                }
            }
        }
        None
    }

    /// Whether a closed client's entry should be gone: all its commands were undone behind them, however late they arrived.
    fn is_left_behind(&self, client: usize, server: usize, since: Instant) -> bool {
        let (node, process, route) = (&self.nodes[server], &self.processes[client], &self.routes[client][server]);
        let troubles = [node.troubled_at, node.stopped_until, process.stopped_until, route.broke_at, route.stalled_until];
        let is_quiet = troubles.into_iter().all(|at| at + ms(2_000) < since || at == 0);
        let limit = 2 * micros(self.plan.response_timeout) + self.moment();
        process.alive && is_quiet && !route.connects_late && since.max(route.arrived_at()) + limit < self.now
    }

    fn is_ghost(&self, server: usize, entry: &str) -> bool {
        let Some(since) = self.watch.unused_since.get(entry).copied() else { return false };
        let Some(&(client, _)) = self.watch.users.get(entry).and_then(|users| users.first()) else { return true };
        let (node, process) = (&self.nodes[server], &self.processes[client]);
        let troubles = [node.troubled_at, node.stopped_until, process.stopped_until, self.routes[client][server].troubled_until];
        // A command from before may still be read, and may add a waiter that has left to the queue.
        let is_quiet = troubles.into_iter().all(|at| at + ms(2_000) < since || at == 0);
        if process.closed {
            return self.is_left_behind(client, server, since);
        }
        process.alive && is_quiet && since + ms(1_000) + self.moment() < self.now
    }
}
