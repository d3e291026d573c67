//! Probe: a new client at the end of a run. Every lock must be granted again as soon as it can be free.

use std::sync::Arc;

use locktender::LockOptions;
use locktender::internals::protocol::Tag;
use locktender::op::{LockOp, Op, Reply, Verb, Verdict};

use super::clock::{Instant, micros, ms};
use super::worker::{LONGEST_HOLD, quorum_of};
use super::world::World;

/// The times that the probes of a run depend on.
pub(super) struct Probes {
    /// The time at which users were asked to give everything back.
    settled: Instant,
    /// The time at which each lock is free at last, by the operations that were applied to it so far.
    free: Vec<Instant>,
}

impl World {
    /// Users have released their locks, and faults are over. A new client must get every lock once the keys of dead clients have
    /// expired.
    pub(super) fn probe(&mut self, settled: Instant) {
        let client = self.plan.clients;
        // Lost messages are a fault, too: with too many of them every round may time out.
        self.plan.lost_per_mille = 0;
        // The probes wait for a server that lost its data.
        self.plan.unavailable_after += self.plan.max_ttl * 2;
        // If an answer takes about as long as the response timeout, no round need ever succeed.
        if micros(self.plan.response_timeout) <= 4 * (self.plan.latency_us + self.plan.jitter_us) {
            return;
        }
        let quarantined = self.nodes.iter().any(|node| node.troubled_at > 0) && quorum_of(&self.plan).is_some();
        let votes = self.now + if quarantined { micros(self.plan.max_ttl) * 2 } else { 0 };
        let expiry = |name: usize| {
            let expiries = self.nodes.iter().filter_map(|node| node.lock(&self.keys[name], self.now)).map(|(_, gone)| gone);
            expiries.fold(votes, Instant::max)
        };
        self.probes = Some(Probes { settled, free: (0..self.plan.names).map(expiry).collect() });
        for name in 0..self.plan.names {
            let mut options = LockOptions::default();
            options.ttl = std::time::Duration::from_millis(1_000);
            let plain = Arc::clone(&self.keys[name]);
            self.acquire(client, name, name, options, false, (plain, None, None));
        }
    }

    /// The longest time between the end of a hold and the grant to a waiter: the waiter may have tried in vain just before.
    fn until_granted(&self) -> u64 {
        ms(1_000) + self.moment()
    }

    /// A server has done an operation that a client sent before it died or released its locks. The operation may still write a key,
    /// or prolong it, but not for longer than it says. No client sends such an operation later.
    pub(super) fn prolonged(&mut self, (client, server): (usize, usize), tag: Tag, op: &Op, reply: &Reply) {
        let prolongs = match op {
            Op::Lock(LockOp { verb: Verb::Acquire { .. }, .. }) => reply.verdict == Verdict::Vote,
            Op::Lock(LockOp { verb: Verb::Extend { .. } | Verb::Heal { .. }, .. }) => reply.verdict == Verdict::Ok,
            _ => false,
        };
        let Some(keys) = op.keys().filter(|_| prolongs && client < self.plan.clients) else { return };
        let Some(name) = self.name_of(keys.lock()) else { return };
        let Some((_, gone)) = self.nodes[server].lock(keys, self.now) else { return };
        let process = &self.processes[client];
        let sent = process.clock.when(tag.sent.as_micros());
        let Some(probes) = &mut self.probes else { return };
        probes.free[name] = probes.free[name].max(gone);
        // Users that were granted a lock just then, or when their process continued, keep it for a while.
        let lets_go = (probes.settled + ms(1_000)).max(process.stopped_until) + LONGEST_HOLD + ms(5);
        if sent > lets_go {
            self.violate(format!("c{client} had to let go of l{name} by {lets_go}, and prolongs it at {sent}"));
        }
    }

    pub(super) fn look_back_at_probes(&mut self) {
        let Some(probes) = self.probes.take() else { return };
        let limit = self.until_granted();
        for (name, free) in probes.free.into_iter().enumerate() {
            let slots = &self.processes[self.plan.clients].slots;
            let got = slots.iter().find(|slot| slot.name == name).filter(|slot| slot.grant.is_some()).map(|slot| slot.granted_at);
            if got.is_none_or(|at| at > free + limit) {
                self.violate(format!("l{name} came free at {free}, and was granted at {got:?}"));
            }
        }
    }
}
