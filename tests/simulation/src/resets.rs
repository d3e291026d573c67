//! Resets: an operator resets jobs, whether an attempt runs or not.

use locktender::internals::name::Kind;
use locktender::op::{Op, Verb, Verdict};

use super::faults::Fault;
use super::plan::Plan;
use super::standing::Standing;
use super::world::World;

/// Draws the resets of a plan with jobs, for half of them.
pub(super) fn draw(plan: &mut Plan, rng: &mut fastrand::Rng) {
    if !plan.has_jobs || rng.bool() {
        return;
    }
    for _ in 0..rng.usize(1..=8) {
        plan.faults.push((rng.u64(..plan.busy_us), Fault::Reset { name: rng.usize(..plan.names) }));
    }
}

impl World {
    /// The operator's request reaches the server, unless that doesn't answer.
    pub(super) fn reset_job(&mut self, name: usize) {
        let (now, keys) = (self.now, self.keys_of(name, Kind::Job));
        let node = &mut self.nodes[0];
        if !node.up || node.stopped_until > now {
            return;
        }
        let op = Op::on_nobodys_behalf(keys, Verb::Reset);
        let before = op.keys().map(|keys| Standing::of(node, keys, now));
        let (reply, verdict) = node.apply(&op, "", now);
        let (messages, number) = (node.state.take_published(), node.number);
        self.trace(|| format!("l{name} is reset -> {:?}", reply.verdict));
        if let Err(why) = verdict {
            self.violate(why);
        }
        self.enter_in_ledger(0, &op, &reply, before.as_ref().and_then(|before| before.holder.as_deref()));
        let lives = |entry: &str, now_us| self.lives((0, name), entry, now_us);
        // As of every queue: a node that lost data may have a waiter that left, and not the sign of life of another one of its client.
        let is_wanted = self.nodes[0].forgot_at.is_none() && before.is_some_and(|before| before.is_wanted(lives));
        if reply.verdict == Verdict::Ok && is_wanted && messages.is_empty() {
            self.violate(format!("l{name} is reset, and no waiter is notified"));
        }
        self.published((0, number), messages);
    }
}
