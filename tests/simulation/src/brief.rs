//! Brief: an operation in a line of the trace.

use locktender::internals::name::Kind;
use locktender::op::{LockOp, Op, Verb};

/// An operation for the trace: its owner by the end of its id.
pub(super) fn brief(op: &Op) -> String {
    let tail = |owner: &str| owner[owner.len().saturating_sub(6)..].to_owned();
    let waiter = |entry: &str| entry.split(' ').next().unwrap_or_default().to_owned();
    match op {
        Op::Lock(LockOp { keys, by: owner, verb: Verb::Acquire { ttl_ms, proposal, adopt, place, .. } }) => {
            let adopt = adopt.as_ref().map_or(String::new(), |adopt| format!(" adopting {}", tail(&adopt.owner)));
            let place = place.as_ref().map_or(String::new(), |place| {
                format!(" in {} since {}{}", waiter(&place.entry), place.arrival, if place.stays { " for more" } else { "" })
            });
            let is_plain = matches!(keys.kind(), Kind::Exclusive | Kind::Quorum);
            let kind = if is_plain { String::new() } else { format!("{:?} ", keys.kind()) };
            format!("acquire {kind}{} {} ttl={ttl_ms} proposal={proposal}{adopt}{place}", keys.name(), tail(owner))
        }
        Op::Lock(LockOp { keys, by: owner, verb: Verb::Confirm { fence } }) => {
            format!("confirm {} {} {fence}", keys.name(), tail(owner))
        }
        Op::Lock(LockOp { keys, by: owner, verb: Verb::Extend { ttl_ms, .. } }) => {
            format!("extend {} {} ttl={ttl_ms}", keys.name(), tail(owner))
        }
        Op::Lock(LockOp { keys, by: owner, verb: Verb::Heal { ttl_ms, .. } }) => {
            format!("heal {} {} ttl={ttl_ms}", keys.name(), tail(owner))
        }
        Op::Lock(LockOp { keys, by: entry, verb: Verb::Leave }) => format!("leave {} {}", keys.name(), waiter(entry)),
        Op::Lock(LockOp { keys, by: owner, verb: Verb::Release { leave, .. } }) => {
            let leave = leave.as_ref().map_or(String::new(), |entry| format!(" leaving {}", waiter(entry)));
            format!("release {} {}{leave}", keys.name(), tail(owner))
        }
        Op::Lock(LockOp { keys, by: owner, verb: Verb::EndAttempt { ending, leave, .. } }) => {
            let leave = leave.as_ref().map_or(String::new(), |entry| format!(" leaving {}", waiter(entry)));
            format!("end {} {} {ending:?}{leave}", keys.name(), tail(owner))
        }
        other => format!("{other:?}"),
    }
}
