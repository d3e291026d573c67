//! Operations as commands, answers as replies: pure.

use std::time::Duration;

use redis::{Cmd, RedisError, Value};

use super::script::Script;
use super::{info, rights};
use crate::error::Remaining;
use crate::machine::UNTOLD;
use crate::name::Keys;
use crate::server::{Answer, Failure, FailureKind, Fleet, Op, Queued, Reply, Verdict};

/// How a script is named to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By its hash: short, but unknown to a server whose script cache was flushed.
    BySha,
    /// In full.
    ByText,
}

/// Room for any operation's arguments, and for the bytes of one on a lock with an ordinary name, so that none of them moves.
const ARGUMENTS: usize = 20;
const BYTES: usize = 640;

/// The command for an operation. `run_id` is what the server said of itself when the connection was made.
pub(super) fn command(op: &Op, run_id: Option<&str>, form: Form) -> Cmd {
    let Some(script) = Script::of(op) else { return redis::cmd("INFO") };
    let mut command = Cmd::with_capacity(ARGUMENTS, BYTES);
    match form {
        Form::BySha => command.arg("EVALSHA").arg(script.sha()),
        Form::ByText => command.arg("EVAL").arg(script.text),
    };
    match op {
        Op::Acquire { keys, owner, ttl_ms, proposal, adopt, fair, place, fleet } => {
            command.arg(4).arg(&keys.in_order()).arg(&**owner).arg(*ttl_ms).arg(*proposal);
            command.arg(adopt.as_deref().unwrap_or_default());
            match place {
                Some(place) => command.arg(&*place.entry).arg(place.arrival).arg(u8::from(place.stays)),
                // The mode alone: one attempt lines up nowhere.
                None => command.arg(if *fair { "f" } else { "" }).arg(0).arg(0),
            };
            member(&mut command, fleet.as_ref(), run_id);
        }
        Op::Confirm { keys, owner, token } => {
            command.arg(4).arg(&keys.in_order()).arg(&**owner).arg(*token);
        }
        Op::Extend { keys, owner, ttl_ms, token } | Op::Heal { keys, owner, ttl_ms, token } => {
            command.arg(4).arg(&keys.in_order()).arg(&**owner).arg(*ttl_ms).arg(*token);
        }
        Op::Release { keys, owner, leave, grants } => {
            command.arg(4).arg(&keys.in_order()).arg(&**owner);
            command.arg(leave.as_deref().unwrap_or_default()).arg(u8::from(*grants));
        }
        Op::Inspect { keys } => {
            command.arg(4).arg(&keys.in_order());
        }
        Op::Examine => {}
        Op::Probe { keys } => {
            command.arg(4).arg(&keys.in_order()).arg(rights::commands().collect::<Vec<_>>());
        }
        Op::Greet { fleet } => {
            command.arg(1).arg(Keys::server_marker());
            member(&mut command, fleet.as_ref(), run_id);
        }
        Op::Trust { fleet } => {
            command.arg(1).arg(Keys::server_marker());
            member(&mut command, Some(fleet), run_id);
        }
    }
    command
}

fn member(command: &mut Cmd, fleet: Option<&Fleet>, run_id: Option<&str>) {
    if let Some(fleet) = fleet {
        command.arg(fleet.servers).arg(fleet.max_ttl_ms).arg(run_id.unwrap_or(UNTOLD));
    }
}

/// What the server answered to `op`.
pub(super) fn reply(op: &Op, value: Value) -> Answer {
    let fields = match value {
        value if matches!(op, Op::Examine) => return info::examined(value),
        Value::Array(fields) => fields,
        Value::ServerError(error) => return Err(failure(&error.into(), true)),
        other => return Err(unreadable(op, &other)),
    };
    let mut fields = fields.into_iter();
    // Fields after the seventh belong to later versions.
    let mut next = || fields.next().unwrap_or(Value::Nil);
    let (tag, time, fence, holder, remaining) = (next(), next(), next(), next(), next());
    let queued = queued(op, next(), next());
    let Some(verdict) = text(&tag).and_then(|word| verdict(op, word)) else { return Err(unreadable(op, &tag)) };
    let (Some(time_us), Some(fence), Some(remaining)) = (count(&time), count(&fence), number(&remaining)) else {
        return Err(unreadable(op, &Value::Array(vec![tag, time, fence, holder, remaining])));
    };
    let holder = match holder {
        Value::Nil => None,
        Value::BulkString(bytes) => {
            Some(String::from_utf8(bytes).unwrap_or_else(|foreign| String::from_utf8_lossy(foreign.as_bytes()).into_owned()))
        }
        Value::SimpleString(text) => Some(text),
        other => return Err(unreadable(op, &other)),
    };
    let remaining = match u64::try_from(remaining) {
        Ok(ms) => Remaining::For(Duration::from_millis(ms)),
        Err(_) if remaining == -1 => Remaining::Forever,
        Err(_) => Remaining::Gone,
    };
    let holder = match op {
        Op::Probe { keys } => holder.and_then(|failed| rights::missing(&failed, keys, is_denial)),
        _ => holder,
    };
    Ok(Reply { queued, ..Reply::new(verdict, time_us, fence, holder, remaining) })
}

/// What the fields after the fifth say of the queue.
fn queued(op: &Op, sixth: Value, seventh: Value) -> Queued {
    match (op, seventh) {
        (Op::Release { .. }, _) => text(&sixth).map_or(Queued::Nothing, |error| Queued::Untold(error.to_owned())),
        (Op::Inspect { .. }, Value::Array(entries)) => Queued::Waiters {
            count: count(&sixth).unwrap_or_default(),
            first: entries.iter().filter_map(text).map(str::to_owned).collect(),
        },
        (Op::Acquire { .. }, seventh) => match (count(&sixth), count(&seventh)) {
            (Some(rank), Some(arrival)) => Queued::At { rank, arrival },
            _ => Queued::Nothing,
        },
        _ => Queued::Nothing,
    }
}

/// Whether a command inside a script failed for want of a right.
fn is_denial(error: &str) -> bool {
    let (code, detail) = error.split_once(' ').unwrap_or((error, ""));
    // Some versions give the error without a code.
    [refusal(code, detail), refusal("ERR", error)].iter().any(|(kind, _)| *kind == FailureKind::Denied)
}

/// The verdict of a tag, if it can be one of this operation's.
fn verdict(op: &Op, tag: &str) -> Option<Verdict> {
    Some(match (tag, op) {
        ("vote", Op::Acquire { .. }) => Verdict::Vote,
        ("held", Op::Acquire { .. }) => Verdict::Held,
        ("quarantine", Op::Acquire { .. } | Op::Greet { .. }) => Verdict::Quarantine,
        ("mismatch", Op::Acquire { .. } | Op::Greet { .. } | Op::Trust { .. }) => Verdict::Mismatch,
        ("info", Op::Inspect { .. } | Op::Probe { .. }) => Verdict::Info,
        ("ok", Op::Acquire { .. } | Op::Inspect { .. } | Op::Probe { .. }) => return None,
        ("ok", _) => Verdict::Ok,
        ("no", Op::Confirm { .. } | Op::Extend { .. } | Op::Heal { .. } | Op::Release { .. }) => Verdict::No,
        ("conflict", _) => Verdict::Conflict,
        _ => return None,
    })
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        other => text(other)?.parse().ok(),
    }
}

fn count(value: &Value) -> Option<u64> {
    number(value).and_then(|number| u64::try_from(number).ok())
}

/// Something answered, but not our script: the operation may have been done.
fn unreadable(op: &Op, value: &Value) -> Failure {
    let mut shown = format!("{value:?}");
    if let Some((cut, _)) = shown.char_indices().nth(200) {
        shown.truncate(cut);
        shown.push('…');
    }
    Failure::unknown(
        FailureKind::Protocol,
        format!("{} was answered with {shown}, which is no reply of a lock's script", op.name()),
    )
}

/// Why there is no answer. `sent` says whether the operation had left for the server.
pub(super) fn failure(error: &RedisError, sent: bool) -> Failure {
    let message = error.to_string();
    if let Some(code) = error.code() {
        let (kind, refused) = refusal(code, error.detail().unwrap_or_default());
        return Failure { kind, message, maybe_applied: sent && !refused };
    }
    let kind = match error.kind() {
        redis::ErrorKind::AuthenticationFailed => FailureKind::Denied,
        redis::ErrorKind::Parse | redis::ErrorKind::UnexpectedReturnType => FailureKind::Protocol,
        _ if error.is_timeout() => FailureKind::Timeout,
        _ if error.is_connection_refusal() => FailureKind::Refused,
        _ if error.is_io_error() || error.is_connection_dropped() => FailureKind::Disconnected,
        _ => FailureKind::Other,
    };
    Failure { kind, message, maybe_applied: sent }
}

/// The kind of a server's error, and whether it is a promise that nothing was done.
///
/// All of these are said before a script starts, or instead of its first write. `NOPERM` may come between two writes.
fn refusal(code: &str, detail: &str) -> (FailureKind, bool) {
    match inner_code(code, detail) {
        "LOADING" => (FailureKind::Loading, true),
        "READONLY" => (FailureKind::ReadOnly, true),
        "MISCONF" | "NOREPLICAS" => (FailureKind::Misconfigured, true),
        "OOM" => (FailureKind::OutOfMemory, true),
        "CLUSTERDOWN" | "TRYAGAIN" | "MOVED" | "ASK" | "CROSSSLOT" | "MASTERDOWN" => (FailureKind::ClusterDown, true),
        "NOAUTH" | "WRONGPASS" => (FailureKind::Denied, true),
        "NOPERM" => (FailureKind::Denied, false),
        "NOSCRIPT" | "BUSY" | "NOPROTO" => (FailureKind::Other, true),
        // Rights missing inside a script have no code of their own: first as of Redis 7.0, then as of 6.2.
        _ if detail.contains("ACL failure in script") => (FailureKind::Denied, false),
        _ if detail.contains("The user executing the script can't") => (FailureKind::Denied, false),
        _ => (FailureKind::Other, false),
    }
}

/// Redis 6.2 wraps the error of a command inside a script: `ERR Error running script (…): @user_script: 5: -OOM command …`.
fn inner_code<'a>(code: &'a str, detail: &'a str) -> &'a str {
    if code != "ERR" || !detail.starts_with("Error running script") {
        return code;
    }
    let inner = detail.rsplit_once(": -").and_then(|(_, inner)| inner.split(' ').next());
    inner.unwrap_or(code)
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
