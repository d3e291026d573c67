//! The lock of a quorum: one holder by the votes of a majority of several servers, of which this is one. Its fence is a key beside it, and
//! the queue is a hint only.

use std::sync::Arc;
use std::time::Duration;

use super::cut::cut;
use super::fence::Fence;
use super::found::conflict;
use super::state::{State, Value};
use super::{fence, queue};
use crate::error::Remaining;
use crate::mutant::mutant;
use crate::name::Keys;
use crate::op::holder::{claim, is_claim};
use crate::op::{Adoption, LockOp, QueuePlace, Queued, Reply, Verb, Verdict};

/// The arguments of an acquire.
struct AcquireArgs<'a> {
    owner: &'a Arc<str>,
    ttl_ms: u64,
    proposal: u64,
    adopt: Option<&'a Adoption>,
    fair: bool,
    place: Option<&'a QueuePlace>,
}

impl<'a> AcquireArgs<'a> {
    /// The arguments of an operation that is an acquire.
    fn of(op: &'a LockOp) -> Option<Self> {
        let Verb::Acquire { ttl_ms, proposal, adopt, fair, place, .. } = &op.verb else { return None };
        let (adopt, place) = (adopt.as_ref(), place.as_ref());
        Some(Self { owner: &op.by, ttl_ms: *ttl_ms, proposal: *proposal, adopt, fair: *fair, place })
    }

    fn adopts(&self, holder: &str) -> bool {
        self.adopt.is_some_and(|adopt| !adopt.owner.is_empty() && &*adopt.owner == holder)
    }

    /// Whether the acquire wants only the hold that was handed over, and that hold isn't there: it was adopted before, released,
    /// or has expired.
    fn comes_too_late(&self, holder: Option<&str>) -> bool {
        let is_there = holder.is_some_and(|holder| holder == &**self.owner || self.adopts(holder));
        self.adopt.is_some_and(|adopt| !adopt.or_acquire) && !is_there && !mutant!(AdoptsAnything)
    }

    fn counts_as_free(&self, holder: &str) -> bool {
        let adopted = self.adopts(holder);
        let is_kept = |place: &QueuePlace| claim(&place.entry) == holder && !mutant!(OwnClaimRefused);
        let anybodys = mutant!(ClaimIsAnybodys) && is_claim(holder);
        holder == &**self.owner || adopted || self.place.is_some_and(is_kept) || anybodys
    }
}

/// The lock of a quorum.
pub(super) fn apply(state: &mut State, op: &LockOp, now_us: u64) -> Result<Reply, Reply> {
    let LockOp { keys, by, verb } = op;
    match verb {
        Verb::Acquire { .. } => match AcquireArgs::of(op) {
            Some(args) => acquire(state, keys, &args, now_us),
            None => inspect(state, keys, now_us),
        },
        Verb::Confirm { fence } => confirm(state, keys, by, *fence, now_us),
        Verb::Extend { ttl_ms, fence, .. } => extend(state, keys, by, *ttl_ms, *fence, now_us),
        Verb::Heal { ttl_ms, fence } => heal(state, keys, by, *ttl_ms, *fence, now_us),
        Verb::Release { leave, kept_ms, .. } => release(state, keys, (by, leave.as_deref()), *kept_ms, now_us),
        Verb::Leave => leave(state, keys, by, now_us),
        // Only a job has a record.
        Verb::Inspect | Verb::EndAttempt { .. } | Verb::Reset | Verb::JobStatus => inspect(state, keys, now_us),
    }
}

fn acquire(state: &mut State, keys: &Keys, args: &AcquireArgs<'_>, now_us: u64) -> Result<Reply, Reply> {
    let free = find_free(state, keys, args, now_us)?;
    Ok(vote(state, keys, args, &free, now_us))
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
    if args.comes_too_late(found.holder.as_deref()) {
        return Err(found.no());
    }
    // Nobody waits for a free lock without the mark in its fence.
    let is_queued = found.is_queued(state, keys);
    if found.holder.is_none() && is_queued && mutant!(QuorumBars) {
        let head = queue::first(state, keys, now_us);
        let passes = |head: &queue::Head| !args.place.is_some_and(|place| head.is_or_came_after(place));
        if head.is_some_and(|head| passes(&head) && head.is_next(args.fair, now_us)) {
            queue::wake(state, keys, true, true, now_us);
            found = look(state, keys, now_us)?;
        }
    }
    if let Some(holder) = found.holder.as_deref().filter(|holder| !args.counts_as_free(holder)) {
        let queued = args.place.map_or(Queued::Nothing, |place| queue::enqueue(state, keys, place, now_us));
        let verdict = Verdict::Held { holder: cut(holder).to_owned(), remaining: found.remaining() };
        return Err(Reply { queued, ..found.reply(verdict) });
    }
    Ok(Free { found, is_queued })
}

/// The second half of an acquire: takes the lock, and votes.
fn vote(state: &mut State, keys: &Keys, args: &AcquireArgs<'_>, free: &Free, now_us: u64) -> Reply {
    let Free { found, is_queued } = free;
    let is_queued = *is_queued;
    let vote = match found.holder {
        Some(_) if mutant!(OldFence) => found.fence.number,
        _ => fence::vote(found.fence.number, args.proposal, now_us),
    };
    // An acquire that comes late, or twice, may find its own hold extended by now: the remaining time is never shortened.
    let own = found.left_ms.filter(|_| found.holder.as_deref() == Some(&**args.owner));
    let remains = own.map_or(args.ttl_ms, |left| left.max(args.ttl_ms));
    take(state, keys, args.owner, remains, now_us);
    fence::write(state, keys.fence(), vote, is_queued, remains, now_us);
    let queued = args.place.map_or(Queued::Nothing, |place| queue::served(state, keys, place, is_queued, now_us));
    Reply { queued, ..Reply::new(Verdict::Vote, now_us, vote) }
}

fn confirm(state: &mut State, keys: &Keys, owner: &str, fence: u64, now_us: u64) -> Result<Reply, Reply> {
    let found = look(state, keys, now_us)?;
    let ours = found.holder.as_deref() == Some(owner) || mutant!(ConfirmUnowned);
    if !ours || (found.fence.number > fence && !mutant!(ConfirmOlder)) {
        return Err(found.no());
    }
    fence::write(state, keys.fence(), fence, found.fence.is_marked, found.left_ms.unwrap_or(0), now_us);
    Ok(Reply::new(Verdict::Ok, now_us, fence))
}

fn extend(state: &mut State, keys: &Keys, owner: &Arc<str>, ttl_ms: u64, fence: u64, now_us: u64) -> Result<Reply, Reply> {
    let found = look(state, keys, now_us)?;
    if found.holder.as_deref() != Some(&**owner) || (found.fence.number > fence && !mutant!(ExtendOlder)) {
        return Err(found.no());
    }
    let remains = prolong(state, keys, ttl_ms, found.left_ms, now_us);
    fence::write(state, keys.fence(), fence, found.fence.is_marked, remains, now_us);
    Ok(Reply::new(Verdict::Ok, now_us, fence))
}

fn heal(state: &mut State, keys: &Keys, owner: &Arc<str>, ttl_ms: u64, fence: u64, now_us: u64) -> Result<Reply, Reply> {
    let mut found = look(state, keys, now_us)?;
    // A claim keeps a free lock for a waiter, and here the lock only looked free.
    let is_anothers = |holder: &str| holder != &**owner && (!is_claim(holder) || mutant!(ClaimStopsHeal));
    if found.holder.as_deref().is_some_and(is_anothers) || found.fence.number > fence {
        return Err(found.no());
    }
    if found.holder.as_deref() != Some(&**owner) {
        take(state, keys, owner, ttl_ms, now_us);
        found.left_ms = None;
    }
    let remains = prolong(state, keys, ttl_ms, found.left_ms, now_us);
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
    if found.holder.as_deref() != Some(owner) && !mutant!(ReleaseUnowned) {
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
    let verdict = Verdict::Seen { holder: found.shown(), remaining: found.remaining(), inside: None };
    Ok(Reply { queued: queue::view(state, keys, now_us), ..found.reply(verdict) })
}

/// The state of a lock before the operation.
struct Found {
    fence: Fence,
    holder: Option<Arc<str>>,
    /// `None` without a holder, and for one without expiry.
    left_ms: Option<u64>,
    now_us: u64,
}

impl Found {
    fn no(&self) -> Reply {
        self.reply(Verdict::No { holder: self.shown(), remaining: self.remaining() })
    }

    fn reply(&self, verdict: Verdict) -> Reply {
        Reply::new(verdict, self.now_us, self.fence.number)
    }

    /// Whether an acquire has to look at the queue.
    fn is_queued(&self, state: &State, keys: &Keys) -> bool {
        let may_be = self.holder.is_some() || !self.fence.denies_waiters();
        may_be && state.get(keys.queue(), self.now_us).is_some()
    }

    /// The part of the holder's value that a reply shows.
    fn shown(&self) -> Option<String> {
        self.holder.as_ref().map(|holder| cut(holder).to_owned())
    }

    fn remaining(&self) -> Remaining {
        match (&self.holder, self.left_ms) {
            (None, _) => Remaining::Gone,
            (Some(_), None) => Remaining::Forever,
            (Some(_), Some(left)) => Remaining::For(Duration::from_millis(left)),
        }
    }
}

fn look(state: &State, keys: &Keys, now_us: u64) -> Result<Found, Reply> {
    let fence = fence::read(state, keys.fence(), now_us).map_err(|found| conflict(0, found, now_us))?;
    holder(state, keys, fence, now_us)
}

/// The state of a lock, even if its fence is unreadable: a release doesn't depend on the fence. An unreadable fence counts as
/// zero.
fn look_whatever_the_fence(state: &State, keys: &Keys, now_us: u64) -> Result<Found, Reply> {
    holder(state, keys, fence::read(state, keys.fence(), now_us).unwrap_or_default(), now_us)
}

fn holder(state: &State, keys: &Keys, fence: Fence, now_us: u64) -> Result<Found, Reply> {
    let Some(entry) = state.get(keys.lock(), now_us) else {
        return Ok(Found { fence, holder: None, left_ms: None, now_us });
    };
    match &entry.value {
        Value::Text(text) => Ok(Found { fence, holder: Some(text.clone()), left_ms: entry.left_ms(now_us), now_us }),
        foreign => Err(conflict(fence.number, foreign.type_name().to_owned(), now_us)),
    }
}

/// Wakes the next waiter in the place of one that has left: the server may have notified that one, or kept the lock for it.
fn pass_on(state: &mut State, keys: &Keys, entry: &str, mut found: Found) -> Reply {
    if found.holder.as_deref() == Some(&claim(entry)) && !mutant!(LeaverKeepsClaim) {
        state.remove(keys.lock());
        found = Found { holder: None, left_ms: None, ..found };
    }
    if found.holder.is_none() && !mutant!(LeaverKeepsHint) {
        queue::wake(state, keys, false, false, found.now_us);
    }
    found.no()
}

fn take(state: &mut State, keys: &Keys, owner: &Arc<str>, ttl_ms: u64, now_us: u64) {
    state.put(keys.lock(), Value::Text(owner.clone()), now_us, Some(ttl_ms));
}

/// Raises the expiry of our lock if it would end earlier. Gives what remains.
fn prolong(state: &mut State, keys: &Keys, ttl_ms: u64, left_ms: Option<u64>, now_us: u64) -> u64 {
    match left_ms {
        Some(left) if left >= ttl_ms && !mutant!(ExtensionShortens) => left,
        _ => {
            state.expire(keys.lock(), now_us, ttl_ms);
            ttl_ms
        }
    }
}

#[cfg(test)]
#[path = "quorum_tests.rs"]
mod tests;
