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

use super::exclusive::{AcquireArgs, inspect};
use super::found::{conflict, look};
use super::queue::{self, wants_permit};
use super::room::{Room, reads};
use super::state::{State, Value};
use super::{clock, fence};
use crate::mutant::mutant;
use crate::name::{Keys, Kind};
use crate::op::holder::{Gate, claim};
use crate::op::{LockOp, Queued, Reply, Verb, Verdict};

pub(super) fn apply(state: &mut State, op: &LockOp, now_us: u64) -> Result<Reply, Reply> {
    let LockOp { keys, by, verb } = op;
    match verb {
        Verb::Acquire { .. } => acquire(state, op, now_us),
        Verb::Confirm { fence } => confirm(state, keys, by, *fence, now_us),
        // Nothing is written again.
        Verb::Extend { ttl_ms, fence } | Verb::Heal { ttl_ms, fence } => renew(state, keys, by, *ttl_ms, *fence, now_us),
        Verb::Release { leave, .. } => release(state, keys, by, leave.as_deref(), now_us),
        Verb::Leave => release(state, keys, by, Some(by), now_us),
        Verb::Inspect | Verb::EndAttempt { .. } | Verb::Reset | Verb::JobStatus => inspect(state, keys, now_us),
    }
}

/// The part of an acquire that a server does also in quarantine: it takes over the hold of a reader that was handed over, makes a writer's
/// hold a reader's, or enters beside a reader of the same task, whatever else stands in the way. `None` if that hold is gone and a new
/// one is wanted then, and for any other operation.
pub(super) fn adopt(state: &mut State, op: &LockOp, now_us: u64) -> Option<Reply> {
    let LockOp { keys, by, verb: Verb::Acquire { ttl_ms, adopt, place, .. } } = op else { return None };
    if !keys.kind().is_shared() {
        return None;
    }
    let found = match look(state, keys, now_us) {
        Ok(found) => found,
        Err(conflict) => return Some(conflict),
    };
    let adopt = adopt.as_ref()?;
    let mut room = Room { state, keys, now_us };
    let period = match found.gate() {
        Some(Gate::Read(period)) if keys.kind() == Kind::Read => Some(period),
        _ => None,
    };
    let ends = [room.end_of(&adopt.owner), room.end_of(by)];
    let [theirs, ours] = ends;
    let known = if adopt.beside { theirs } else { theirs.or(ours) };
    let (Some(period), Some(known)) = (period, known) else {
        if keys.kind() == Kind::Read && !adopt.beside && found.is_owned_by(&adopt.owner) && !adopt.owner.is_empty() {
            let free = Free { gate: None, known: None, claim: None };
            let args = AcquireArgs::of(op)?;
            return Some(enter(&mut room, &args, &free).unwrap_or_else(|refusal| refusal));
        }
        return (!adopt.or_acquire).then(|| room.no(&found, by, None));
    };
    // What is left of the hold that is taken over ends: its new holder knows its own ttl alone.
    let own = if mutant!(AdoptedEndKept) { known } else { ours.unwrap_or_default() };
    room.mark(by, own.max(room.now_ms() + ttl_ms));
    if !adopt.beside && adopt.owner != *by {
        room.unmark(&adopt.owner);
    }
    room.last_until_last();
    let place = place.as_ref().filter(|_| adopt.or_acquire && !mutant!(AdopterKeepsPlace));
    let queued = place.map_or(Queued::Nothing, |place| queue::served(room.state, keys, place, true, now_us));
    Some(Reply { queued, ..Reply::new(Verdict::Vote, now_us, period) })
}

fn acquire(state: &mut State, op: &LockOp, now_us: u64) -> Result<Reply, Reply> {
    let keys = &*op.keys;
    let Some(args) = AcquireArgs::of(op) else { return inspect(state, keys, now_us) };
    let mut room = Room { state, keys, now_us };
    let free = find_room(&mut room, &args)?;
    enter(&mut room, &args, &free)
}

/// A lock that can be entered.
struct Free {
    /// The gate of those inside; `None` if nobody is.
    gate: Option<Gate>,
    /// The end of the mark that the owner has already.
    known: Option<u64>,
    /// The mark of the permit that is kept for the waiter.
    claim: Option<String>,
}

/// The first half of an acquire: looks whether the owner may enter.
///
/// # Errors
/// The refusal.
fn find_room(room: &mut Room<'_>, args: &AcquireArgs<'_>) -> Result<Free, Reply> {
    let (keys, now_us) = (room.keys, room.now_us);
    let (limit, place) = (limit_of(keys), args.place);
    let found = look(room.state, keys, now_us)?;
    let gate = found.gate().filter(|gate| gate.is_of(keys));
    let gate = gate.filter(|_| room.last_end().is_some() || mutant!(EmptyGateJoined));
    if found.is_held() && gate.is_none() && !place.is_some_and(|place| found.is_claimed_by(&place.entry)) {
        return Err(room.held(&found, args.owner, place));
    }
    let head = queue::first(room.state, keys, now_us);
    let head = head.filter(|head| !place.is_some_and(|place| head.is_or_came_after(place)));
    let Some(inside) = gate else {
        if !found.is_held() && head.is_some_and(|head| head.is_next(args.fair, now_us)) {
            queue::wake(room.state, keys, true, true, now_us);
            let found = look(room.state, keys, now_us)?;
            return Err(room.held(&found, args.owner, place));
        }
        return Ok(Free { gate, known: None, claim: None });
    };
    let known = room.end_of(args.owner);
    let claim = place.map(|place| claim(&place.entry)).filter(|claim| limit.is_some() && room.end_of(claim).is_some());
    if known.is_some() {
        return Ok(Free { gate, known, claim });
    }
    let is_stopped =
        |head: queue::Head| args.fair || !is_of_kind(&head.entry, keys) || limit.is_some() && head.is_served_directly(now_us);
    if claim.is_none() && head.is_some_and(is_stopped) && !mutant!(NewcomerJoinsPastWriter) {
        room.admit(inside);
        return Err(room.held(&found, args.owner, place));
    }
    let others = room.count().saturating_sub(u64::from(claim.is_some() && !mutant!(ClaimTakesPermit)));
    let limit = limit.map(|limit| match inside {
        Gate::Permits(theirs) if claim.is_none() && mutant!(OthersLimitCounts) => limit.min(theirs),
        _ => limit,
    });
    if limit.is_some_and(|limit| others >= limit + u64::from(mutant!(PermitTooMany))) {
        // Others were let in by a larger limit, and the claim is of no use.
        if let Some(claim) = &claim {
            room.unmark(claim);
            room.last_until_last();
            room.admit(inside);
        }
        return Err(room.held(&found, args.owner, place));
    }
    Ok(Free { gate, known, claim })
}

/// The second half of an acquire: writes the mark, with the fence of the period or the next one.
///
/// # Errors
/// The refusal, if the clock can give no fence, or if the key of the marks is of another type.
fn enter(room: &mut Room<'_>, args: &AcquireArgs<'_>, free: &Free) -> Result<Reply, Reply> {
    let (keys, now_us) = (room.keys, room.now_us);
    if free.gate.is_none() && room.state.is_foreign_to_members(keys.marks(), now_us) {
        let found = room.state.get(keys.marks(), now_us).map(|entry| fence::at(entry, keys.marks()));
        return Err(conflict(0, found.unwrap_or_default(), now_us));
    }
    let number = match free.gate {
        Some(Gate::Read(period)) if !mutant!(JoinerHasOwnFence) => period,
        _ => clock::tick(room.state, keys.clock(), args.floor, now_us).map_err(|broken| conflict(0, broken, now_us))?,
    };
    let gate = limit_of(keys).map_or(Gate::Read(number), Gate::Permits);
    let end = free.known.unwrap_or_default().max(room.now_ms() + args.ttl_ms);
    let other_limit = room.other_limit(free.gate);
    if free.gate.is_some() {
        room.drop_ended();
    } else if !mutant!(OldMarksKept) {
        room.state.remove(keys.marks());
    }
    room.mark(args.owner, end);
    if free.gate != Some(gate) {
        let left_ms = if free.gate.is_some() { room.left_ms() } else { Some(end - room.now_ms()) };
        room.state.put(keys.lock(), Value::Text(gate.to_string().into()), now_us, left_ms);
    }
    match &free.claim {
        _ if free.gate.is_none() => room.marks_end_at(end),
        Some(claim) => {
            room.unmark(claim);
            room.last_until_last();
        }
        None => room.last_until(end),
    }
    if let Some(place) = args.place {
        queue::leave(room.state, keys, &place.entry, now_us);
    }
    room.admit(gate);
    let queued = args.place.map_or(Queued::Nothing, |place| queue::served(room.state, keys, place, false, now_us));
    Ok(Reply { queued, other_limit, ..Reply::new(Verdict::Vote, now_us, number) })
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
    let gate = found.gate();
    let mut room = Room { state, keys, now_us };
    // Without an owner everybody's.
    let is_all = owner.is_empty();
    let is_ours = gate.is_some_and(|gate| gate.is_of(keys)) && (is_all || room.end_of(owner).is_some());
    if is_ours && is_all {
        room.unmark_all();
    }
    room.unmark(owner);
    let claim = leave.map(claim).filter(|claim| gate.is_some() && room.score(claim).is_some() && !mutant!(LeaverKeepsPermit));
    if let Some(claim) = &claim {
        room.unmark(claim);
    }
    let is_changed = is_ours || claim.is_some();
    let reply = if is_ours { Reply::new(Verdict::Ok, now_us, 0) } else { room.no(&found, owner, leave) };
    let last_fence = if is_ours { 0 } else { clock::last(room.state, keys.clock(), now_us) };
    let is_free = match (gate, leave) {
        (Some(gate), _) => {
            if is_changed || leave.is_some() {
                room.drop_ended();
            }
            let is_empty = room.last_end().is_none();
            if is_changed && !mutant!(GateOutlivesMarks) {
                room.last_until_last();
            }
            if !is_empty && (leave.is_some() || is_changed && matches!(gate, Gate::Permits(_))) {
                room.admit(gate);
            }
            is_empty && is_changed
        }
        (None, Some(entry)) => !found.is_held() || found.is_claimed_by(entry),
        (None, None) => false,
    };
    if is_free {
        room.state.remove(keys.lock());
        if gate.is_some() {
            room.unmark_all();
        }
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

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "shared_sequences_tests.rs"]
mod sequences_tests;
