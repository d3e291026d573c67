//! The lock of a quorum: one holder by the votes of a majority of several servers, of which this is one. Its fence is a key beside it, and
//! the queue is a hint only.

use std::sync::Arc;

use super::cut::cut;
use super::exclusive::{AcquireArgs, prolong};
use super::fence::Fence;
use super::found::{self, conflict};
use super::state::{State, Value};
use super::{fence, queue};
use crate::mutant::mutant;
use crate::name::Keys;
use crate::op::holder::is_claim;
use crate::op::{LockOp, Queued, Reply, Verb, Verdict};

/// The lock of a quorum.
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
    Ok(vote(state, &op.keys, &args, &free, now_us))
}

/// A lock that can be acquired: it has no holder, or one that counts as none.
struct Free {
    found: Found,
    /// Whether there is a queue.
    is_queued: bool,
}

/// The first half of an acquire: looks whether the lock is free for it.
///
/// # Errors
/// The refusal.
fn find_free(state: &mut State, keys: &Keys, args: &AcquireArgs<'_>, now_us: u64) -> Result<Free, Reply> {
    let mut found = look(state, keys, now_us)?;
    if args.comes_too_late(found.holder()) {
        return Err(found.no());
    }
    // Nobody waits for a free lock without the mark in its fence.
    let is_queued = found.is_queued(state, keys);
    if !found.lock.is_held() && is_queued && mutant!(QuorumBars) {
        let head = queue::first(state, keys, now_us);
        let passes = |head: &queue::Head| !args.place.is_some_and(|place| head.is_or_came_after(place));
        if head.is_some_and(|head| passes(&head) && head.is_next(args.fair, now_us)) {
            queue::wake(state, keys, true, true, now_us);
            found = look(state, keys, now_us)?;
        }
    }
    if let Some(holder) = found.holder().filter(|holder| !args.counts_as_free(holder, holder)) {
        let queued = args.place.map_or(Queued::Nothing, |place| queue::enqueue(state, keys, place, now_us));
        let verdict = Verdict::Held { holder: cut(holder).to_owned(), remaining: found.lock.remaining() };
        return Err(Reply { queued, ..found.reply(verdict) });
    }
    Ok(Free { found, is_queued })
}

/// The second half of an acquire: takes the lock, and votes.
fn vote(state: &mut State, keys: &Keys, args: &AcquireArgs<'_>, free: &Free, now_us: u64) -> Reply {
    let Free { found, is_queued } = free;
    let is_queued = *is_queued;
    let vote = match found.holder() {
        Some(_) if mutant!(OldFence) => found.fence.number,
        _ => fence::vote(found.fence.number, args.floor, now_us),
    };
    // An acquire that comes late, or twice, may find its own hold extended by now: the remaining time is never shortened.
    let own = found.lock.left_ms.filter(|_| found.holder() == Some(&**args.owner));
    let remains = own.map_or(args.ttl_ms, |left| left.max(args.ttl_ms));
    take(state, keys, args.owner, remains, now_us);
    fence::write(state, keys.fence(), vote, is_queued, remains, now_us);
    let queued = args.place.map_or(Queued::Nothing, |place| queue::served(state, keys, place, is_queued, now_us));
    Reply { queued, ..Reply::new(Verdict::Vote, now_us, vote) }
}

fn confirm(state: &mut State, keys: &Keys, owner: &str, fence: u64, now_us: u64) -> Result<Reply, Reply> {
    let found = look(state, keys, now_us)?;
    let ours = found.holder() == Some(owner) || mutant!(ConfirmUnowned);
    if !ours || (found.fence.number > fence && !mutant!(ConfirmOlder)) {
        return Err(found.no());
    }
    fence::write(state, keys.fence(), fence, found.fence.is_marked, found.lock.left_ms.unwrap_or(0), now_us);
    Ok(Reply::new(Verdict::Ok, now_us, fence))
}

fn extend(state: &mut State, keys: &Keys, owner: &Arc<str>, ttl_ms: u64, fence: u64, now_us: u64) -> Result<Reply, Reply> {
    let found = look(state, keys, now_us)?;
    if found.holder() != Some(&**owner) || (found.fence.number > fence && !mutant!(ExtendOlder)) {
        return Err(found.no());
    }
    let remains = prolong(state, keys, ttl_ms, found.lock.left_ms, now_us);
    fence::write(state, keys.fence(), fence, found.fence.is_marked, remains, now_us);
    Ok(Reply::new(Verdict::Ok, now_us, fence))
}

fn heal(state: &mut State, keys: &Keys, owner: &Arc<str>, ttl_ms: u64, fence: u64, now_us: u64) -> Result<Reply, Reply> {
    let mut found = look(state, keys, now_us)?;
    // A claim keeps a free lock for a waiter, and here the lock only looked free.
    let is_anothers = |holder: &str| holder != &**owner && (!is_claim(holder) || mutant!(ClaimStopsHeal));
    if found.holder().is_some_and(is_anothers) || found.fence.number > fence {
        return Err(found.no());
    }
    if found.holder() != Some(&**owner) {
        take(state, keys, owner, ttl_ms, now_us);
        found.lock.left_ms = None;
    }
    let remains = prolong(state, keys, ttl_ms, found.lock.left_ms, now_us);
    fence::write(state, keys.fence(), fence, found.fence.is_marked, remains, now_us);
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
    let found = look_whatever_the_fence(state, keys, now_us)?;
    if found.holder() != Some(owner) && !mutant!(ReleaseUnowned) {
        return Err(match leave {
            Some(entry) => pass_on(state, keys, entry, found),
            None => found.no(),
        });
    }
    let nobody_waits = leave.is_none() && fence::shows_no_waiters(state, keys.fence(), now_us);
    queue::free(state, keys, (owner, kept_ms), nobody_waits, now_us);
    Ok(Reply::new(Verdict::Ok, now_us, 0))
}

fn leave(state: &mut State, keys: &Keys, entry: &str, now_us: u64) -> Result<Reply, Reply> {
    queue::leave(state, keys, entry, now_us);
    let found = look_whatever_the_fence(state, keys, now_us)?;
    Err(pass_on(state, keys, entry, found))
}

fn inspect(state: &State, keys: &Keys, now_us: u64) -> Result<Reply, Reply> {
    let found = look(state, keys, now_us)?;
    let verdict = Verdict::Seen { holder: found.shown(), remaining: found.lock.remaining(), inside: None };
    Ok(Reply { queued: queue::view(state, keys, now_us), ..found.reply(verdict) })
}

/// The state of a fence and of its lock before the operation.
struct Found {
    fence: Fence,
    /// The value of the key is its owner: nothing is written behind it.
    lock: found::Found,
}

impl Found {
    fn holder(&self) -> Option<&str> {
        self.lock.value()
    }

    fn no(&self) -> Reply {
        self.reply(Verdict::No { holder: self.shown(), remaining: self.lock.remaining() })
    }

    fn reply(&self, verdict: Verdict) -> Reply {
        Reply::new(verdict, self.lock.now_us, self.fence.number)
    }

    /// Whether an acquire has to look at the queue.
    fn is_queued(&self, state: &State, keys: &Keys) -> bool {
        let may_be = self.lock.is_held() || !self.fence.denies_waiters();
        may_be && state.get(keys.queue(), self.lock.now_us).is_some()
    }

    /// The part of the holder's value that a reply shows.
    fn shown(&self) -> Option<String> {
        self.holder().map(|holder| cut(holder).to_owned())
    }
}

fn look(state: &State, keys: &Keys, now_us: u64) -> Result<Found, Reply> {
    let fence = fence::read(state, keys.fence(), now_us).map_err(|found| conflict(0, found, now_us))?;
    beside(state, keys, fence, now_us)
}

/// The state of a lock, even if its fence is unreadable: a release doesn't depend on the fence. An unreadable fence counts as
/// zero.
fn look_whatever_the_fence(state: &State, keys: &Keys, now_us: u64) -> Result<Found, Reply> {
    beside(state, keys, fence::read(state, keys.fence(), now_us).unwrap_or_default(), now_us)
}

fn beside(state: &State, keys: &Keys, fence: Fence, now_us: u64) -> Result<Found, Reply> {
    let lock = found::look(state, keys, now_us).map_err(|conflict| Reply { fence: fence.number, ..conflict })?;
    Ok(Found { fence, lock })
}

/// Wakes the next waiter in the place of one that has left: the server may have notified that one, or kept the lock for it.
fn pass_on(state: &mut State, keys: &Keys, entry: &str, mut found: Found) -> Reply {
    if found.lock.is_claimed_by(entry) && !mutant!(LeaverKeepsClaim) {
        state.remove(keys.lock());
        (found.lock.value, found.lock.left_ms) = (None, None);
    }
    if !found.lock.is_held() && !mutant!(LeaverKeepsHint) {
        queue::wake(state, keys, false, false, found.lock.now_us);
    }
    found.no()
}

fn take(state: &mut State, keys: &Keys, owner: &Arc<str>, ttl_ms: u64, now_us: u64) {
    state.put(keys.lock(), Value::Text(owner.clone()), now_us, Some(ttl_ms));
}

#[cfg(test)]
#[path = "quorum_tests.rs"]
mod tests;
