//! Foreign clients: they take a lock if it is free, ask again every 100 ms if it isn't, and announce no release.

use std::sync::Arc;

use locktender::machine::Value;
use locktender::op::{LockOp, Op, Verb};

use super::clock::{Instant, micros, ms};
use super::node::Node;
use super::queue::Event;
use super::world::World;

/// The lifetime of a foreign client's key.
const TTL: u64 = ms(3_000);

/// The time that the waiters of a lock may need to find out that its holder is foreign: their pause between two looks for a holder
/// of ours.
const UNNOTICED: u64 = ms(1_000);

/// The longest pause between two requests of waiters after that time.
const LOOK: u64 = ms(125);

/// One client for each lock.
#[derive(Default)]
pub(super) struct Foreigner {
    holds: Option<(Arc<str>, Instant)>,
    count: u32,
}

impl World {
    /// The next step of a foreign client with a lock.
    pub(super) fn foreign_step(&mut self, name: usize) {
        let before = self.foreigners[name].holds.take();
        if let Some((value, _)) = &before {
            self.foreign_release(name, value);
        }
        if self.settled {
            return;
        }
        let after = match before {
            Some(_) => self.rng.u64(..ms(50)),
            None if self.foreign_acquire(name) => {
                [self.rng.u64(..ms(20)), self.rng.u64(..ms(500)), self.rng.u64(..TTL)][self.rng.usize(..3)]
            }
            None => ms(100),
        };
        self.queue.add(self.now + after, Event::Foreign { name });
    }

    fn foreign_acquire(&mut self, name: usize) -> bool {
        let foreigner = &mut self.foreigners[name];
        foreigner.count += 1;
        let value: Arc<str> = format!("foreign {name} {}", foreigner.count).into();
        let (keys, now, mut votes) = (self.keys[name].clone(), self.now, 0);
        for node in self.nodes.iter_mut().filter(|node| node.up && node.stopped_until <= now) {
            let wall_us = node.wall_us(now);
            if node.state.get(keys.lock(), wall_us).is_none() {
                node.state.put(keys.lock(), Value::Text(Arc::clone(&value)), wall_us, Some(TTL / 1_000));
                votes += 1;
            }
        }
        self.trace(|| format!("{value} has {votes} votes"));
        if votes < self.plan.needed() {
            self.foreign_release(name, &value);
            return false;
        }
        self.foreigners[name].holds = Some((value, now));
        true
    }

    fn foreign_release(&mut self, name: usize, value: &Arc<str>) {
        self.trace(|| format!("{value} goes"));
        let (keys, now) = (self.keys[name].clone(), self.now);
        for node in self.nodes.iter_mut().filter(|node| node.up && node.stopped_until <= now) {
            if node.lock(&keys, now).is_some_and(|(holder, _)| holder == &**value) {
                node.state.remove(keys.lock());
            }
        }
    }

    /// An acquire of a waiter arrives at a server.
    pub(super) fn asked(&mut self, client: usize, op: &Op) {
        if let Op::Lock(LockOp { keys, verb: Verb::Acquire { place: Some(_), .. }, .. }) = op
            && let Some(name) = self.name_of(keys.lock())
        {
            self.watch.asked.insert((client, name), self.now);
        }
    }

    /// Whether a majority of the servers has shown a foreign holder for as long as it holds. A restarted server answers that it
    /// doesn't vote yet, whatever owner its key has. Without a majority no waiter knows whether the lock is held; its growing
    /// pauses then decide when it asks again.
    fn majority_shows(&self, name: usize, value: &str) -> bool {
        let shows = |node: &&Node| {
            let answers = node.up && !self.may_be_in_quarantine(node);
            answers && node.lock(&self.keys[name], self.now).is_some_and(|(holder, _)| holder == value)
        };
        self.nodes.iter().filter(shows).count() >= self.plan.needed()
    }

    /// A foreign holder notifies no waiter. So one waiter of each process must ask for the lock as often as the other library's own
    /// waiters do.
    pub(super) fn look_for_trusting_waiters(&mut self) {
        let longest = self.plan.latency_us + self.plan.jitter_us;
        if self.plan.lost_per_mille > 0 || micros(self.plan.response_timeout) <= 4 * longest || self.probes.is_some() {
            return;
        }
        // A round and the pause behind it, and the delay of a timer.
        let since = self.now.saturating_sub(LOOK + 4 * longest + ms(10));
        let long_ago = self.now.saturating_sub(UNNOTICED + LOOK + 8 * longest + ms(50));
        let trusts = |name: usize, client: usize| {
            let process = &self.processes[client];
            let waits = |slot: &usize| {
                let slot = &process.slots[*slot];
                // Who gets its answers after its ttl learns of no holder: those to a transaction, and to the script behind it.
                let learns = micros(slot.ttl()) > 4 * longest;
                slot.name == name && slot.is_waiting() && slot.recipe.waits_in_queues() && slot.started < long_ago && learns
            };
            process.live.iter().any(waits)
                && self.is_undisturbed(client, long_ago)
                && self.watch.asked.get(&(client, name)).is_none_or(|asked| *asked < since)
        };
        let held_for_long = |name: &usize| {
            let holds = self.foreigners[*name].holds.as_ref();
            holds.is_some_and(|(value, at)| *at < long_ago && self.majority_shows(*name, value))
        };
        let names = (0..self.foreigners.len()).filter(held_for_long);
        let mut waiters = names.flat_map(|name| (0..self.plan.clients).map(move |client| (name, client)));
        if let Some((name, client)) = waiters.find(|(name, client)| trusts(*name, *client)) {
            self.violate(format!("l{name} is another library's, and c{client} waits to be notified of its release"));
        }
    }
}
