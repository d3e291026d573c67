//! Parts of an operation on a lock: the same as the operation would do if there were no key but one.

use std::sync::Arc;

use super::clock;
use super::exclusive::take_alone;
use super::found::conflict;
use super::state::{State, Value};
use super::{Env, apply as apply_whole};
use crate::error::Remaining;
use crate::op::{LockOp, Op, Part, PartOp, Queued, Reply, Verb, Verdict};

/// Applies a part of an operation.
pub(super) fn apply(state: &mut State, op: &PartOp, env: &Env<'_>) -> Result<Reply, Reply> {
    let PartOp { whole, part } = op;
    match part {
        Part::Tick => tick(state, whole, env.now_us),
        Part::CountAttempt { fence } => Ok(count(state, op, *fence, env)),
        Part::Reset { holder } => {
            let lock = holder.as_deref().map(|holder| (whole.keys.lock(), holder));
            let reply = alone(state, (op.key(), None), lock, &Op::Lock(whole.clone()), env);
            Ok(match reply.verdict {
                Verdict::No { holder, .. } => Reply { verdict: Verdict::No { holder, remaining: Remaining::Gone }, ..reply },
                _ => reply,
            })
        }
        Part::Take => take_alone(state, whole, env.now_us),
        Part::Extend | Part::Release | Part::Look | Part::EndAttempt | Part::Status => {
            let marks = Some(whole.keys.marks()).filter(|_| whole.keys.kind().is_shared());
            let reply = alone(state, (op.key(), marks), None, &Op::Lock(whole.clone()), env);
            Ok(Reply { queued: Queued::Nothing, ..reply })
        }
    }
}

/// Applies an operation where there is no key but `key` and perhaps another one, and perhaps a lock with a holder, and keeps what becomes of
/// those keys.
fn alone(state: &mut State, (key, other): (&str, Option<&str>), lock: Option<(&str, &str)>, op: &Op, env: &Env<'_>) -> Reply {
    let mut only = State::new();
    let now_us = env.now_us;
    for key in other.into_iter().chain([key]) {
        only.restore(key, state.get(key, now_us).cloned());
    }
    if let Some((lock, holder)) = lock {
        only.put(lock, Value::Text(Arc::from(holder)), now_us, None);
    }
    let reply = apply_whole(&mut only, op, env);
    for key in other.into_iter().chain([key]) {
        state.restore(key, only.get(key, now_us).cloned());
    }
    reply
}

fn tick(state: &mut State, LockOp { keys, verb, .. }: &LockOp, now_us: u64) -> Result<Reply, Reply> {
    let floor = if let Verb::Acquire { proposal, .. } = verb { *proposal } else { 0 };
    let fence = clock::tick(state, keys.clock(), floor, now_us).map_err(|found| conflict(0, found, now_us))?;
    Ok(Reply::new(Verdict::Vote, now_us, fence))
}

fn count(state: &mut State, op: &PartOp, fence: u64, env: &Env<'_>) -> Reply {
    let (keys, by) = (&op.whole.keys, &op.whole.by);
    let field = |name: &str| state.fields(keys.record(), env.now_us).and_then(|fields| fields.get(name)).cloned();
    // The lock was ours before, if the request comes twice.
    let is_ours = field("state").as_deref() == Some("running") && field("by").as_ref() == Some(by);
    let mut whole = op.whole.clone();
    if let Verb::Acquire { place, adopt, .. } = &mut whole.verb {
        (*place, *adopt) = (None, None);
    }
    let lock = is_ours.then_some((keys.lock(), &**by));
    let reply = alone(state, (op.key(), None), lock, &Op::Lock(whole), env);
    match reply.verdict {
        Verdict::Vote => {
            state.put_fields(keys.record(), &[("fence", &*fence.to_string())], env.now_us);
            Reply { fence, ..reply }
        }
        _ => reply,
    }
}
