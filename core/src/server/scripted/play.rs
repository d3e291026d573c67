//! Play: the answer of a step, by a change of the keys in memory.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use super::step::{Act, Step};
use crate::error::Remaining;
use crate::machine::{self, Env, State, Value};
use crate::name::{Keys, Kind};
use crate::op::holder::{Gate, with_fence};
use crate::op::{Answer, Failure, FailureKind, LockOp, Op, QuorumConfig, Reply, Verb, Verdict};
use crate::server::memory::MemoryServer;

/// The server's answer. Its keys change at once, however late the answer is.
pub(super) fn answer(memory: &MemoryServer, op: &Op, step: &Step) -> Answer {
    let refused = |verdict| Ok(plain(memory, op, verdict));
    match &step.act {
        Act::Real => memory.apply(op),
        Act::Granted { fence } => Ok(memory.with(|state, env| granted(state, op, *fence, env))),
        Act::Busy { owner, remaining } => refused(held_by(Some(owner.to_string()), *remaining, op)),
        Act::Gone => refused(held_by(None, Remaining::Gone, op)),
        Act::Conflict { found } => refused(Verdict::Conflict { found: found.to_string() }),
        Act::Quarantine { left } => refused(Verdict::Quarantine { left: *left }),
        Act::Mismatch { servers, max_ttl_ms } => {
            refused(Verdict::Mismatch { quorum: QuorumConfig { servers: *servers, max_ttl_ms: *max_ttl_ms }.to_string() })
        }
        Act::Fail { kind, applied } => failed(memory, op, *kind, *applied),
        Act::Nothing { applied } => failed(memory, op, FailureKind::Timeout, *applied),
    }
}

fn failed(memory: &MemoryServer, op: &Op, kind: FailureKind, applied: bool) -> Answer {
    let message = format!("scripted: {}", kind.as_str());
    // After these failures the client can't know whether the operation was executed.
    let unknown = matches!(kind, FailureKind::Timeout | FailureKind::Disconnected | FailureKind::Protocol | FailureKind::Other);
    if applied {
        memory.apply(op)?;
    }
    Err(if applied || unknown { Failure::unknown(kind, message) } else { Failure::not_applied(kind, message) })
}

/// The verdict that another holder has the lock, or nobody.
fn held_by(holder: Option<String>, remaining: Remaining, op: &Op) -> Verdict {
    match (op.verb(), holder) {
        (Some(Verb::Acquire { .. }), Some(holder)) => Verdict::Held { holder, remaining },
        (Some(Verb::Inspect), holder) => Verdict::Seen { holder, remaining, inside: None },
        (_, holder) => Verdict::No { holder, remaining },
    }
}

/// A refusal that changes nothing, with the lock's present fence.
fn plain(memory: &MemoryServer, op: &Op, verdict: Verdict) -> Reply {
    memory.with(|state, env| {
        let look = op.keys().map(|keys| machine::apply(state, &Op::inspect(Arc::clone(keys)), env));
        Reply::new(verdict, env.now_us, look.map_or(0, |look| look.fence))
    })
}

/// Removes each reason to refuse the operation, one after the other, and executes it.
fn granted(state: &mut State, op: &Op, fence: Option<u64>, env: &Env<'_>) -> Reply {
    match op {
        Op::Lock(LockOp { keys, by: owner, verb: Verb::Acquire { ttl_ms, .. } }) => {
            // Without a quorum the marker has no effect.
            let mut op = op.clone();
            if let Op::Lock(LockOp { verb: Verb::Acquire { adopt, fair, place, quorum_config, .. }, .. }) = &mut op {
                (*adopt, *fair, *place, *quorum_config) = (None, false, None, None);
            }
            let free = |state: &mut State| keys.each().for_each(|keys| state.remove(keys.lock()));
            let remove = |state: &mut State| state.remove(keys.record());
            let mut reply = insist(state, &op, env, &[&free, &|state| state.remove(keys.fence()), &remove]);
            if let Some(fence) = fence {
                if keys.kind() == Kind::Quorum {
                    put(state, keys.fence(), fence.to_string().into(), env, machine::FENCE_KEPT_MS);
                } else {
                    for keys in if keys.parts().is_empty() { slice::from_ref(keys) } else { keys.parts() } {
                        match keys.kind() {
                            Kind::Read => put(state, keys.lock(), Gate::Read(fence).to_string().into(), env, *ttl_ms),
                            // Their gate has no fence.
                            Kind::Semaphore(_) => (),
                            _ => put(state, keys.lock(), with_fence(owner, fence).into(), env, *ttl_ms),
                        }
                        let (keys, by, verb) = (Arc::clone(keys), Arc::clone(owner), Verb::Confirm { fence });
                        machine::apply(state, &Op::Lock(LockOp { keys, by, verb }), env);
                    }
                    reply.fences = reply.fences.iter().map(|_| fence).collect();
                }
                reply.fence = fence;
            }
            reply
        }
        Op::Lock(LockOp { keys, by: owner, verb: Verb::Confirm { .. } | Verb::Extend { .. } })
        | Op::Lock(LockOp { keys, by: owner, verb: Verb::Heal { .. } | Verb::Release { .. } }) => {
            let hold = |state: &mut State| keys.each().for_each(|keys| put(state, keys.lock(), Arc::clone(owner), env, HELD_MS));
            insist(state, op, env, &[&hold, &|state| state.remove(keys.fence())])
        }
        Op::Lock(LockOp { keys, by: owner, verb: Verb::EndAttempt { .. } }) => {
            let hold = |state: &mut State| put(state, keys.lock(), Arc::clone(owner), env, HELD_MS);
            insist(state, op, env, &[&hold, &|state| state.remove(keys.record()), &hold])
        }
        Op::Lock(LockOp { keys, verb: Verb::Inspect | Verb::JobStatus, .. }) => {
            insist(state, op, env, &[&|state| state.remove(keys.lock()), &|state| state.remove(keys.fence())])
        }
        Op::Greet { quorum_config } => {
            state.remove(Keys::server_marker());
            if let Some(quorum_config) = quorum_config {
                machine::apply(state, &Op::Trust { quorum_config: *quorum_config }, env);
            }
            machine::apply(state, op, env)
        }
        // Nothing can prevent these operations.
        Op::Lock(LockOp { verb: Verb::Leave | Verb::Reset, .. })
        | Op::Part(_)
        | Op::Examine
        | Op::Probe { .. }
        | Op::Scan { .. }
        | Op::Peek { .. }
        | Op::Log(_)
        | Op::History { .. }
        | Op::Publish { .. }
        | Op::AwaitReplicas { .. }
        | Op::Marker { .. } => machine::apply(state, op, env),
        Op::Trust { .. } => insist(state, op, env, &[&|state| state.remove(Keys::server_marker())]),
    }
}

/// The remaining time of a lock that was written only so that an operation on it succeeds.
const HELD_MS: u64 = Duration::from_secs(10).as_millis() as u64;

type Clear<'a> = &'a dyn Fn(&mut State);

fn insist(state: &mut State, op: &Op, env: &Env<'_>, clear: &[Clear<'_>]) -> Reply {
    let mut reply = machine::apply(state, op, env);
    for clear in clear {
        if matches!(reply.verdict, Verdict::Vote | Verdict::Ok | Verdict::Seen { .. } | Verdict::Recorded(_)) {
            break;
        }
        clear(state);
        reply = machine::apply(state, op, env);
    }
    reply
}

fn put(state: &mut State, key: &str, text: Arc<str>, env: &Env<'_>, ttl_ms: u64) {
    state.put(key, Value::Text(text), env.now_us, Some(ttl_ms));
}
