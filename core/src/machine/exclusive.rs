//! The exclusive lock on one server: one holder, and nobody beside it. The clock of its slot gives the fences.

use std::sync::Arc;

use super::cut::cut;
use super::found::{Found, conflict, look};
use super::notes::show_fence;
use super::room::{Room, holder, inside};
use super::state::{State, Value};
use super::{clock, queue};
use crate::mutant::mutant;
use crate::name::Keys;
use crate::op::holder::{claim, is_claim, owner_of, shows_waiters, with_fence, with_waiters};
use crate::op::{Adoption, LockOp, QueuePlace, Queued, Reply, Verb, Verdict};

/// The arguments of an acquire.
pub(super) struct AcquireArgs<'a> {
    pub(super) owner: &'a Arc<str>,
    pub(super) ttl_ms: u64,
    /// The fence that the client has seen: the new one is above it. On a quorum the one that it proposes.
    pub(super) floor: u64,
    adopt: Option<&'a Adoption>,
    pub(super) fair: bool,
    pub(super) place: Option<&'a QueuePlace>,
}

impl<'a> AcquireArgs<'a> {
    /// The arguments of an operation that is an acquire.
    pub(super) fn of(op: &'a LockOp) -> Option<Self> {
        let Verb::Acquire { ttl_ms, proposal, adopt, fair, place, .. } = &op.verb else { return None };
        let (adopt, place) = (adopt.as_ref(), place.as_ref());
        Some(Self { owner: &op.by, ttl_ms: *ttl_ms, floor: *proposal, adopt, fair: *fair, place })
    }

    fn adopts(&self, owner: &str) -> bool {
        self.adopt.is_some_and(|adopt| !adopt.owner.is_empty() && &*adopt.owner == owner)
    }

    /// Whether the acquire wants only the hold that was handed over, and that hold isn't there: it was adopted before, released,
    /// or has expired.
    pub(super) fn comes_too_late(&self, owner: Option<&str>) -> bool {
        let is_there = owner.is_some_and(|owner| owner == &**self.owner || self.adopts(owner));
        self.adopt.is_some_and(|adopt| !adopt.or_acquire) && !is_there && !mutant!(AdoptsAnything)
    }

    /// Whether a key with this value, of this owner, is free for the acquire.
    pub(super) fn counts_as_free(&self, value: &str, owner: &str) -> bool {
        let adopted = self.adopts(owner);
        let is_kept = |place: &QueuePlace| claim(&place.entry) == value && !mutant!(OwnClaimRefused);
        let anybodys = mutant!(ClaimIsAnybodys) && is_claim(value);
        owner == &**self.owner || adopted || self.place.is_some_and(is_kept) || anybodys
    }
}

/// The exclusive lock on one server.
pub(super) fn apply(state: &mut State, op: &LockOp, now_us: u64) -> Result<Reply, Reply> {
    let LockOp { keys, by, verb } = op;
    match verb {
        Verb::Acquire { .. } => acquire(state, op, now_us),
        Verb::Confirm { fence } => confirm(state, keys, by, *fence, now_us),
        Verb::Extend { ttl_ms, fence, .. } => extend(state, keys, by, *ttl_ms, *fence, now_us),
        Verb::Heal { ttl_ms, fence } => heal(state, keys, by, *ttl_ms, *fence, now_us),
        Verb::Release { leave, kept_ms, .. } => release(state, keys, (by, leave.as_deref()), *kept_ms, now_us),
        Verb::Leave => leave(state, keys, by, now_us),
        // Only a job has a record.
        Verb::Inspect | Verb::EndAttempt { .. } | Verb::Reset | Verb::JobStatus => inspect(state, keys, now_us),
    }
}

fn acquire(state: &mut State, op: &LockOp, now_us: u64) -> Result<Reply, Reply> {
    let Some(args) = AcquireArgs::of(op) else { return inspect(state, &op.keys, now_us) };
    let free = find_free(state, &op.keys, &args, now_us)?;
    take(state, &op.keys, &args, &free, now_us)
}

/// A lock that can be acquired: it has no holder, or one that counts as none.
pub(super) struct Free {
    pub(super) found: Found,
    /// Whether there is a queue.
    is_queued: bool,
}

/// The first half of an acquire: looks whether the lock is free for it.
///
/// # Errors
/// The refusal.
pub(super) fn find_free(state: &mut State, keys: &Keys, args: &AcquireArgs<'_>, now_us: u64) -> Result<Free, Reply> {
    let mut found = look(state, keys, now_us)?;
    if args.comes_too_late(found.owner()) {
        return Err(refusal(state, keys, &found, args.owner));
    }
    let is_queued = state.get(keys.queue(), now_us).is_some();
    if found.value.is_none() && is_queued {
        let head = queue::first(state, keys, now_us);
        let passes = |head: &queue::Head| !args.place.is_some_and(|place| head.is_or_came_after(place));
        if head.is_some_and(|head| passes(&head) && head.is_next(args.fair, now_us)) {
            queue::wake(state, keys, true, true, now_us);
            found = look(state, keys, now_us)?;
        }
    }
    if found.value().is_some_and(|value| !args.counts_as_free(value, owner_of(value))) {
        let holder = holder(state, keys, &found, args.owner).unwrap_or_default();
        let verdict = Verdict::Held { holder, remaining: found.remaining() };
        let queued = args.place.map_or(Queued::Nothing, |place| queue::enqueue(state, keys, place, now_us));
        return Err(Reply { queued, ..found.reply(verdict) });
    }
    Ok(Free { found, is_queued })
}

/// The second half of an acquire: takes the lock, with the next fence.
///
/// # Errors
/// The refusal, if the clock can give none.
pub(super) fn take(state: &mut State, keys: &Keys, args: &AcquireArgs<'_>, free: &Free, now_us: u64) -> Result<Reply, Reply> {
    let Free { found, is_queued } = free;
    let fence = clock::tick(state, keys.clock(), args.floor, now_us).map_err(|broken| conflict(0, broken, now_us))?;
    // An acquire that comes late, or twice, may find its own hold extended by now: the remaining time is never shortened.
    let own = found.left_ms.filter(|_| found.is_owned_by(args.owner));
    let remains = own.map_or(args.ttl_ms, |left| left.max(args.ttl_ms));
    let entry = args.place.map(|place| &place.entry).filter(|_| *is_queued && !mutant!(WinnerStaysQueued));
    if let Some(entry) = entry {
        queue::leave(state, keys, entry, now_us);
    }
    write(state, keys, &with_fence(args.owner, fence), remains, now_us);
    let queued = args.place.map_or(Queued::Nothing, |place| queue::served(state, keys, place, false, now_us));
    Ok(Reply { queued, ..Reply::new(Verdict::Vote, now_us, fence) })
}

/// Takes a free lock as a transaction does: nothing stands behind the owner value, and the clock gives an id in any case. Gives whether
/// the lock was free, and the id.
pub(super) fn take_free(
    state: &mut State,
    keys: &Keys,
    (owner, ttl_ms): (&Arc<str>, u64),
    now_us: u64,
) -> (bool, Result<clock::Id, String>) {
    let holder = state.get(keys.lock(), now_us);
    let is_free = holder.is_none_or(|entry| mutant!(TransactionTakesClaim) && entry.text().is_some_and(is_claim));
    if is_free {
        state.put(keys.lock(), Value::Text(Arc::clone(owner)), now_us, Some(ttl_ms));
    }
    (is_free, clock::give(state, keys.clock(), now_us))
}

/// Takes the lock's key alone: the clock is asked for the fence afterwards, and nobody is enqueued.
pub(super) fn take_alone(state: &mut State, op: &LockOp, now_us: u64) -> Result<Reply, Reply> {
    let keys = &op.keys;
    let Some(args) = AcquireArgs::of(op) else { return inspect(state, keys, now_us) };
    let found = look(state, keys, now_us)?;
    if args.comes_too_late(found.owner()) {
        return Err(found.no());
    }
    if let Some(value) = found.value().filter(|value| !args.counts_as_free(value, owner_of(value))) {
        return Err(found.reply(Verdict::Held { holder: cut(owner_of(value)).to_owned(), remaining: found.remaining() }));
    }
    let own = found.left_ms.filter(|_| found.is_owned_by(args.owner));
    let remains = own.map_or(args.ttl_ms, |left| left.max(args.ttl_ms));
    state.put(keys.lock(), Value::Text(Arc::clone(args.owner)), now_us, Some(remains));
    Ok(Reply::new(Verdict::Vote, now_us, 0))
}

/// Confirms a hold behind a failover. The clock then gives no fence below that of the hold, whichever client has the lock.
fn confirm(state: &mut State, keys: &Keys, owner: &str, fence: u64, now_us: u64) -> Result<Reply, Reply> {
    let found = look(state, keys, now_us)?;
    clock::raise(state, keys.clock(), fence, now_us);
    if !found.is_owned_by(owner) && !mutant!(ConfirmUnowned) {
        return Err(found.no());
    }
    show_fence(state, keys, fence, now_us);
    Ok(Reply::new(Verdict::Ok, now_us, fence))
}

fn extend(state: &mut State, keys: &Keys, owner: &str, ttl_ms: u64, fence: u64, now_us: u64) -> Result<Reply, Reply> {
    let found = look(state, keys, now_us)?;
    if !found.is_owned_by(owner) {
        return Err(found.no());
    }
    prolong(state, keys, ttl_ms, found.left_ms, now_us);
    show_fence(state, keys, fence, now_us);
    Ok(Reply { waits: found.shows_waiters(), ..Reply::new(Verdict::Ok, now_us, fence) })
}

fn heal(state: &mut State, keys: &Keys, owner: &str, ttl_ms: u64, fence: u64, now_us: u64) -> Result<Reply, Reply> {
    let found = look(state, keys, now_us)?;
    clock::raise(state, keys.clock(), fence, now_us);
    if found.is_owned_by(owner) {
        prolong(state, keys, ttl_ms, found.left_ms, now_us);
        show_fence(state, keys, fence, now_us);
        return Ok(Reply::new(Verdict::Ok, now_us, fence));
    }
    // A claim keeps a free lock for a waiter, and here the lock only looked free.
    if found.value().is_some_and(|holder| !is_claim(holder) || mutant!(ClaimStopsHeal)) {
        return Err(found.no());
    }
    write(state, keys, &with_fence(owner, fence), ttl_ms, now_us);
    Ok(Reply::new(Verdict::Ok, now_us, fence))
}

fn release(
    state: &mut State,
    keys: &Keys,
    (owner, leave): (&str, Option<&str>),
    kept_ms: u64,
    now_us: u64,
) -> Result<Reply, Reply> {
    if let Some(entry) = leave {
        queue::leave(state, keys, entry, now_us);
    }
    let found = look(state, keys, now_us)?;
    if !found.is_owned_by(owner) && !mutant!(ReleaseUnowned) {
        let reply = match leave {
            Some(entry) => pass_on(state, keys, owner, entry, found),
            None => refusal(state, keys, &found, owner),
        };
        return Err(with_last_fence(reply, state, keys, now_us));
    }
    let nobody_waits = leave.is_none() && !found.value().is_some_and(shows_waiters);
    queue::free(state, keys, (owner, kept_ms), nobody_waits, now_us);
    Ok(Reply::new(Verdict::Ok, now_us, 0))
}

/// A refused release shows the last fence that the clock has given.
fn with_last_fence(reply: Reply, state: &State, keys: &Keys, now_us: u64) -> Reply {
    Reply { last_fence: clock::last(state, keys.clock(), now_us), ..reply }
}

fn leave(state: &mut State, keys: &Keys, entry: &str, now_us: u64) -> Result<Reply, Reply> {
    queue::leave(state, keys, entry, now_us);
    let found = look(state, keys, now_us)?;
    Err(with_last_fence(pass_on(state, keys, entry, entry, found), state, keys, now_us))
}

pub(super) fn inspect(state: &State, keys: &Keys, now_us: u64) -> Result<Reply, Reply> {
    let found = look(state, keys, now_us)?;
    let (holder, inside) = (holder(state, keys, &found, ""), inside(state, keys, &found).map(Box::new));
    let verdict = Verdict::Seen { holder, remaining: found.remaining(), inside };
    Ok(Reply { queued: queue::view(state, keys, now_us), ..found.seen(verdict) })
}

/// Wakes the next waiter in the place of one that has left: the server may have notified that one, or kept the lock for it.
fn pass_on(state: &mut State, keys: &Keys, asks: &str, entry: &str, mut found: Found) -> Reply {
    if found.is_claimed_by(entry) && !mutant!(LeaverKeepsClaim) {
        state.remove(keys.lock());
        found = Found { value: None, left_ms: None, ..found };
    }
    if !found.is_held() && !mutant!(LeaverKeepsHint) {
        queue::wake(state, keys, true, false, found.now_us);
    }
    let reply = refusal(state, keys, &found, asks);
    let_in(state, keys, &found);
    reply
}

/// Lets those in that a waiter has stopped, and who may enter beside those inside: it has left.
pub(super) fn let_in(state: &mut State, keys: &Keys, found: &Found) {
    let mut room = Room { state, keys, now_us: found.now_us };
    if let Some(gate) = found.gate().filter(|_| room.last_end().is_some() && !mutant!(LeaverStopsReaders)) {
        room.admit(gate);
    }
}

/// The refusal of a hold that the lock's key doesn't show.
pub(super) fn refusal(state: &State, keys: &Keys, found: &Found, asks: &str) -> Reply {
    found.reply(Verdict::No { holder: holder(state, keys, found, asks), remaining: found.remaining() })
}

/// Writes the lock's value again. It shows whether a client waits.
fn write(state: &mut State, keys: &Keys, value: &str, ttl_ms: u64, now_us: u64) {
    let is_queued = state.get(keys.queue(), now_us).is_some() && !mutant!(WaitersForgotten);
    let value = if is_queued { with_waiters(value) } else { value.to_owned() };
    state.put(keys.lock(), Value::Text(value.into()), now_us, Some(ttl_ms));
}

/// Raises the expiry of our lock if it would end earlier. Gives what remains.
pub(super) fn prolong(state: &mut State, keys: &Keys, ttl_ms: u64, left_ms: Option<u64>, now_us: u64) -> u64 {
    match left_ms {
        Some(left) if left >= ttl_ms && !mutant!(ExtensionShortens) => left,
        _ => {
            state.expire(keys.lock(), now_us, ttl_ms);
            ttl_ms
        }
    }
}

#[cfg(test)]
#[path = "exclusive_tests.rs"]
mod tests;
