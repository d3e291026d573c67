//! Mapping: what is known of the map of a cluster, and when nodes are asked for it. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Tick;
use crate::op::Failure;
use crate::server::redis::address::Address;
use crate::server::redis::cluster::routed::Routed;
use crate::server::redis::cluster::topology::Topology;
use crate::server::redis::connection::backoff::Backoff;
use crate::server::redis::connection::failure::no_connection;

/// The least pause between two questions for a map that is known.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// How often nodes are asked for another map because one of them fails, before the pauses get longer, and the longer pause. A failover
/// that hasn't come by then needs people.
const OFTEN: u32 = 60;
const LONG_PAUSE: Duration = Duration::from_secs(10);

/// How many nodes are asked at once.
const ASKED: usize = 5;

/// How many nodes are remembered, to be asked later.
const REMEMBERED: usize = 64;

/// A map, and the nodes that it names.
pub(super) type Found = Result<(Topology, Vec<Address>), Failure>;

/// What is known of the map.
#[derive(Default)]
pub(super) struct Mapping {
    topology: Option<Topology>,
    /// The same map, with the nodes that were in charge last of the slots that nobody serves in it.
    in_charge: Option<Topology>,
    /// The nodes that any map has named, the latest first.
    seen: VecDeque<Address>,
    /// Whether nodes are being asked, or will be soon.
    asks: bool,
    /// Whether their answers are under way: these say nothing of what happens from now on.
    asking: bool,
    /// Whether the map has proved wrong since they were asked.
    again: bool,
    /// Whether they are asked only because a node fails.
    watches: bool,
    /// How often the map was the same while a node failed.
    unchanged: u32,
    /// The time before which nobody is asked again.
    rests_until: Tick,
    /// The pauses as long as there is no map, and why there is none.
    backoff: Backoff,
    last_failure: Option<Failure>,
    /// The operations that wait for the map that nodes are asked for, or will be.
    waiting: Vec<Routed>,
    /// Those that came for a newer one than nodes are asked for.
    behind: Vec<Routed>,
}

/// When nodes are asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// When a caller needs it.
    Never,
    /// At once: an operation has come meanwhile that needs a newer map.
    AtOnce,
    /// After a pause.
    Soon,
    /// After a pause, if a node still fails and nobody has asked before.
    Watch,
}

/// What becomes of an operation that needs the first map.
pub(super) enum Wait {
    /// The map is there.
    Known(Routed),
    /// It waits for the nodes that are asked next.
    Waits,
    /// The last attempt has just failed.
    Refused(Routed, Failure),
}

impl Mapping {
    /// The primary of a slot.
    pub(super) fn primary_of(&self, slot: u16) -> Option<Address> {
        self.topology.as_ref()?.primary_of(slot).cloned()
    }

    /// All primaries, if the map is known.
    pub(super) fn primaries(&self) -> Option<&[Address]> {
        self.topology.as_ref().map(Topology::primaries)
    }

    /// All primaries, and the nodes that were in charge last of what nobody serves: a list of locks is whole with those.
    pub(super) fn primaries_in_charge(&self) -> &[Address] {
        self.in_charge.as_ref().map_or(&[], Topology::primaries)
    }

    /// A slot is served by another node.
    pub(super) fn moved(&mut self, slot: u16, primary: &Address) {
        for topology in self.topology.iter_mut().chain(&mut self.in_charge) {
            topology.moved(slot, primary);
        }
    }

    /// Has an operation wait for the first map. Between two attempts only what may wait for a connection does.
    pub(super) fn wait(&mut self, routed: Routed, now: Tick) -> Wait {
        let op = &routed.request.op;
        match &self.last_failure {
            _ if self.topology.is_some() => return Wait::Known(routed),
            Some(failure) if now < self.rests_until && !op.survives_reconnect() && !op.asks_afresh() => {
                return Wait::Refused(routed, failure.clone());
            }
            _ => self.waiting.push(routed),
        }
        Wait::Waits
    }

    /// Has an operation wait for a map that nodes are asked for from now on.
    pub(super) fn await_map(&mut self, routed: Routed) {
        self.behind.push(routed);
    }

    /// How many slots no node serves.
    pub(super) fn unserved(&self) -> usize {
        self.topology.as_ref().map_or(0, Topology::unserved)
    }

    /// Whether there are slots that nobody serves, and that nobody was in charge of before.
    pub(super) fn has_hole(&self) -> bool {
        self.in_charge.as_ref().is_none_or(|in_charge| in_charge.unserved() > 0)
    }

    /// Takes the operations that have waited until their deadline, with the reason why they end.
    pub(super) fn overdue(&mut self, now: Tick) -> (Vec<Routed>, Failure) {
        let is_late = |routed: &mut Routed| routed.request.deadline <= now;
        let late = self.waiting.extract_if(.., is_late).chain(self.behind.extract_if(.., is_late)).collect();
        (late, no_connection(self.last_failure.as_ref()))
    }

    /// Takes the operations that wait.
    pub(super) fn take_waiting(&mut self) -> Vec<Routed> {
        self.waiting.append(&mut self.behind);
        std::mem::take(&mut self.waiting)
    }

    /// The map is needed, or has proved wrong: gives the time at which nodes have to be asked, unless they are being asked.
    pub(super) fn begins(&mut self, now: Tick) -> Option<Tick> {
        if std::mem::replace(&mut self.asks, true) {
            self.again = true;
            return None;
        }
        Some(self.rests_until.max(now))
    }

    /// An operation needs a newer map, without a rest: returns whether nodes have to be asked now, unless they are being asked. Whoever
    /// would have asked them later need not.
    pub(super) fn begins_at_once(&mut self) -> bool {
        self.again |= self.asking;
        self.asks = true;
        !self.asking
    }

    /// Nodes are asked now: some of those that the map names, in an order that changes.
    pub(super) fn some_primaries(&mut self) -> Vec<Address> {
        (self.again, self.asking) = (false, true);
        self.waiting.append(&mut self.behind);
        let mut nodes = self.primaries().unwrap_or_default().to_vec();
        fastrand::shuffle(&mut nodes);
        nodes.truncate(ASKED);
        nodes
    }

    /// The nodes to ask where none of those has answered: those of the URL, whose names may lead elsewhere by now, and all others.
    pub(super) fn all_nodes(&self, seeds: &[Address]) -> Vec<Address> {
        let others = self.seen.iter().filter(|node| !seeds.contains(node));
        seeds.iter().chain(others).cloned().collect()
    }

    /// Whether a map is that of another cluster than the one in use.
    pub(super) fn is_foreign(&self, map: &Topology) -> bool {
        self.topology.as_ref().is_some_and(|known| !known.is_akin_to(map))
    }

    /// The primaries that this map has in the place of nodes that are `used`.
    pub(super) fn successors(&self, map: &Topology, used: impl Fn(&Address) -> bool) -> Vec<Address> {
        self.in_charge.as_ref().map_or_else(Vec::new, |before| map.successors(before, used))
    }

    /// A map, in which slots that nobody serves have the node that was in charge of them last. Its successor may not have reported
    /// itself yet.
    pub(super) fn in_charge(&self, map: &Topology) -> Topology {
        let before = self.in_charge.as_ref().filter(|before| before.is_akin_to(map));
        before.map_or_else(|| map.clone(), |before| map.filled_from(before))
    }

    /// The nodes have answered. Gives the operations that have waited for that, and when to ask again.
    ///
    /// While a node `fails` it may have a successor soon, which a client with nothing to ask it would not notice. What proves the
    /// map wrong meanwhile need not wait for that.
    pub(super) fn answered(&mut self, found: &Found, fails: bool, now: Tick, chance: f64) -> (Vec<Routed>, Again) {
        match found {
            Ok((topology, nodes)) => {
                for node in nodes {
                    self.seen.retain(|seen| seen != node);
                    self.seen.push_front(node.clone());
                }
                self.seen.truncate(REMEMBERED);
                let is_same = self.topology.as_ref() == Some(topology);
                self.unchanged = if fails && is_same { self.unchanged.saturating_add(1) } else { 0 };
                self.in_charge = Some(self.in_charge(topology));
                self.topology = Some(topology.clone());
            }
            Err(failure) => {
                self.backoff.failed(now, chance);
                self.last_failure = Some(failure.clone());
            }
        }
        let is_known = self.topology.is_some();
        let is_asked_for = !std::mem::take(&mut self.watches);
        if is_asked_for || !is_known {
            self.rests_until = if is_known { now.after(PAUSE) } else { self.backoff.until(Tick::default()) };
        }
        // Without a map the next operation asks.
        self.asking = false;
        let is_needed = !self.behind.is_empty();
        self.asks = self.again && is_known || is_needed;
        let again = match (self.asks, fails && is_known) {
            (true, _) if is_needed => Again::AtOnce,
            (true, _) => Again::Soon,
            (false, true) => Again::Watch,
            (false, false) => Again::Never,
        };
        (std::mem::take(&mut self.waiting), again)
    }

    /// The pause before nodes are asked again because one of them fails.
    pub(super) fn watch_pause(&self) -> Duration {
        if self.unchanged < OFTEN { PAUSE } else { LONG_PAUSE }
    }

    /// A node that fails may have a successor by now. Returns whether to ask: nodes may be asked already.
    pub(super) fn watches(&mut self) -> bool {
        self.watches = !std::mem::replace(&mut self.asks, true);
        self.watches
    }
}

#[cfg(test)]
#[path = "mapping_tests.rs"]
mod tests;
