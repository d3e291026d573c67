//! Lost marks: the marks of those inside are deleted, as an operator or an eviction does, and their gate stays.
//!
//! Whoever was inside is valid until its next renewal, or until its validity ends. The gate bars the lock for so long: nobody joins it, and
//! nothing changes it or writes a mark. Only what can't be otherwise is excused, of this one gate, until it ends: that it has no mark, and
//! that the server has no mark of a hold that was granted before.

use std::collections::BTreeSet;
use std::sync::Arc;

use locktender::internals::name::Keys;

use super::clock::{Instant, ms};
use super::faults::Fault;
use super::inside::Inside;
use super::node::Node;
use super::plan::Plan;
use super::queue::Event;
use super::world::World;

/// The pause until marks are looked for again, where there were none to lose.
const AGAIN: u64 = ms(100);

/// A gate whose marks were deleted.
#[derive(Clone, Debug)]
pub(super) struct Bereft {
    lock: Arc<str>,
    /// Its value and its end, by which it is known: neither changes any more.
    value: Arc<str>,
    ends_ms: Option<u64>,
    /// The owners of the marks.
    pub(super) owners: BTreeSet<Arc<str>>,
}

/// Draws the losses of a plan with readers and permits, for half of them.
pub(super) fn draw(plan: &mut Plan, rng: &mut fastrand::Rng) {
    if !plan.is_shared || rng.bool() {
        return;
    }
    for _ in 0..rng.usize(1..=4) {
        plan.faults.push((rng.u64(..plan.busy_us), Fault::LoseMarks { name: rng.usize(..plan.names) }));
    }
}

impl Node {
    /// Deletes the marks of a lock, if somebody is inside; returns whether it did.
    fn lose_marks(&mut self, keys: &Keys, now: Instant) -> bool {
        let now_us = self.wall_us(now);
        let inside = Inside::of(&self.state, keys, now_us);
        let (Some(gate), true) = (self.state.get(keys.lock(), now_us), self.up && inside.has_holders()) else { return false };
        let owners = inside.owners().cloned().collect();
        let value = gate.text().unwrap_or_default().into();
        self.bereft.push(Bereft { lock: keys.lock().into(), value, ends_ms: gate.expires_ms, owners });
        self.state.remove(keys.marks());
        true
    }

    /// The gate of a lock, if its marks were deleted. A promoted replica may have them.
    pub(super) fn bereft(&self, keys: &Keys, now_us: u64) -> Option<&Bereft> {
        let gate = self.state.get(keys.lock(), now_us).filter(|_| self.state.get(keys.marks(), now_us).is_none())?;
        let is_it = |bereft: &&Bereft| {
            *bereft.lock == *keys.lock() && Some(&*bereft.value) == gate.text() && bereft.ends_ms == gate.expires_ms
        };
        self.bereft.iter().find(is_it)
    }

    /// The instant until which a hold is kept, or until which the gate bars the lock if its mark was deleted.
    pub(super) fn kept_or_barred_until(&self, keys: &Keys, owner: &str, now: Instant) -> Option<Instant> {
        let is_lost = || self.bereft(keys, self.wall_us(now)).is_some_and(|bereft| bereft.owners.contains(owner));
        let barred = || self.lock(keys, now).filter(|_| is_lost()).map(|(_, gone)| gone);
        self.kept_until(keys, owner, now).or_else(barred)
    }
}

impl World {
    /// The marks of a lock are deleted, as soon as somebody is inside.
    pub(super) fn lose_marks(&mut self, name: usize) {
        let keys = Arc::clone(&self.keys[name]);
        if self.nodes[0].lose_marks(&keys, self.now) {
            self.trace(|| format!("the marks of l{name} are deleted"));
        } else if self.now < self.plan.busy_us {
            self.queue.add(self.now + AGAIN, Event::Fault(Fault::LoseMarks { name }));
        }
    }
}
