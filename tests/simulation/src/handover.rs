//! Hand-over: a released lock goes to a waiter at once. The notified waiter comes, and no waiter depends on its next look.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use locktender::internals::clock::Tick;
use locktender::internals::name::Keys;
use locktender::internals::protocol::Tag;
use locktender::internals::wait::Hint;
use locktender::machine::{CLAIM_MS, Message};
use locktender::op::{LockOp, Op, Reply, Verb, Verdict};

use super::clock::{Instant, micros, ms};
use super::node::Node;
use super::sample::EVERY;
use super::slot::Slot;
use super::waiters::LOOK;
use super::world::World;

/// The time between the first and the last of some waiters that come when a holder's key expires.
const RANKS: u64 = ms(60);

/// The longest pause after a round that failed.
const FAILED: u64 = ms(500);

/// The time that the waiters of a quorum may need until one of them has a majority.
const SPLIT: u64 = ms(500);

/// The expectations for waiters on a single server.
#[derive(Default)]
pub(super) struct Handover {
    /// Waiters that were notified, and have not come yet.
    notified: Vec<Wakeup>,
    /// Since when a lock has been free, or kept for a waiter, while all that wait for it are in order.
    idle_since: HashMap<usize, Instant>,
    /// The time by which the entry of a waiter must be in the server's queue, for entries that are not.
    queued_by: HashMap<Arc<str>, Instant>,
    /// Entries whose waiters missed a notification: they are in no queue. They only ask again if they are at the front of their
    /// local queue.
    missed: HashSet<Arc<str>>,
    /// The time of the last grant to an entry.
    granted_at: HashMap<Arc<str>, Instant>,
    /// The time until which no waiter need come for a lock. Its expiry was shortened, which is not notified, or the notified waiter
    /// can't come.
    excused_until: HashMap<usize, Instant>,
}

impl Handover {
    /// A notification of a waiter doesn't arrive.
    pub(super) fn misses_notice(&mut self, entry: Arc<str>) {
        self.missed.insert(entry);
    }
}

struct Wakeup {
    client: usize,
    slot: usize,
    entry: Arc<str>,
    name: usize,
    at: Instant,
    tick: Tick,
    by: Instant,
}

impl World {
    /// The lock that has this key.
    pub(super) fn name_of(&self, lock: &str) -> Option<usize> {
        self.keys.iter().position(|keys| keys.lock() == lock)
    }

    /// A waiter gets a notice of a server.
    pub(super) fn is_notified(&mut self, client: usize, slot: usize, entry: Arc<str>, hint: Hint) {
        if self.plan.servers > 1 {
            return;
        }
        let window = if let Hint::Next(window) = hint { micros(window) } else { 0 };
        let (name, tick) = (self.processes[client].slots[slot].name, self.read_clocks(client).tick);
        let by = self.now + window + window / 100 + self.moment();
        self.watch.handover.notified.push(Wakeup { client, slot, entry, name, at: self.now, tick, by });
    }

    /// A single server has answered a request.
    pub(super) fn came(&mut self, client: usize, tag: Tag, op: &Op, reply: &Reply, messages: &[Message]) {
        let Some(name) = op.keys().and_then(|keys| self.name_of(keys.lock())) else { return };
        if self.plan.servers > 1 {
            return;
        }
        let limit = FAILED + self.moment() + RANKS;
        let notified = messages.iter().filter_map(|message| self.client_on(&message.channel));
        let comes = |client: usize| self.is_undisturbed(client, self.now.saturating_sub(limit)) && self.receives_all(client);
        let none_comes = !messages.is_empty() && !notified.into_iter().all(comes);
        let is_several = op.keys().is_some_and(|keys| keys.kind().is_shared());
        let ends = self.nodes[0].lock(&self.keys[name], self.now).map_or(0, |(_, gone)| gone);
        let handover = &mut self.watch.handover;
        // The waiter that is the first by now learns the length of the grant only when it looks after the waiter before it.
        if none_comes || reply.verdict == Verdict::Vote {
            let until = handover.excused_until.entry(name).or_default();
            *until = (*until).max(self.now + ms(CLAIM_MS + 5));
        }
        if let Op::Lock(LockOp { verb: Verb::Acquire { adopt: Some(_), .. }, .. }) = op {
            handover.excused_until.insert(name, self.now + ms(1_100));
        }
        // The last one of several to end has left: the others end sooner, which is not notified.
        if let (true, Op::Lock(LockOp { verb: Verb::Release { .. }, .. })) = (is_several, op) {
            let until = handover.excused_until.entry(name).or_default();
            *until = (*until).max(ends + LOOK + ms(5));
        }
        if !messages.is_empty() || reply.verdict == Verdict::Vote {
            handover.idle_since.remove(&name);
        }
        let entry = match op {
            Op::Lock(LockOp { verb: Verb::Acquire { place: Some(place), .. }, .. }) => &place.entry,
            Op::Lock(LockOp { verb: Verb::Release { leave: Some(entry), .. }, .. })
            | Op::Lock(LockOp { verb: Verb::EndAttempt { leave: Some(entry), .. }, .. })
            | Op::Lock(LockOp { by: entry, verb: Verb::Leave, .. }) => entry,
            _ => return,
        };
        handover.queued_by.remove(entry);
        handover.missed.remove(entry);
        let granted_at = handover.granted_at.get(entry).copied();
        handover.notified.retain(|notified| notified.client != client || notified.entry != *entry || notified.tick > tag.sent);
        // A round takes no longer than this. The next waiter with an entry names no arrival before the last grant to that entry.
        // The exception is an earlier acquire that was read late, and put the entry back into its old place.
        let granted_at = granted_at.filter(|_| self.plan.lost_per_mille == 0 && self.is_undisturbed(client, ms(1_000)));
        let granted_at =
            granted_at.filter(|at| self.processes[client].clock.at(*at) < tag.sent.as_micros() && !self.plan.outside);
        let earliest = granted_at.map(|at| self.nodes[0].wall_us(at.saturating_sub(micros(self.plan.response_timeout))));
        if let (Op::Lock(LockOp { verb: Verb::Acquire { place: Some(place), .. }, .. }), Some(earliest)) = (op, earliest)
            && (1..earliest).contains(&place.arrival)
        {
            self.violate(format!("{} was granted l{name}, and keeps its place before others", place.entry));
        }
    }

    /// An acquire was granted.
    pub(super) fn place_was_granted(&mut self, client: usize, slot: usize) {
        let entries = self.watch.users.iter().filter(|(_, users)| users.contains(&(client, slot)));
        let granted: Vec<_> = entries.map(|(entry, _)| (Arc::clone(entry), self.now)).collect();
        self.watch.handover.granted_at.extend(granted);
    }

    /// A client is closed: it passes notifications on behind everything that it had sent before, however late that arrives. Until
    /// then it counts as a waiter that has died. The next waiter looks after it when the claim window is over. If that one is of this
    /// client too, nobody was notified, and the first one that lives notices with its next look.
    pub(super) fn passes_on_late(&mut self, client: usize, waited: &[usize]) {
        if self.plan.servers > 1 {
            return;
        }
        let arrives = if self.routes[client][0].is_up() { self.routes[client][0].arrived_at() } else { Instant::MAX };
        for name in 0..self.plan.names {
            let is_alone = waited.iter().filter(|waits_for| **waits_for == name).count() < 2;
            let until = arrives.min(self.now + if is_alone { ms(CLAIM_MS) } else { LOOK } + ms(5));
            self.excuse(name, until);
        }
    }

    /// A client doesn't pass on the notification of a waiter that is gone, because it did so for another waiter a moment ago. The
    /// waiter that was notified to look next may be gone, too: all of them gave up while the server could not be reached. Then the
    /// lock is free until a waiter looks.
    pub(super) fn notice_is_kept(&mut self, lock: &str) {
        let Some(name) = self.name_of(lock) else { return };
        self.excuse(name, self.now + LOOK + ms(5));
    }

    /// No waiter need come for a lock until then.
    pub(super) fn excuse(&mut self, name: usize, until: Instant) {
        let excused = self.watch.handover.excused_until.entry(name).or_default();
        *excused = (*excused).max(until);
    }

    /// Whether no waiter need come for a job's lock now: its next attempt may begin later.
    pub(super) fn is_excused(&self, name: usize) -> bool {
        self.plan.has_jobs && self.watch.handover.excused_until.get(&name).is_some_and(|until| *until > self.now)
    }

    /// A lock stays kept for a waiter that can't use it yet: another one of its locks is only kept for another waiter.
    pub(super) fn stays_kept(&mut self, name: usize) {
        self.excuse(name, self.now + ms(CLAIM_MS + 5));
    }

    /// The locks that a client waits for, once for each of its waiters.
    pub(super) fn waits_for(&self, client: usize) -> Vec<usize> {
        let process = &self.processes[client];
        let slots = process.live.iter().map(|slot| &process.slots[*slot]);
        slots.filter(|slot| !slot.answered).flat_map(|slot| self.names_of(&slot.recipe.keys)).collect()
    }

    /// Whether no fault has disturbed the way between a client and the servers since then.
    pub(super) fn is_undisturbed(&self, client: usize, since: Instant) -> bool {
        let process = &self.processes[client];
        let is_quiet = |server: usize| {
            let (node, route) = (&self.nodes[server], &self.routes[client][server]);
            let troubles =
                [node.troubled_at, node.stopped_until, process.stopped_until, route.troubled_until, route.connected_at];
            let connected = node.up && route.is_up();
            connected && node.forgot_at.is_none() && troubles.into_iter().all(|at| at < since || at == 0)
        };
        process.alive && !process.closed && (0..self.plan.servers).all(is_quiet)
    }

    /// Whether the lock can be granted: not if the answers use up the ttl.
    pub(super) fn can_be_granted(&self, slot: &Slot) -> bool {
        micros(slot.ttl()) > 8 * (self.plan.latency_us + self.plan.jitter_us)
    }

    /// Whether a client receives the notices of all servers.
    fn receives_all(&self, client: usize) -> bool {
        self.routes[client].iter().all(|route| route.is_up() && route.subscribed)
    }

    pub(super) fn look_for_handovers(&mut self) {
        let longest = self.plan.latency_us + self.plan.jitter_us;
        // A client of another library that asks while the lock is free may be faster than any waiter.
        if micros(self.plan.response_timeout) <= 4 * longest || self.probes.is_some() || self.plan.has_foreigners {
            return;
        }
        // A single server in quarantine queues nobody.
        if self.plan.quarantine && self.may_be_in_quarantine(&self.nodes[0]) {
            return;
        }
        self.look_for_late();
        // A jump of a clock is not notified.
        if self.plan.lost_per_mille == 0 && self.plan.lost_notices_per_mille == 0 && !self.plan.outside {
            if self.plan.servers == 1 {
                self.look_for_unqueued();
            }
            // A server of a quorum that comes back doesn't vote for a while.
            if self.plan.servers == 1 || self.plan.is_calm {
                (0..self.plan.names).for_each(|name| self.look_for_slow_handover(name));
            }
        }
    }

    /// A waiter that was notified comes.
    fn look_for_late(&mut self) {
        let mut notified = std::mem::take(&mut self.watch.handover.notified);
        notified.retain(|notified| {
            let slot = &self.processes[notified.client].slots[notified.slot];
            slot.is_waiting() && self.is_undisturbed(notified.client, notified.at) && self.receives_all(notified.client)
        });
        if let Some(late) = notified.iter().find(|notified| notified.by + EVERY < self.now) {
            let why = format!("l{}: {} was notified at {}, and didn't come", late.name, late.entry, late.at);
            self.violate(why);
        }
        self.watch.handover.notified = notified;
    }

    /// A waiter has a place in the queue, unless a fault disturbed its way to the server. A process that was silent for three
    /// seconds is dropped with all its waiters. The waiters that aren't at the front of their local queue come back when the front
    /// one does. A waiter that shares such a place comes back with it.
    fn look_for_unqueued(&mut self) {
        let limit = self.moment();
        let now_us = self.nodes[0].wall_us(self.now);
        let mut queued_by: HashMap<Arc<str>, Instant> = HashMap::new();
        for (entry, users) in self.watch.users.iter().filter(|(entry, _)| !self.watch.handover.missed.contains(*entry)) {
            let slot = |user: &(usize, usize)| &self.processes[user.0].slots[user.1];
            let waiting = || users.iter().filter(|user| slot(user).is_waiting());
            let undisturbed = |user: &(usize, usize), since| self.is_undisturbed(user.0, slot(user).started.min(since));
            let is_in_order = |user: &&(usize, usize)| {
                self.can_be_granted(slot(user))
                    && slot(user).started + limit < self.now
                    && undisturbed(user, self.now.saturating_sub(FAILED + limit))
            };
            let Some(user) = waiting().find(is_in_order) else { continue };
            let mut by = self.now + limit;
            if let Some(earlier) = waiting().find(|user| !undisturbed(user, self.now)) {
                if !self.processes[earlier.0].local_queues.fronts().any(|front| front as usize == earlier.1) {
                    continue;
                }
                by += LOOK;
            }
            let process = &self.processes[user.0];
            let members = |keys: &Keys| self.nodes[0].state.members(keys.queue(), now_us);
            let is_in = |keys: &Keys| members(keys).is_some_and(|members| members.score(entry).is_some());
            let stands = process.listening && slot(user).recipe.keys.each().any(is_in);
            if !stands {
                queued_by.insert(Arc::clone(entry), self.watch.handover.queued_by.get(entry).copied().unwrap_or(by));
            }
        }
        let late = queued_by.iter().filter(|(_, by)| **by < self.now).map(|(entry, _)| entry).min();
        if let Some(entry) = late {
            let why = format!("{entry} waits, and is in no queue, or gets no messages");
            self.violate(why);
        }
        self.watch.handover.queued_by = queued_by;
    }

    /// No waiter has to wait for its next look.
    fn look_for_slow_handover(&mut self, name: usize) {
        let limit = self.moment() + if self.plan.servers > 1 { SPLIT } else { RANKS };
        let settled = self.now.saturating_sub(FAILED + limit);
        let keys = &self.keys[name];
        let is_free = |node: &&Node| node.lock(keys, self.now).is_none_or(|(holder, _)| holder.starts_with("claim "));
        let held = self.nodes.iter().filter(is_free).count() < self.plan.needed();
        let waiting = |client: usize| {
            let process = &self.processes[client];
            // Who waits for several locks may be notified of one of them.
            let is_among = move |slot: &&Slot| slot.recipe.keys.each().any(|among| among.lock() == keys.lock());
            process.live.iter().map(|slot| &process.slots[*slot]).filter(is_among).filter(|slot| slot.is_waiting())
        };
        let of_name = |client| waiting(client).filter(|slot| slot.name == name);
        let waits = |client| of_name(client).any(|slot| slot.started + limit <= self.now && self.can_be_granted(slot));
        let is_in_order = |client| {
            // A process that stands still may have places of waiters that have left: what takes them out is still to be sent.
            let Some(first) = waiting(client).map(|slot| slot.started).min() else {
                return self.processes[client].stopped_until <= settled;
            };
            self.is_undisturbed(client, settled.min(first)) && self.receives_all(client)
        };
        let excused = self.watch.handover.excused_until.get(&name).is_some_and(|until| *until > self.now);
        let mut clients = 0..self.processes.len();
        let idle = !held && !excused && clients.clone().any(waits) && clients.all(is_in_order);
        if !idle {
            self.watch.handover.idle_since.remove(&name);
            return;
        }
        let since = *self.watch.handover.idle_since.entry(name).or_insert(self.now);
        if since + limit < self.now {
            self.violate(format!("l{name} is free since {since}, and its waiters are not notified"));
        }
    }
}
