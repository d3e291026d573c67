//! Standing: the waiters in a server's queue, and the changes that an operation may make: the queue's rules, written independently.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use locktender::internals::name::{Keys, Kind};
use locktender::machine::{CLAIM_MS, Message, claim, owner_of, shows_waiters};
use locktender::op::{Adoption, LockOp, Op, QueuePlace, Queued, Reply, Verb, Verdict};

use super::clock::Instant;
use super::inside::Inside;
use super::jobs;
use super::node::Node;
use super::world::World;

/// The time for which a client counts as alive after its last sign, microseconds.
const ALIVE_US: u64 = 3_000_000;

/// The age from which a waiter can't be passed, microseconds.
const UNPASSABLE_US: u64 = 1_000_000;

/// The time of each client's last entry into the queue of a lock on a server, by the server's clock.
pub(super) type Signs = HashMap<(usize, usize), HashMap<String, u64>>;

/// The waiters that a hold has refused: by the server, its process, the lock and the hold's owner.
pub(super) type Refused = HashMap<(usize, u32, usize, Arc<str>), HashSet<Arc<str>>>;

/// A lock and its queue on one server.
pub(super) struct Standing {
    now_us: u64,
    pub(super) holder: Option<Arc<str>>,
    /// Whether its value shows that a client waits.
    shows_waiters: bool,
    left_ms: u64,
    /// The waiters with their arrivals, in order.
    pub(super) queue: Vec<(Arc<str>, u64)>,
    pub(super) inside: Inside,
}

impl Standing {
    pub(super) fn of(node: &Node, keys: &Keys, now: Instant) -> Self {
        let now_us = node.wall_us(now);
        let lock = node.state.get(keys.lock(), now_us);
        let members = node.state.members(keys.queue(), now_us);
        let queue = members.map(|members| members.from(0).map(|(at, entry)| (entry.clone(), at.unsigned_abs())).collect());
        Self {
            now_us,
            holder: lock.and_then(|entry| entry.text().map(|value| Arc::from(owner_of(value)))),
            shows_waiters: lock.and_then(|entry| entry.text()).is_some_and(shows_waiters),
            left_ms: lock.and_then(|entry| entry.left_ms(now_us)).unwrap_or(0),
            queue: queue.unwrap_or_default(),
            inside: Inside::of(&node.state, keys, now_us),
        }
    }

    /// Whether a client waits.
    pub(super) fn has_waiters(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether a client waits that lives, for a lock that nobody holds.
    pub(super) fn is_wanted(&self, lives: impl Fn(&str, u64) -> bool) -> bool {
        self.holder.is_none() && self.queue.iter().any(|(entry, _)| lives(entry, self.now_us))
    }

    pub(super) fn arrival(&self, entry: &str) -> Option<u64> {
        self.queue.iter().find(|(other, _)| **other == *entry).map(|(_, arrival)| *arrival)
    }

    /// Whether a waiter is served before all others.
    pub(super) fn is_next(&self, (entry, arrival): &(Arc<str>, u64)) -> bool {
        entry.starts_with(['f', 's', 'q']) || self.now_us.saturating_sub(*arrival) >= UNPASSABLE_US
    }

    fn is_held_by(&self, holder: &str) -> bool {
        self.holder.as_deref() == Some(holder)
    }

    /// Whether an operation frees the lock for the first waiter; and, if so, whether no other waiter may pass the first.
    fn is_freed_by(&self, op: &Op, first: Option<&(Arc<str>, u64)>) -> Option<bool> {
        let leaves = |entry: &Arc<str>| self.holder.is_none() || self.is_held_by(&claim(entry));
        match op {
            Op::Lock(LockOp { by: entry, verb: Verb::Leave, .. }) => leaves(entry).then_some(false),
            Op::Lock(LockOp { by: owner, verb: Verb::Release { leave, .. }, .. }) => {
                (self.is_held_by(owner) || leave.as_ref().is_some_and(leaves)).then_some(false)
            }
            Op::Lock(LockOp { verb: Verb::Acquire { place, fair, quorum_config, .. }, .. })
                if quorum_config.is_none_or(|config| config.servers == 1)
                    && self.holder.is_none()
                    && !wants_only_what_was_handed_over(op) =>
            {
                // A waiter that was notified has left the queue, but came before the waiter that is the first now.
                let was_first =
                    |place: &QueuePlace, head: &(Arc<str>, u64)| place.entry == head.0 || (1..head.1).contains(&place.arrival);
                let passes = |head: &&(Arc<str>, u64)| !place.as_ref().is_some_and(|place| was_first(place, head));
                first.filter(|head| passes(head) && (*fair || self.is_next(head))).map(|_| true)
            }
            _ => None,
        }
    }

    /// Checks an operation against the rules; `lives` says which waiters' clients are alive, and `refused` who was refused by the hold.
    /// A hold that was got by a transaction, of which no waiter knows since they still waited for an earlier one, notifies none.
    fn allows(
        &self,
        op: &Op,
        reply: &Reply,
        after: &Self,
        notified: &[String],
        lives: impl Fn(&str) -> bool,
        (is_native, refused): (bool, impl Fn(&str) -> bool),
    ) -> Result<(), String> {
        let (leaver, place) = match op {
            Op::Lock(LockOp { verb: Verb::Release { leave, .. }, .. }) => (leave.as_ref(), None),
            Op::Lock(LockOp { by: entry, verb: Verb::Leave, .. }) => (Some(entry), None),
            Op::Lock(LockOp { verb: Verb::Acquire { place, .. }, .. }) => (None, place.as_ref()),
            _ => (None, None),
        };
        let single = op.keys().is_some_and(|keys| keys.kind() != Kind::Quorum);
        let queue: Vec<_> = self.queue.iter().filter(|(entry, _)| Some(entry) != leaver && lives(entry)).collect();
        // A server in quarantine changes nothing.
        let is_quarantined = matches!(reply.verdict, Verdict::Quarantine { .. });
        let is_release = matches!(op, Op::Lock(LockOp { verb: Verb::Release { leave: None, .. }, .. })) && single;
        let is_unknown = is_release && is_native && !self.shows_waiters && !queue.iter().any(|(entry, _)| refused(entry));
        let freed = self.is_freed_by(op, queue.first().copied()).filter(|_| !is_quarantined && !is_unknown);
        let kind = |bars, head| if single && (bars || self.is_next(head)) { "claim" } else { "free" };
        let next = freed.zip(queue.first()).map(|(bars, head)| (kind(bars, head), *head));
        let second = queue.get(1).filter(|_| next.is_some()).map(|(entry, _)| format!("next {entry}"));
        let expected: Vec<_> = next.map(|(kind, head)| format!("{kind} {}", head.0)).into_iter().chain(second).collect();
        if notified != expected {
            return Err(format!("notified were {notified:?}, and not {expected:?}"));
        }
        if let Some((kind, head)) = next {
            if kind == "claim" && !(after.is_held_by(&claim(&head.0)) && after.left_ms <= CLAIM_MS) {
                return Err(format!("it is not kept for {}: {:?} for {} ms", head.0, after.holder, after.left_ms));
            }
            if after.arrival(&head.0).is_some() && place.is_none_or(|place| place.entry != head.0) {
                return Err(format!("{} was notified, and is still in the queue", head.0));
            }
        }
        let is_kept = place.is_some_and(|place| self.is_held_by(&claim(&place.entry)));
        if is_kept && reply.verdict != Verdict::Vote && !is_quarantined && !wants_only_what_was_handed_over(op) {
            return Err("it was kept for who asked, and refused".to_owned());
        }
        let first = queue.first().filter(|_| freed.is_some()).map(|(entry, _)| entry);
        let concerned = |entry: &Arc<str>| Some(entry) == first || place.is_some_and(|place| place.entry == *entry);
        for (entry, arrival) in queue.into_iter().filter(|(entry, _)| !concerned(entry)) {
            if after.arrival(entry) != Some(*arrival) {
                return Err(format!("{entry} lost its place"));
            }
        }
        place.map_or(Ok(()), |place| self.puts(place, reply, after, lives(&place.entry)))
    }

    /// The place of the waiter that asked, after the operation.
    pub(super) fn puts(&self, place: &QueuePlace, reply: &Reply, after: &Self, lives: bool) -> Result<(), String> {
        let stands = match reply.verdict {
            Verdict::Held { .. } => true,
            Verdict::Vote => place.stays,
            _ => return Ok(()),
        };
        let Some(arrival) = after.arrival(&place.entry) else {
            return if stands { Err(format!("{} is not in the queue", place.entry)) } else { Ok(()) };
        };
        if !stands {
            return Err(format!("{} has the lock, and is in the queue", place.entry));
        }
        let others = after.queue.iter().filter(|(entry, _)| *entry != place.entry);
        let (rank, last) = others.fold((0, 0), |(rank, last), (_, at)| (rank + u64::from(*at < arrival), last.max(*at)));
        if reply.queued != (Queued::At { rank, arrival }) {
            return Err(format!("{} is at {rank} since {arrival}, and was answered {:?}", place.entry, reply.queued));
        }
        let tail = self.queue.iter().map(|(_, at)| at + 1).fold(self.now_us, u64::max);
        let before = self
            .arrival(&place.entry)
            .or(Some(place.arrival))
            .filter(|at| matches!(reply.verdict, Verdict::Held { .. }) && *at > 0);
        let at_tail = arrival >= self.now_us && arrival > last;
        let right = match before {
            // A dead waiter may have been dropped just before it came back.
            Some(before) if before < tail => arrival == before || !lives && place.arrival == 0 && at_tail,
            _ => at_tail,
        };
        if right { Ok(()) } else { Err(format!("{} arrived at {before:?}, and stands at {arrival}", place.entry)) }
    }
}

/// Whether the operation only adopts. If the hold that was handed over is gone, the lock is not acquired again: the server refuses,
/// and changes nothing.
fn wants_only_what_was_handed_over(op: &Op) -> bool {
    matches!(op.verb(), Some(Verb::Acquire { adopt: Some(Adoption { or_acquire: false, .. }), .. }))
}

/// The client of a waiter.
fn client_of(entry: &str) -> &str {
    entry.split(':').nth(1).unwrap_or_default()
}

impl World {
    /// Whether the client of a waiter has shown that it lives.
    pub(super) fn lives(&self, lock: (usize, usize), entry: &str, now_us: u64) -> bool {
        let sign = self.watch.signs.get(&lock).and_then(|signs| signs.get(client_of(entry)));
        sign.is_some_and(|at| at + ALIVE_US >= now_us)
    }

    /// A server has done an operation, and notified waiters.
    pub(super) fn look_at_queue(
        &mut self,
        server: usize,
        (op, reply): (&Op, &Reply),
        before: Option<&Standing>,
        messages: &[Message],
    ) {
        let (Some(before), Some(keys)) = (before, op.keys()) else { return };
        let Some(name) = self.name_of(keys.lock()) else { return };
        let after = Standing::of(&self.nodes[server], keys, self.now);
        let notified = messages.iter().map(|Message { channel, payload }| {
            let mut words = payload.splitn(4, ' ');
            let (kind, waiter) = (words.next().unwrap_or_default(), words.nth(1).unwrap_or_default());
            let (mode, number) = waiter.split_at(waiter.len().min(1));
            // Behind the number of a waiter for a permit stands its limit.
            let number = number.split('/').next().unwrap_or_default();
            let client = channel.rsplit(':').next().unwrap_or_default();
            let entry = before.queue.iter().find(|(entry, _)| entry.starts_with(&format!("{mode}:{client}:{number} ")));
            format!("{kind} {}", entry.map_or(payload.as_str(), |(entry, _)| entry))
        });
        let notified: Vec<String> = notified.collect();
        let lives = |entry: &str| self.lives((server, name), entry, before.now_us);
        let hold = before.holder.clone().map(|holder| (server, self.nodes[server].number, name, holder));
        let refusals = hold.as_ref().and_then(|hold| self.watch.refused.get(hold));
        let is_native = before.holder.as_ref().is_some_and(|holder| self.watch.by_transaction.contains(holder));
        let refused = |entry: &str| refusals.is_some_and(|refusals| refusals.contains(entry));
        let verdict = if jobs::is_about_record(op) {
            Ok(())
        } else if before.is_of_several(op) {
            before.lets_in(op, reply, &after, &notified, lives)
        } else {
            before.allows(op, reply, &after, &notified, lives, (is_native, refused))
        };
        // The rules don't know data that a crash brought back.
        if self.nodes[server].forgot_at.is_none()
            && let Err(why) = verdict
        {
            return self.violate(format!("s{server} {}: {why}", super::brief::brief(op)));
        }
        if let (Op::Lock(LockOp { verb: Verb::Acquire { place: Some(place), .. }, .. }), Queued::At { .. }) = (op, &reply.queued)
        {
            self.watch.signs.entry((server, name)).or_default().insert(client_of(&place.entry).to_owned(), before.now_us);
            if let (Some(hold), Verdict::Held { .. }) = (hold, &reply.verdict) {
                self.watch.refused.entry(hold).or_default().insert(Arc::clone(&place.entry));
            }
        }
    }
}
