//! The shared lock, on one server: any number of readers and no writer beside them, or as many holders as there are permits.
//!
//! While they are inside, the lock's own key is their *gate*, `read <period>` or `permits <n>`, so that every client of a plain lock sees a
//! holder. Each of them has a *mark* in a sorted set: its owner value, with its end in milliseconds as score. The gate and the set end with
//! the last mark. So a holder that dies costs its own ttl.
//!
//! A gate without a living mark is a holder that nobody knows: nobody joins it, and nothing writes it before it ends. A mark is never
//! written again where it is missing. So the loss of the set costs waiting, and no exclusion.
//!
//! Readers of one period share its fence, which the first of them was given. It is above the fence of every writer before, and below that
//! of every writer behind. A permit has a fence of its own.

use std::sync::Arc;
use std::time::Duration;

use super::cut::cut;
use super::exclusive::{Found, conflict, inspect, look};
use super::queue::{self, CLAIM_MS, limit_in, wants_permit};
use super::rules::Rules;
use super::state::{State, Value};
use super::{clock, fence};
use crate::error::Remaining;
use crate::mutant::mutant;
use crate::name::{Keys, Kind};
use crate::op::holder::{Gate, claim, gate_of};
use crate::op::{LockOp, QueuePlace, Queued, Reply, Verb, Verdict};

/// The most waiters that one operation lets in.
const ADMITTED: usize = 8;

/// An operation drops so many marks that have ended.
const DROPPED: usize = 100;

pub(super) struct Shared;

impl Rules for Shared {
    fn apply(&self, state: &mut State, op: &LockOp, now_us: u64) -> Reply {
        let LockOp { keys, by, verb } = op;
        let reply = match verb {
            Verb::Acquire { .. } => acquire(state, op, now_us),
            Verb::Confirm { fence } => confirm(state, keys, by, *fence, now_us),
            // Nothing is written again.
            Verb::Extend { ttl_ms, fence } | Verb::Heal { ttl_ms, fence } => renew(state, keys, by, *ttl_ms, *fence, now_us),
            Verb::Release { leave, .. } => release(state, keys, by, leave.as_deref(), now_us),
            Verb::Leave => release(state, keys, by, Some(by), now_us),
            Verb::Inspect | Verb::EndAttempt { .. } | Verb::Reset | Verb::JobStatus => Ok(inspect(state, keys, now_us)),
        };
        reply.unwrap_or_else(|refusal| refusal)
    }

    /// A mark is not the lock's own key.
    fn renew(&self, _: &mut State, _: &Keys, _: &str, _: u64, _: u64) -> bool {
        false
    }
}

/// The part of an acquire that a server does also in quarantine: it takes over the hold of a reader that was handed over, whatever else stands
/// in the way. `None` if that hold is gone and a new one is wanted then, and for any other operation.
pub(super) fn adopt(state: &mut State, op: &LockOp, now_us: u64) -> Option<Reply> {
    let LockOp { keys, by, verb: Verb::Acquire { ttl_ms, adopt, .. } } = op else { return None };
    if !keys.kind().is_shared() {
        return None;
    }
    let found = match look(state, keys, now_us) {
        Ok(found) => found,
        Err(conflict) => return Some(conflict),
    };
    let adopt = adopt.as_ref().filter(|_| keys.kind() == Kind::Read)?;
    let mut room = Room { state, keys, now_us };
    let period = match found.value().and_then(gate_of) {
        Some(Gate::Read(period)) => Some(period),
        _ => None,
    };
    let ends = [room.end_of(&adopt.owner), room.end_of(by)];
    let (Some(period), Some(end)) = (period, ends.into_iter().flatten().max()) else {
        return (!adopt.or_acquire).then(|| room.no(&found, by, None));
    };
    let end = end.max(room.now_ms() + ttl_ms);
    room.mark(by, end);
    if adopt.owner != *by {
        room.unmark(&adopt.owner);
    }
    room.last_until(end);
    Some(Reply::new(Verdict::Vote, now_us, period))
}

fn acquire(state: &mut State, op: &LockOp, now_us: u64) -> Result<Reply, Reply> {
    let LockOp { keys, by: owner, verb } = op;
    let Verb::Acquire { ttl_ms, proposal: floor, fair, place, .. } = verb else { return Ok(inspect(state, keys, now_us)) };
    let (limit, place) = (limit_of(keys), place.as_ref());
    let found = look(state, keys, now_us)?;
    let gate = found.value().and_then(gate_of).filter(|gate| gate.is_of(keys));
    let mut room = Room { state, keys, now_us };
    let last = gate.and_then(|_| room.last_end());
    let gate = gate.filter(|_| last.is_some() || mutant!(EmptyGateJoined));
    if found.is_held() && gate.is_none() && !place.is_some_and(|place| found.is_claimed_by(&place.entry)) {
        return Err(room.held(&found, owner, place));
    }
    let head = queue::first(room.state, keys, now_us);
    let stands_behind = |head: &&queue::Head| !place.is_some_and(|place| head.is_or_came_after(place));
    let head = head.as_ref().filter(stands_behind);
    let known = gate.and_then(|_| room.end_of(owner));
    let claimed = place.map(|place| claim(&place.entry)).filter(|claim| limit.is_some() && room.end_of(claim).is_some());
    if gate.is_none() {
        if !found.is_held() && head.is_some_and(|head| head.is_next(*fair, now_us)) {
            queue::wake(room.state, keys, true, true, now_us);
            let found = look(room.state, keys, now_us)?;
            return Err(room.held(&found, owner, place));
        }
    } else if known.is_none() {
        let is_stopped =
            |head: &queue::Head| *fair || !is_of_kind(&head.entry, keys) || limit.is_some() && head.is_served_directly(now_us);
        if claimed.is_none() && head.is_some_and(|head| is_stopped(head) && !mutant!(NewcomerJoinsPastWriter)) {
            if limit.is_some() {
                room.admit(gate);
            }
            return Err(room.held(&found, owner, place));
        }
        let others = room.count().saturating_sub(u64::from(claimed.is_some() && !mutant!(ClaimTakesPermit)));
        if limit.is_some_and(|limit| others >= limit + u64::from(mutant!(PermitTooMany))) {
            // Others were let in by a larger limit, and the claim is of no use.
            if let Some(claim) = &claimed {
                room.unmark(claim);
                room.last_until_last();
                room.admit(gate);
            }
            return Err(room.held(&found, owner, place));
        }
    }
    let joined = gate.filter(|gate| matches!(gate, Gate::Read(_)) && !mutant!(JoinerHasOwnFence));
    if gate.is_none() && room.state.is_foreign_to_members(keys.marks(), now_us) {
        let found = room.state.get(keys.marks(), now_us).map(|entry| fence::at(entry, keys.marks()));
        return Err(conflict(0, found.unwrap_or_default(), now_us));
    }
    let number = match joined {
        Some(Gate::Read(period)) => period,
        _ => clock::tick(room.state, keys.clock(), *floor, now_us).map_err(|broken| conflict(0, broken, now_us))?,
    };
    let end = known.unwrap_or_default().max(room.now_ms() + ttl_ms);
    if gate.is_some() {
        room.drop_ended();
        room.mark(owner, end);
        if let Some(claim) = &claimed {
            room.unmark(claim);
            room.last_until_last();
        } else {
            room.last_until(end);
        }
    } else if !mutant!(OldMarksKept) {
        room.state.remove(keys.marks());
        room.mark(owner, end);
    } else {
        room.mark(owner, end);
    }
    let now_gate = limit.map_or(Gate::Read(number), Gate::Permits);
    if gate != Some(now_gate) {
        let left_ms = if gate.is_some() { room.left_ms() } else { Some(end - room.now_ms()) };
        room.state.put(keys.lock(), Value::Text(now_gate.to_string().into()), now_us, left_ms);
    }
    if gate.is_none() {
        room.end_at(end);
    }
    let queued = place.map_or(Queued::Nothing, |place| queue::served(room.state, keys, place, true, now_us));
    room.admit(Some(now_gate));
    Ok(Reply { queued, ..Reply::new(Verdict::Vote, now_us, number) })
}

/// Confirms a hold behind a failover. The clock then gives no fence up to that of the hold.
fn confirm(state: &mut State, keys: &Keys, owner: &str, fence: u64, now_us: u64) -> Result<Reply, Reply> {
    let found = look(state, keys, now_us)?;
    clock::raise(state, keys.clock(), fence, now_us);
    let room = Room { state, keys, now_us };
    if !room.is_inside(&found, owner, fence) {
        return Err(room.no(&found, owner, None));
    }
    Ok(Reply::new(Verdict::Ok, now_us, fence))
}

fn renew(state: &mut State, keys: &Keys, owner: &str, ttl_ms: u64, fence: u64, now_us: u64) -> Result<Reply, Reply> {
    let found = look(state, keys, now_us)?;
    let mut room = Room { state, keys, now_us };
    let end = room.end_of(owner).unwrap_or_default();
    if !room.is_inside(&found, owner, fence) {
        return Err(room.no(&found, owner, None));
    }
    let asked = room.now_ms() + ttl_ms;
    let end = if mutant!(MarkShortened) { asked } else { end.max(asked) };
    match room.last_end() {
        Some(last) if end < last && !mutant!(GateNotOfLast) => room.marks_end_at(last),
        _ => room.end_at(end),
    }
    room.mark(owner, end);
    Ok(Reply::new(Verdict::Ok, now_us, fence))
}

/// Takes a mark out, or a waiter, or both, and lets in who may enter then.
fn release(state: &mut State, keys: &Keys, owner: &str, leave: Option<&str>, now_us: u64) -> Result<Reply, Reply> {
    if let Some(entry) = leave {
        queue::leave(state, keys, entry, now_us);
    }
    let found = look(state, keys, now_us)?;
    let gate = found.value().and_then(gate_of);
    let mut room = Room { state, keys, now_us };
    let is_ours = gate.is_some_and(|gate| gate.is_of(keys)) && room.end_of(owner).is_some();
    room.unmark(owner);
    let claim = leave.map(claim).filter(|claim| gate.is_some() && room.score(claim).is_some() && !mutant!(LeaverKeepsPermit));
    if let Some(claim) = &claim {
        room.unmark(claim);
    }
    let is_changed = is_ours || claim.is_some();
    let reply = if is_ours { Reply::new(Verdict::Ok, now_us, 0) } else { room.no(&found, owner, leave) };
    let last_fence = if is_ours { 0 } else { clock::last(room.state, keys.clock(), now_us) };
    if gate.is_some() {
        if is_changed || leave.is_some() {
            room.drop_ended();
            if room.last_end().is_some() {
                if is_changed && !mutant!(GateOutlivesMarks) {
                    room.last_until_last();
                }
                if matches!(gate, Some(Gate::Permits(_))) || leave.is_some() {
                    room.admit(gate);
                }
            } else if is_changed {
                room.state.remove(keys.lock());
                room.state.remove(keys.marks());
                queue::wake(room.state, keys, true, false, now_us);
            }
        }
    } else if let Some(entry) = leave
        && (!found.is_held() || found.is_claimed_by(entry))
    {
        room.state.remove(keys.lock());
        queue::wake(room.state, keys, true, false, now_us);
    }
    Ok(Reply { last_fence, ..reply })
}

/// How many may hold the lock; `None` for readers.
fn limit_of(keys: &Keys) -> Option<u64> {
    if let Kind::Semaphore(limit) = keys.kind() { Some(limit.into()) } else { None }
}

/// Whether a waiter wants what a lock of this kind gives.
fn is_of_kind(entry: &str, keys: &Keys) -> bool {
    if keys.kind() == Kind::Read { reads(entry) } else { wants_permit(entry) }
}

fn reads(entry: &str) -> bool {
    entry.starts_with(['r', 's'])
}

impl Gate {
    /// Whether it is the gate of this kind of lock.
    fn is_of(self, keys: &Keys) -> bool {
        matches!((self, keys.kind()), (Self::Read(_), Kind::Read) | (Self::Permits(_), Kind::Semaphore(_)))
    }
}

/// A lock and its marks, at one time.
struct Room<'a> {
    state: &'a mut State,
    keys: &'a Keys,
    now_us: u64,
}

impl Room<'_> {
    fn now_ms(&self) -> u64 {
        self.now_us / 1_000
    }

    fn score(&self, owner: &str) -> Option<u64> {
        self.state.members(self.keys.marks(), self.now_us)?.score(owner).map(i64::unsigned_abs)
    }

    /// The end of a mark that lives.
    fn end_of(&self, owner: &str) -> Option<u64> {
        self.score(owner).filter(|end| *end >= self.now_ms() || mutant!(EndedMarkLives))
    }

    /// The last mark to end, if it lives.
    fn last(&self) -> Option<(u64, &Arc<str>)> {
        let (end, owner) = self.state.members(self.keys.marks(), self.now_us)?.last()?;
        Some((end.unsigned_abs(), owner)).filter(|(end, _)| *end >= self.now_ms())
    }

    fn last_end(&self) -> Option<u64> {
        self.last().map(|(end, _)| end)
    }

    /// The marks that live, in the order of their ends.
    fn living(&self) -> impl Iterator<Item = (u64, &Arc<str>)> {
        let members = self.state.members(self.keys.marks(), self.now_us);
        let from = signed(self.now_ms());
        members.into_iter().flat_map(move |members| members.from(from)).map(|(end, owner)| (end.unsigned_abs(), owner))
    }

    fn count(&self) -> u64 {
        self.living().count() as u64
    }

    fn mark(&mut self, owner: &str, end: u64) {
        self.state.put_member(self.keys.marks(), owner, signed(end), self.now_us);
    }

    fn unmark(&mut self, owner: &str) {
        self.state.drop_members(self.keys.marks(), &[owner], self.now_us);
    }

    fn drop_ended(&mut self) {
        let Some(members) = self.state.members(self.keys.marks(), self.now_us) else { return };
        let before = signed(self.now_ms());
        let ended = members.from(i64::MIN).take_while(|(end, _)| *end < before).take(DROPPED);
        let ended: Vec<Arc<str>> = ended.map(|(_, owner)| Arc::clone(owner)).collect();
        self.state.drop_members(self.keys.marks(), &ended.iter().map(|owner| &**owner).collect::<Vec<_>>(), self.now_us);
    }

    /// What remains of the lock's key.
    fn left_ms(&self) -> Option<u64> {
        self.state.get(self.keys.lock(), self.now_us).and_then(|entry| entry.left_ms(self.now_us))
    }

    /// Has gate and marks end then.
    fn end_at(&mut self, end: u64) {
        self.marks_end_at(end);
        self.state.expire(self.keys.lock(), self.now_us, end.saturating_sub(self.now_ms()));
    }

    fn marks_end_at(&mut self, end: u64) {
        self.state.expire(self.keys.marks(), self.now_us, end.saturating_sub(self.now_ms()));
    }

    /// Has gate and marks last until then at least.
    fn last_until(&mut self, end: u64) {
        if self.last_end().is_none_or(|last| end >= last) || mutant!(GateNotOfLast) {
            self.end_at(end);
        }
    }

    /// Has gate and marks end with the last mark.
    fn last_until_last(&mut self) {
        if let Some(end) = self.last_end() {
            self.end_at(end);
        }
    }

    /// Whether this hold is inside: its mark lives, and a reader's period is that of the gate.
    fn is_inside(&self, found: &Found, owner: &str, fence: u64) -> bool {
        let is_its_gate = match found.value().and_then(gate_of) {
            Some(Gate::Read(period)) => self.keys.kind() == Kind::Read && (period == fence || mutant!(AnyPeriodConfirms)),
            Some(Gate::Permits(_)) => self.keys.kind() != Kind::Read,
            None => false,
        };
        is_its_gate && self.end_of(owner).is_some()
    }

    /// Lets waiters in that may enter beside those inside, at most eight. Nobody passes the first one.
    fn admit(&mut self, gate: Option<Gate>) {
        let (keys, now_us) = (self.keys, self.now_us);
        for _ in 0..ADMITTED {
            let Some(head) = queue::first(self.state, keys, now_us) else { return };
            let entry = &head.entry;
            match gate {
                Some(Gate::Read(_)) if reads(entry) && !mutant!(ReadersNotLetIn) => {
                    queue::leave(self.state, keys, entry, now_us);
                    queue::notify(self.state, keys, entry, "free", CLAIM_MS);
                }
                Some(Gate::Permits(limit)) if wants_permit(entry) => {
                    if self.count() >= limit_in(entry).unwrap_or(limit) {
                        return;
                    }
                    queue::leave(self.state, keys, entry, now_us);
                    if !head.is_served_directly(now_us) {
                        queue::notify(self.state, keys, entry, "free", CLAIM_MS);
                        if let Some(second) = queue::first(self.state, keys, now_us) {
                            queue::notify(self.state, keys, &second.entry, "next", CLAIM_MS);
                        }
                        return;
                    }
                    let end = self.now_ms() + CLAIM_MS;
                    self.last_until(end);
                    self.mark(&claim(entry), end);
                    queue::notify(self.state, keys, entry, "claim", CLAIM_MS);
                }
                _ => return,
            }
        }
    }

    /// The refusal of an acquire. It names the mark that ends last, and the one that ends first to who waits for a permit. That one may
    /// wait in the queue from now on.
    fn held(&mut self, found: &Found, owner: &str, place: Option<&QueuePlace>) -> Reply {
        let gate = found.value().and_then(gate_of);
        let waits_for_first = matches!(gate, Some(Gate::Permits(_))) && self.keys.kind() != Kind::Read;
        let mark = if waits_for_first { self.living().next() } else { self.last() }.filter(|_| gate.is_some());
        let holder = self.named(mark.map(|(_, owner)| &**owner), owner, found).unwrap_or_default();
        let remaining = match mark {
            Some((end, _)) if waits_for_first => for_ms(end - self.now_ms()),
            _ => self.remaining(found),
        };
        let verdict = Verdict::Held { holder, remaining };
        let queued = place.map_or(Queued::Nothing, |place| queue::enqueue(self.state, self.keys, place, self.now_us));
        Reply { queued, ..Reply::new(verdict, self.now_us, 0) }
    }

    /// What is shown of a mark, or of the lock's value if there is none: a refusal never names who asks, whatever another program has
    /// written.
    fn named(&self, mark: Option<&str>, asks: &str, found: &Found) -> Option<String> {
        mark.filter(|owner| *owner != asks).map(|owner| cut(owner).to_owned()).or_else(|| found.shown())
    }

    /// What remains of the lock's key by now.
    fn remaining(&self, found: &Found) -> Remaining {
        if found.is_held() { self.left_ms().map_or(Remaining::Forever, for_ms) } else { Remaining::Gone }
    }

    /// The refusal of a hold that isn't inside. Others that are inside in the same way are not in its place, so nobody is named then. The
    /// fence is the period that the gate shows.
    fn no(&self, found: &Found, owner: &str, leaves: Option<&str>) -> Reply {
        let gate = found.value().and_then(gate_of);
        let holder = match gate {
            Some(gate) if gate.is_of(self.keys) => None,
            Some(_) => self.named(self.last().map(|(_, owner)| &**owner), owner, found),
            None => found.shown().filter(|_| !leaves.is_some_and(|entry| found.is_claimed_by(entry))),
        };
        let period = if let Some(Gate::Read(period)) = gate { period } else { 0 };
        let remaining = if holder.is_none() && gate.is_none() { Remaining::Gone } else { self.remaining(found) };
        Reply::new(Verdict::No { holder, remaining }, self.now_us, period)
    }
}

fn for_ms(left_ms: u64) -> Remaining {
    Remaining::For(Duration::from_millis(left_ms))
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
