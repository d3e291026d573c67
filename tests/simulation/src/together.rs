//! Together: several locks that some users acquire all at once, and the holds that they then have, each of a lock of its own.
//!
//! The checks look at one lock. An operation on several is for them an operation on each: see [`each`].

use std::sync::Arc;

use locktender::internals::name::{Keys, Kind};
use locktender::internals::protocol::{AcquirePath, GrantOfSeveral, Input, Recipe};
use locktender::machine::{Message, claim, is_claim};
use locktender::op::{LockOp, Op, QueuePlace, Reply, Verb, Verdict};

use super::brief::brief;
use super::resp;
use super::slot::Slot;
use super::standing::Standing;
use super::world::World;

/// The place of the waiter that asks for several locks.
pub(super) fn place_of(op: &Op) -> Option<&QueuePlace> {
    let Op::Lock(LockOp { keys, verb: Verb::Acquire { place, .. }, .. }) = op else { return None };
    place.as_ref().filter(|_| keys.kind() == Kind::Several)
}

/// Whether the waiter of an acquire stands in the queue of a lock, and whether the lock is kept for it.
pub(super) fn place_at(op: &Op, standing: impl Fn(&str) -> bool, holder: Option<&str>) -> (bool, bool) {
    let Some(place) = place_of(op) else { return (false, false) };
    (standing(&place.entry), holder.is_some_and(|holder| *holder == *claim(&place.entry)))
}

/// What an operation is for each of its locks; `places` says of each whether its waiter stood in the queue, and whether the lock was kept
/// for it.
///
/// An acquire that is granted is one of each lock. One that is refused is one of the lock that is in the way. From the others its waiter
/// leaves, if it was notified of one of them or stood there, or else it only looks at them. What is kept for it before a lock that is only
/// kept for another one stays so.
pub(super) fn each(op: &Op, reply: &Reply, places: &[(bool, bool)]) -> Vec<(Op, Reply)> {
    let (Op::Lock(LockOp { keys, by, verb }), Some(_)) = (op, op.keys().filter(|keys| keys.kind() == Kind::Several)) else {
        return vec![(op.clone(), reply.clone())];
    };
    let is_refused = matches!(verb, Verb::Acquire { .. }) && reply.verdict != Verdict::Vote;
    let place = place_of(op).filter(|_| matches!(reply.verdict, Verdict::Held { .. }));
    let was_notified = place.is_some_and(|place| place.arrival > 0) && places.iter().all(|(stood, _)| !stood);
    let keeps = if reply.holder().is_some_and(is_claim) { reply.at } else { 0 };
    let leaves = |at: usize| (was_notified || places[at].0) && !(at < keeps && places[at].1);
    let parts = keys.parts().iter().enumerate().map(|(at, part)| {
        let (by, verb) = match place.filter(|_| leaves(at)) {
            _ if !is_refused || at == reply.at => (by, verb.clone()),
            Some(place) => (&place.entry, Verb::Leave),
            None => (by, Verb::Inspect),
        };
        let mut of_part = reply.clone();
        of_part.fence = reply.fences.get(at).copied().unwrap_or(reply.fence);
        if is_refused && at != reply.at {
            of_part.verdict = Verdict::Ok;
        }
        (Op::Lock(LockOp { keys: Arc::clone(part), by: Arc::clone(by), verb }), of_part)
    });
    parts.collect()
}

/// Whether a message is about this lock.
pub(super) fn is_about(message: &Message, keys: &Keys) -> bool {
    message.payload.splitn(4, ' ').nth(3) == Some(keys.lock())
}

/// Several locks as one.
fn keys_of(parts: impl Iterator<Item = Arc<Keys>>) -> Option<Arc<Keys>> {
    Keys::of_several(parts.map(|part| (*part).clone()).collect()).map(Arc::new)
}

/// The operation of a script that is called with these words.
pub(super) fn op(script: &str, words: &[String], known: &[Arc<Keys>]) -> Option<Op> {
    let count: usize = words.first()?.parse().ok()?;
    let parts = words.get(1..=count)?.chunks(5).map(|words| {
        let is_it = |keys: &&Arc<Keys>| *words == [keys.lock(), keys.clock(), keys.queue(), keys.marker(), keys.marks()];
        known.iter().find(is_it).cloned()
    });
    let keys = keys_of(parts.collect::<Option<Vec<_>>>()?.into_iter())?;
    let Op::Lock(op) = resp::op(script.strip_suffix(" together")?, words, known)? else { return None };
    Some(Op::Lock(LockOp { keys, ..op }))
}

impl World {
    /// The locks of these keys.
    pub(super) fn names_of(&self, keys: &Keys) -> Vec<usize> {
        keys.each().filter_map(|keys| self.name_of(keys.lock())).collect()
    }

    /// Two or three locks in any order, for a user that wants several.
    pub(super) fn draw_together(&mut self) -> Option<Arc<Keys>> {
        if !self.plan.is_together || self.rng.u8(..5) < 2 {
            return None;
        }
        let mut names: Vec<usize> = (0..self.plan.names).collect();
        self.rng.shuffle(&mut names);
        names.truncate(self.rng.usize(2..=self.plan.names));
        keys_of(names.into_iter().map(|name| Arc::clone(&self.keys[name])))
    }

    /// Begins the hold of each of several locks. The user holds the first one, and the others with it.
    pub(super) fn begin_holds(&mut self, client: usize, slot: usize, grant: &GrantOfSeveral) {
        let now = self.read_clocks(client);
        let process = &self.processes[client];
        let (first, parts) = (process.slots.len(), Arc::clone(&process.slots[slot].recipe.keys));
        for at in 0..parts.parts().len() {
            let Some(name) = self.name_of(parts.parts()[at].lock()) else { continue };
            let seed = self.rng.u64(..);
            let process = &mut self.processes[client];
            let from = &process.slots[slot];
            let recipe = Arc::new(Recipe { keys: Arc::clone(&self.keys[name]), ..(*from.recipe).clone() });
            let machine = AcquirePath::full(Arc::clone(&recipe), seed, now);
            let mut hold = Slot::new(recipe, machine, name, from.worker, from.started, from.stopped);
            hold.owner = Some(Arc::clone(&grant.owner));
            hold.unanswered = from.unanswered;
            hold.held_with = (at > 0).then_some(first);
            process.live.push(first + at);
            process.slots.push(hold);
            self.history.hand_on(name, &grant.owner, client, (slot, first + at));
        }
        self.holds(client, first);
        for (at, fence) in grant.fences.iter().enumerate() {
            self.bring(client, first + at, Input::Granted(grant.clone(), *fence));
        }
    }

    /// The locks that are held with this one and that nobody has ended yet, from the last to the first.
    pub(super) fn held_with(&self, client: usize, slot: usize) -> Vec<usize> {
        let slots = &self.processes[client].slots;
        let others = (slot + 1..slots.len()).take_while(|other| slots[*other].held_with == Some(slot));
        others.filter(|other| slots[*other].gone.is_none()).collect::<Vec<_>>().into_iter().rev().collect()
    }

    /// Whether another one of several locks that were acquired at once was lost.
    pub(super) fn has_lost_another(&self, client: usize, slot: usize) -> bool {
        let slots = &self.processes[client].slots;
        let first = slots[slot].held_with.unwrap_or(slot);
        let is_with = |(at, entry): (usize, &Slot)| at != slot && (at == first || entry.held_with == Some(first));
        let mut others = slots.iter().enumerate().skip(first).filter(|(at, entry)| is_with((*at, entry)));
        others.any(|(_, entry)| entry.loss.is_some())
    }

    /// One of several locks is lost: the others are no longer renewed.
    pub(super) fn lost_with_others(&mut self, client: usize, slot: usize) {
        let first = self.processes[client].slots[slot].held_with;
        for other in first.map_or_else(|| self.held_with(client, slot), |first| vec![first]) {
            let entry = &self.processes[client].slots[other];
            if entry.gone.is_none() && entry.loss.is_none() {
                self.bring(client, other, Input::StopRenewing);
            }
        }
    }

    /// A waiter has asked for several locks, of which this is one: its client lives wherever it is known. The lock may stay kept for it.
    pub(super) fn asked_among(&mut self, server: usize, keys: &Keys, entry: &str) {
        let client = entry.split(':').nth(1).unwrap_or_default();
        let (Some(name), node) = (self.name_of(keys.lock()), &self.nodes[server]) else { return };
        let now_us = node.wall_us(self.now);
        let is_known = node.state.members(keys.queue(), now_us).is_some_and(|queue| queue.score(client).is_some());
        if node.lock(keys, self.now).is_some_and(|(holder, _)| holder == claim(entry)) {
            self.stays_kept(name);
        }
        if is_known {
            self.watch.signs.entry((server, name)).or_default().insert(client.to_owned(), now_us);
        }
    }

    /// A server has done an operation on several locks: it has taken all of them or none, and its waiter stands in one queue.
    pub(super) fn look_at_all(&mut self, server: usize, (op, reply): (&Op, &Reply), before: &[Standing], messages: &[Message]) {
        let Op::Lock(LockOp { keys, by, verb }) = op else { return };
        if keys.kind() != Kind::Several || self.nodes[server].forgot_at.is_some() {
            return;
        }
        if let Some(message) = messages.iter().find(|message| !keys.each().any(|keys| is_about(message, keys))) {
            return self.violate(format!("s{server} {}: {message:?} is about another lock", brief(op)));
        }
        let Verb::Acquire { place, .. } = verb else { return };
        let after: Vec<_> = keys.each().map(|keys| Standing::of(&self.nodes[server], keys, self.now)).collect();
        let has = |standing: &Standing| standing.holder.as_ref() == Some(by);
        let why = match &reply.verdict {
            Verdict::Vote => (!after.iter().all(has)).then(|| "granted, and not all were taken".to_owned()),
            _ => {
                let took = before.iter().zip(&after).any(|(before, after)| has(after) && !has(before));
                took.then(|| "refused, and one was taken".to_owned())
            }
        };
        let places = |place: &QueuePlace| after.iter().filter(|standing| standing.arrival(&place.entry).is_some()).count();
        let expected = usize::from(reply.verdict != Verdict::Vote);
        let decides = matches!(reply.verdict, Verdict::Vote | Verdict::Held { .. });
        let stands = place.as_ref().map(places).filter(|places| decides && *places != expected);
        if let Some(why) = why.or_else(|| stands.map(|places| format!("its waiter stands in {places} queues"))) {
            self.violate(format!("s{server} {}: {why}", brief(op)));
        }
    }
}
