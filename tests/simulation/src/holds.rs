//! Holds: the validity that a handle reports, compared with the servers' keys.

use locktender::internals::clock::Tick;
use locktender::internals::protocol::{Grant, Tag};
use locktender::internals::validity::end;
use locktender::op::{HistoryEntry, HoldState};
use locktender::{LossReason, Outcome, Release};

use super::clock::{Instant, micros, ms};
use super::history::{Granted, Stretch};
use super::node::Node;
use super::sharing;
use super::world::World;

impl World {
    /// Checks the handle's present validity, after an input to its acquisition.
    pub(super) fn validity_may_have_changed(&mut self, client: usize, slot: usize, tick: Tick) {
        let entry = &self.processes[client].slots[slot];
        let (before, after) = (entry.valid_until, entry.machine.valid_until());
        if tick >= after && entry.machine.check(tick).is_ok() {
            self.violate(format!("c{client}.{slot}: check passes after the end of validity"));
        }
        if before == after {
            return;
        }
        let over = Tick::default();
        let entry = &self.processes[client].slots[slot];
        if before == over && (entry.grant.is_some() || entry.loss.is_some()) {
            self.violate(format!("c{client}.{slot}: an ended hold came back"));
        }
        if before != over && after != over && after < before {
            self.violate(format!("c{client}.{slot}: validity was shortened from {before:?} to {after:?}"));
        }
        if after != over && before != over && tick >= before {
            self.violate(format!("c{client}.{slot}: extended after the old validity had ended"));
        }
        let entry = &self.processes[client].slots[slot];
        let granted =
            Tick::from_micros(self.processes[client].clock.at(if before == over { self.now } else { entry.granted_at }));
        let hold_end = entry.recipe.options.max_hold.map(|span| granted.after(span));
        if hold_end.is_some_and(|end| after > end) {
            self.violate(format!("c{client}.{slot}: valid until {after:?}, beyond max_hold at {hold_end:?}"));
        }
        self.end_validity(client, slot);
        let now = self.now;
        let entry = &mut self.processes[client].slots[slot];
        entry.valid_until = after;
        entry.valid_since = now;
        if after > over {
            self.servers_keep(client, slot, after);
        }
    }

    /// Ends the stretch in which the handle had its validity until now.
    pub(super) fn end_validity(&mut self, client: usize, slot: usize) {
        let now = self.now;
        let process = &mut self.processes[client];
        let ends = process.clock.when(process.slots[slot].valid_until.as_micros());
        let entry = &mut process.slots[slot];
        if entry.valid_until > Tick::default() && ends > entry.valid_since {
            let kind = entry.recipe.keys.kind();
            let stretch = Stretch { from: entry.valid_since, to: ends.min(now), who: (client, slot), kind };
            self.history.stretches.entry(entry.name).or_default().push(stretch);
        }
        self.processes[client].slots[slot].valid_until = Tick::default();
    }

    /// An extension that a majority has answered before validity ended counts from its own sending, however late the answers are.
    pub(super) fn confirmed(&mut self, client: usize, slot: usize, tag: Tag, before: Tick, now: Tick) {
        let entry = &self.processes[client].slots[slot];
        let majority = entry.extended.get(&tag.round).is_some_and(|confirmed| *confirmed >= self.plan.needed());
        let Some(span) = entry.spans.get(&tag.round).filter(|_| majority && now < before) else { return };
        // A refusal of a server and a clock that jumps are other cases. The clock of a promoted replica is another one.
        if self.plan.outside
            || self.forgot && self.plan.fails_over
            || entry.refused
            || entry.gone.is_some()
            || entry.loss.is_some()
        {
            return;
        }
        let hold_end = entry.recipe.options.max_hold.map_or(Tick::NEVER, |span| self.granted_tick(client, slot).after(span));
        let promised = end(tag.sent, *span).min(hold_end);
        if entry.machine.valid_until() < promised && entry.machine.valid_until() > Tick::default() {
            let until = entry.machine.valid_until();
            self.violate(format!("c{client}.{slot}: a majority confirmed {promised:?} in time, but it is valid until {until:?}"));
        }
    }

    /// A hold that is renewed is not lost while every renewal can be answered before its validity ends.
    pub(super) fn expired(&mut self, client: usize, slot: usize) {
        let entry = &self.processes[client].slots[slot];
        let trip = 2 * (self.plan.latency_us + self.plan.jitter_us) + ms(4);
        let ttl = micros(entry.ttl());
        // A renewal is sent when two thirds of the ttl remain, or at once after a grant that took longer.
        let first = entry.first_span.min(ttl * 3 / 5);
        // Its connection is opened when nineteen twentieths remain, or at once.
        let opens = entry.first_span.min(ttl * 9 / 10);
        let answered = trip * 100 < ttl * 45 && trip < first && entry.trips * trip < opens;
        let answered = answered && trip < micros(self.plan.response_timeout);
        let undisturbed = self.plan.is_calm && self.plan.lost_per_mille == 0 && !self.processes[client].closed;
        if entry.recipe.options.renew && answered && undisturbed && entry.gone.is_none() {
            self.violate(format!("c{client}.{slot}: lost although every renewal is answered within {trip} of {ttl}"));
        }
    }

    /// Whether the outcome of a release names the other holder rightly.
    pub(super) fn names_owner(&self, client: usize, slot: usize, release: &Release) -> bool {
        let entry = &self.processes[client].slots[slot];
        let Some(ours) = entry.grant.as_ref().map(|grant| grant.fence) else { return true };
        let named = release.next_owner.is_some() || release.next_fence.is_some();
        let accused = release.next_fence.is_none_or(|fence| self.history.voted_for_another(fence, (client, slot)));
        // On one server any answer proves a hold that was granted after ours and before our release. But the higher fence may also
        // be the vote of an acquire of ours that had no answer.
        let others = self.history.grants.get(&entry.name).into_iter().flatten();
        let let_go = entry.owner.as_deref().and_then(|owner| self.history.whose(entry.name, owner)?.since).unwrap_or(self.now);
        // Not reported are a hold of which nobody has noted anything, one whose fence is of a clock that was ahead, and whatever
        // the release could not ask for.
        let proves = |HistoryEntry { id: (ms, number), note }: &HistoryEntry, fence: u64| {
            let is_of_lock = *note.lock == *entry.recipe.keys.lock() && note.fence == fence;
            is_of_lock && note.state != HoldState::Lost && fence <= ms * 1_000 + number
        };
        let is_shown = |fence: u64| entry.shown.iter().any(|entry| proves(entry, fence));
        // Those of its own kind may be inside beside it.
        let kind = entry.recipe.keys.kind();
        let excludes = |grant: &Granted| !sharing::overlaps(kind, grant.kind);
        let is_overlap =
            |grant: &Granted| excludes(grant) && grant.fence > ours && grant.returned < let_go && is_shown(grant.fence);
        let overlap = others.clone().any(is_overlap);
        let proved = self.plan.servers == 1 && entry.release_refused && overlap && !entry.unanswered && !self.forgot;
        let missed = proved && release.outcome == Outcome::Expired;
        // Whatever has happened to the server: nobody had the lock between.
        let voted = entry.owner.as_deref().map(|owner| self.history.voted(owner));
        let wrongly_excluded = release.excludes_others()
            && others.clone().any(|grant| excludes(grant) && Some(grant.voted) > voted && grant.returned < let_go);
        // The loss may have named a rival that has released the lock since, and whose fence the servers no longer prove.
        let loss = entry.loss.as_ref().filter(|loss| loss.reason == LossReason::Taken);
        let was_named = loss.is_some_and(|loss| loss.next_owner.is_some() || loss.next_fence.is_some());
        // An extension looks at the lock's key alone, where readers and permits show no owner.
        let was_named = was_named || self.plan.is_shared && loss.is_some();
        let fits = if release.outcome == Outcome::Taken { named || was_named } else { !named };
        accused && !missed && !wrongly_excluded && fits
    }

    pub(super) fn granted_tick(&self, client: usize, slot: usize) -> Tick {
        let process = &self.processes[client];
        Tick::from_micros(process.clock.at(process.slots[slot].granted_at))
    }

    /// A majority must keep the key for as long as the holder believes in its hold. Quarantine covers a server that forgot.
    pub(super) fn servers_keep(&mut self, client: usize, slot: usize, until: Tick) {
        if self.plan.outside {
            return;
        }
        let process = &self.processes[client];
        let entry = &process.slots[slot];
        let until = process.clock.when(until.as_micros());
        let Some(owner) = entry.owner.as_deref() else { return };
        let keeps = |server: &usize| {
            let node = &self.nodes[*server];
            let forgot = node.forgot_at.is_some_and(|at| at >= entry.started);
            forgot || node.kept_or_barred_until(&entry.recipe.keys, owner, self.now).is_some_and(|gone| gone >= until)
        };
        let keeping = (0..self.plan.servers).filter(keeps).count();
        if keeping < self.plan.needed() {
            self.violate(format!("c{client}.{slot}: valid until {until}, but only {keeping} servers keep it that long"));
        }
    }

    /// The number of servers that have the key of a hold now, and no newer vote.
    pub(super) fn keeping(&self, client: usize, slot: usize) -> usize {
        let entry = &self.processes[client].slots[slot];
        let keys = &entry.recipe.keys;
        let held = |node: &&Node| {
            let ours = entry.owner.as_deref().is_some_and(|owner| node.kept_until(keys, owner, self.now).is_some());
            ours && node.fence(keys, self.now) <= entry.grant.as_ref().map_or(u64::MAX, |grant| grant.fence)
        };
        self.nodes.iter().filter(held).count()
    }

    pub(super) fn granted(&mut self, client: usize, slot: usize, grant: &Grant) {
        let tick = self.read_clocks(client).tick;
        let entry = &self.processes[client].slots[slot];
        if tick >= entry.valid_until || entry.valid_until > tick.after(entry.ttl()) {
            self.violate(format!("c{client}.{slot}: granted at {tick:?} with validity until {:?}", entry.valid_until));
        }
        if self.history.attested(&grant.owner, grant.fence) < self.plan.needed() {
            self.violate(format!("c{client}.{slot}: granted with a fence that no majority attests: {grant:?}"));
        }
        let trips = self.trips(client);
        let entry = &mut self.processes[client].slots[slot];
        entry.trips = trips;
        entry.grant = Some(grant.clone());
        entry.granted_at = self.now;
        entry.first_span = micros(entry.valid_until.since(tick));
        let granted = Granted {
            client,
            asked: entry.started,
            returned: self.now,
            voted: self.history.voted(&grant.owner),
            fence: grant.fence,
            kind: entry.recipe.keys.kind(),
        };
        let name = entry.name;
        self.history.grants.entry(name).or_default().push(granted);
        self.stats.grants += 1;
        if let Some(why) = self.sinks(client, name, &granted) {
            self.violate(why);
        }
    }

    /// A hold must be known to be lost as soon as its process runs after the end of its validity.
    pub(super) fn late_loss(&self, client: usize, slot: usize, slack: Instant) -> Option<String> {
        let process = &self.processes[client];
        let entry = &process.slots[slot];
        let ends = process.clock.when(entry.valid_until.as_micros()).max(process.stopped_until);
        (entry.valid_until > Tick::default() && ends + slack < self.now)
            .then(|| format!("c{client}.{slot}: valid until {ends}, and its loss is still not reported"))
    }
}
