//! Samples: regular checks of the whole state, for keys that must be gone by now and waiters that must have been served.

use std::sync::Arc;

use locktender::internals::name::Keys;
use locktender::machine::{Value, owner_of};

use super::clock::{Instant, micros, ms};
use super::inside::Gate;
use super::node::Node;
use super::queue::Event;
use super::slot::{Gone, Slot};
use super::worker::quorum_of;
use super::world::World;

pub(super) const EVERY: u64 = ms(100);

impl World {
    pub(super) fn sample(&mut self) {
        for server in 0..self.plan.servers {
            self.look_for_leftovers(server);
            let keeps_older = self.plan.servers > 1 || self.plan.fails_over;
            if keeps_older && self.now.is_multiple_of(ms(500)) && self.nodes[server].up {
                self.nodes[server].snapshot(self.now);
            }
        }
        for process in &mut self.processes {
            process.live.retain(|slot| process.slots[*slot].is_live());
        }
        (0..=self.plan.names).for_each(|name| self.look_for_idle_lock(name));
        (0..self.plan.names).for_each(|name| self.look_for_open_rooms(name));
        self.look_for_forgotten_waiters();
        self.look_for_ghosts();
        self.look_for_uncounted();
        self.look_for_handovers();
        self.look_for_trusting_waiters();
        self.look_for_believers();
        self.look_for_blind_observers();
        for client in 0..self.processes.len() {
            if !self.processes[client].alive || self.processes[client].stopped_until > self.now {
                continue;
            }
            let late = self.processes[client].live.iter().find_map(|slot| self.late_loss(client, *slot, ms(4)));
            if let Some(why) = late {
                self.violate(why);
            }
        }
        if self.now < self.ends_at {
            self.queue.add(self.now + EVERY, Event::Sample);
        }
    }

    /// The time that a client may need on this network for work that it does at once.
    pub(super) fn moment(&self) -> u64 {
        let lost = if self.plan.lost_per_mille > 0 { ms(1_200) } else { 0 };
        6 * (self.plan.latency_us + self.plan.jitter_us) + ms(30) + lost
    }

    /// A key of an acquisition that is over, or of a round that was undone, is gone a second after the server can be reached.
    fn look_for_leftovers(&mut self, server: usize) {
        let node = &self.nodes[server];
        let now_us = node.wall_us(self.now);
        let mut found = None;
        for (key, entry) in node.state.iter(now_us) {
            // A clock is kept: its slot has one, however many locks there are.
            let is_kept = key == Keys::server_marker() || matches!(entry.value, Value::Clock(..) | Value::Log(_));
            if entry.expires_ms.is_none() && !is_kept {
                found = Some(format!("s{server}: {key} has no expiry"));
            }
            let Value::Text(value) = &entry.value else { continue };
            let owner: Arc<str> = owner_of(value).into();
            let Some(name) = self.name_of(key).filter(|name| self.is_leftover(server, *name, &owner)) else { continue };
            found = Some(format!("s{server}: {key} is still there: {:?}, {owner}", self.history.whose(name, &owner)));
        }
        if let Some(why) = found.or_else(|| self.left_mark(server)) {
            self.violate(why);
        }
    }

    pub(super) fn is_leftover(&self, server: usize, name: usize, owner: &Arc<str>) -> bool {
        let Some(whose) = self.history.whose(name, owner) else {
            return !owner.starts_with("claim ") && !owner.starts_with("foreign ") && Gate::of(owner).is_none();
        };
        let Some(since) = whose.since else { return false };
        let long_ago = |at: Instant| at + ms(1_000) + self.moment() < self.now;
        let (node, process) = (&self.nodes[server], &self.processes[whose.client]);
        let route = &self.routes[whose.client][server];
        let (written, orphan) = self.history.written(server, owner).unwrap_or_default();
        // A hold that its user gave up on purpose is left to expire. No client deletes data that a crash brought back.
        let kept = matches!(process.slots[whose.slot].gone, Some(Gone::HandedOver | Gone::Abandoned));
        let restored = node.forgot_at.is_some_and(|at| at >= written);
        let reachable = node.up
            && [node.troubled_at, node.stopped_until, process.stopped_until, route.troubled_until].into_iter().all(long_ago);
        process.alive && !process.closed && !kept && !orphan && !restored && reachable && long_ago(since) && long_ago(written)
    }

    /// Whether a server of a quorum came back only a short time ago. Then it may not vote yet, or waiters may not know that it
    /// votes again.
    pub(super) fn may_be_in_quarantine(&self, node: &Node) -> bool {
        let ends = (node.troubled_at + micros(self.plan.max_ttl) * 2).max(node.votes_at);
        quorum_of(&self.plan).is_some() && node.troubled_at > 0 && ends + ms(1_500) > self.now
    }

    fn has_settled(&self, at: Instant) -> bool {
        at + ms(1_000) < self.now
    }

    /// The servers that vote.
    pub(super) fn voting(&self) -> Vec<usize> {
        let votes = |node: &Node| node.up && self.has_settled(node.stopped_until) && !self.may_be_in_quarantine(node);
        (0..self.plan.servers).filter(|server| votes(&self.nodes[*server])).collect()
    }

    /// Whether no fault keeps a client from a lock that these servers would grant.
    pub(super) fn is_reliable(&self, client: usize, voting: &[usize]) -> bool {
        let (process, longest) = (&self.processes[client], self.plan.latency_us + self.plan.jitter_us);
        let settled = |server: &&usize| self.has_settled(self.routes[client][**server].troubled_until);
        let reaches = voting.iter().filter(settled).count() >= self.plan.needed();
        let reliable = process.alive && !process.closed && self.has_settled(process.stopped_until) && reaches;
        // The probes have a deadline of their own, which takes quarantine into account.
        let sane = self.probes.is_none() && self.plan.lost_per_mille == 0 && micros(self.plan.response_timeout) > 4 * longest;
        reliable && sane
    }

    /// A lock that is free, and has waiters, doesn't stay free; nor do several, if somebody waits for all of them.
    fn look_for_idle_lock(&mut self, name: usize) {
        let keys = self.keys.get(name).cloned();
        let is_free = |node: &Node, keys: &Keys| keys.each().all(|keys| node.lock(keys, self.now).is_none());
        let mut voting = self.voting();
        voting.retain(|server| keys.as_ref().is_none_or(|keys| is_free(&self.nodes[*server], keys)));
        let waits = |slot: &Slot| {
            let may = keys.is_some() || is_free(&self.nodes[0], &slot.recipe.keys);
            slot.name == name && slot.is_waiting() && self.can_be_granted(slot) && may && self.has_settled(slot.started)
        };
        let has_waiter =
            |client: usize| self.processes[client].live.iter().any(|slot| waits(&self.processes[client].slots[*slot]));
        let idle = !self.is_excused(name)
            && (0..self.processes.len()).any(|client| self.is_reliable(client, &voting) && has_waiter(client));
        self.idle_since[name] = if idle { self.idle_since[name].min(self.now) } else { Instant::MAX };
        // A waiter at the front of its local queue looks within a second, even if messages were lost. On a quorum it may look in
        // vain.
        let limit = if self.plan.servers == 1 { ms(1_000) + self.moment() + EVERY } else { ms(2_000) };
        if self.idle_since[name].saturating_add(limit) < self.now {
            self.violate(format!("l{name} is free, is waited for, and stays free"));
        }
    }

    /// The checks after the last event.
    pub(super) fn look_back(&mut self) {
        for (client, process) in self.processes.iter().enumerate() {
            for (slot, entry) in process.slots.iter().enumerate().filter(|_| process.alive) {
                let over = entry.grant.is_none() || entry.gone.is_some();
                let reported = entry.answered && entry.calls.is_empty();
                if !reported || !over || !entry.machine.is_finished() {
                    let calls = entry.calls.clone();
                    return self.violate(format!(
                        "c{client}.{slot} never ended: reported={reported} over={over} calls={calls:?} {:?}",
                        entry.machine
                    ));
                }
            }
        }
        self.look_back_at_probes();
        for name in 0..self.plan.names {
            let ends = self.now + ms(60_000 + self.plan.longest_ttl_ms);
            if self.nodes.iter().any(|node| node.lock(&self.keys[name], ends).is_some()) || self.has_marks(name, ends) {
                self.violate(format!("l{name} is left on a server"));
            }
        }
        let overlap = if self.plan.outside { None } else { self.history.overlap(&self.failovers.past, self.plan.quarantine) };
        let disorder = match (self.forgot, self.plan.servers) {
            (false, _) => self.history.disorder(),
            (true, 1) => self.disorder_of_failovers(),
            _ => None,
        };
        let verdicts = [overlap, disorder];
        if let Some(why) = verdicts.into_iter().flatten().next() {
            self.violate(why);
        }
    }
}
