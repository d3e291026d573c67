//! Several exclusive locks that are acquired all at once, or none of them, on one server. What holds for one of them is in
//! [`exclusive`](super::exclusive): from the grant on each is a lock of its own.
//!
//! An acquire looks at each lock in the order of the names. If all are free it takes all; else its waiter joins the queue of the first busy
//! one. It leaves every other queue then, and gives back what was kept for it there, or what it was notified of. But where the busy one is
//! only kept for another waiter, it lets the locks before that one be kept for it: else waiters for the same locks, for each of which
//! another one is kept, would give them to each other without end. Locks are in the order of their keys, so two of them never wait for
//! each other.

use std::sync::Arc;

use super::exclusive::{self, AcquireArgs, find_free, inspect, take};
use super::{State, queue};
use crate::mutant::mutant;
use crate::name::Keys;
use crate::op::holder::{claim, is_claim};
use crate::op::{LockOp, QueuePlace, Reply, Verb, Verdict};

pub(super) fn apply(state: &mut State, op: &LockOp, now_us: u64) -> Result<Reply, Reply> {
    match &op.verb {
        Verb::Acquire { .. } => acquire(state, op, now_us),
        verb @ (Verb::Release { .. } | Verb::Leave) => {
            let done = release(state, (&op.by, verb), op.keys.parts(), now_us);
            done.unwrap_or_else(|| inspect(state, &op.keys, now_us))
        }
        _ => inspect(state, &op.keys, now_us),
    }
}

fn acquire(state: &mut State, op: &LockOp, now_us: u64) -> Result<Reply, Reply> {
    let parts = op.keys.parts();
    let Some(args) = AcquireArgs::of(op) else { return inspect(state, &op.keys, now_us) };
    // Before the dead are dropped: its client may have been silent, and it stands behind nobody else.
    let stood: Vec<_> = parts.iter().map(|part| args.place.is_some_and(|place| stands(state, part, place, now_us))).collect();
    for (at, part) in parts.iter().enumerate() {
        if let Err(refusal) = find_free(state, part, &args, now_us) {
            // After any other refusal the waiter gives up, and leaves.
            if let (Some(place), Verdict::Held { holder, .. }) = (args.place, &refusal.verdict) {
                let keeps = if is_claim(holder) && !mutant!(SeveralClaimsGivenUp) { at } else { 0 };
                leave_others(state, (parts, at), place, (&stood, keeps), now_us);
            }
            return Err(Reply { at, ..refusal });
        }
    }
    let mut fences = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        let free = find_free(state, part, &args, now_us)?;
        match take(state, part, &args, &free, now_us) {
            Ok(reply) => fences.push(reply.fence),
            // There is another value in the place of its clock. The locks before it are free again.
            Err(broken) => {
                let taken = if mutant!(SeveralTakenKept) { &[] } else { &parts[..at] };
                _ = release(state, (&op.by, &Verb::Release { leave: None, kept_ms: 0 }), taken, now_us);
                return Err(Reply { at, ..broken });
            }
        }
    }
    let fence = fences.first().copied().unwrap_or_default();
    Ok(Reply { fences, ..Reply::new(Verdict::Vote, now_us, fence) })
}

/// Whether a waiter stands in the queue of a lock.
fn stands(state: &State, part: &Keys, place: &QueuePlace, now_us: u64) -> bool {
    state.members(part.queue(), now_us).is_some_and(|queue| queue.score(&place.entry).is_some())
}

/// Takes a waiter out of the queues of all locks but one; `stood` says in which it was. What another one kept for it, or notified it of, is
/// the next waiter's; but the first `keeps` of them go on keeping themselves for it.
fn leave_others(
    state: &mut State,
    (parts, at): (&[Arc<Keys>], usize),
    place: &QueuePlace,
    (stood, keeps): (&[bool], usize),
    now_us: u64,
) {
    let entry = &place.entry;
    // A server has taken it out of the queue that it was in: it was notified there.
    let was_notified = place.arrival > 0 && !stood.contains(&true);
    for (other, part) in parts.iter().enumerate().filter(|(other, _)| *other != at) {
        let value = state.get(part.lock(), now_us).and_then(|lock| lock.text());
        let is_kept = other < keeps && value.is_some_and(|value| *value == *claim(entry));
        let stood = if mutant!(SeveralDeadNotPassedOn) { stands(state, part, place, now_us) } else { stood[other] };
        if (was_notified || stood) && !is_kept && !mutant!(SeveralHintKept) {
            let leave = LockOp { keys: Arc::clone(part), by: Arc::clone(entry), verb: Verb::Leave };
            _ = exclusive::apply(state, &leave, now_us);
        }
        // Others of its client may stand there, for which it asks, too.
        if !mutant!(SeveralLeftToDie) {
            queue::lives_on(state, part, entry, now_us);
        }
    }
}

/// Does the same with locks, from the last to the first: gives the reply about the first.
fn release(state: &mut State, (by, verb): (&Arc<str>, &Verb), parts: &[Arc<Keys>], now_us: u64) -> Option<Result<Reply, Reply>> {
    let op = |part: &Arc<Keys>| LockOp { keys: Arc::clone(part), by: Arc::clone(by), verb: verb.clone() };
    parts.iter().rev().map(|part| exclusive::apply(state, &op(part), now_us)).last()
}

#[cfg(test)]
#[path = "several_tests.rs"]
mod tests;
