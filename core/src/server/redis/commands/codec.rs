//! Codec: answers as replies. Pure.

use std::time::Duration;

use redis::Value;

use crate::error::Remaining;
use crate::error::quoted::quoted;
use crate::machine::SHOWN_BYTES;
use crate::name::Kind;
use crate::op::job::{AttemptNumber, EarlierRun, Ending, JobEnd, JobRecord, NotBegun};
use crate::op::{Answer, Failure, FailureKind, Inside, Op, Queued, Reply, Verb, Verdict};
use crate::server::redis::commands::history;
use crate::server::redis::commands::info;
use crate::server::redis::commands::listing;
use crate::server::redis::commands::refusal;
use crate::server::redis::commands::replies::text;
use crate::server::redis::commands::rights;

/// The meaning of the server's answer to `op`.
pub(crate) fn reply(op: &Op, value: Value) -> Answer {
    if let Op::Part(part) = op {
        return reply(&Op::Lock(part.whole.clone()), value);
    }
    let fields = match value {
        Value::Array(parts) if matches!(op, Op::Scan { .. }) => return listing::scanned(op, parts),
        value if matches!(op, Op::Peek { .. }) => return listing::peeked(value),
        value if matches!(op, Op::Log(_) | Op::History { .. }) => return history::reply(op, value),
        Value::Array(fields) => fields,
        Value::ServerError(error) => return Err(refusal::failure(&error.into(), true)),
        Value::Int(number) => return done(op, number),
        value if matches!(op, Op::Examine) => return info::examined(value),
        Value::Nil if matches!(op, Op::Marker { .. }) => return Ok(Reply::new(Verdict::Marker(None), 0, 0)),
        Value::BulkString(text) if matches!(op, Op::Marker { .. }) => {
            return Ok(Reply::new(Verdict::Marker(Some(shown(text))), 0, 0));
        }
        other => return Err(unreadable(op, &other)),
    };
    let mut fields = fields.into_iter();
    // Fields after the eleventh belong to later versions.
    let mut next = || fields.next().unwrap_or(Value::Nil);
    let (tag, time, fence, fourth, remaining) = (next(), next(), next(), next(), next());
    let (sixth, seventh, eighth, ninth) = (next(), next(), next(), next());
    let (tenth, eleventh) = (next(), next());
    let (Some(time_us), Some(fence), Some(remaining)) = (count(&time), count(&fence), number(&remaining)) else {
        return Err(unreadable(op, &Value::Array(vec![tag, time, fence, fourth, remaining])));
    };
    let fourth = match fourth {
        Value::Nil => None,
        Value::BulkString(bytes) => Some(shown(bytes)),
        Value::SimpleString(text) => Some(text),
        other => return Err(unreadable(op, &other)),
    };
    let begins_attempt = matches!(op.verb(), Some(Verb::Acquire { job: Some(_), .. }));
    let why = text(&tag).and_then(not_begun).filter(|_| begins_attempt);
    let verdict = match (text(&tag), op.verb()) {
        _ if why.is_some() => why.map(|why| {
            let count = |value| small(count(value).unwrap_or_default());
            let by = text(&ninth).unwrap_or_default().to_owned();
            let (attempts, max_attempts) = (small(remaining.unsigned_abs()), count(&eighth));
            let text = fourth.unwrap_or_default();
            Verdict::Over(Box::new(JobEnd { why, text, attempts, max_attempts, by, time_us }))
        }),
        (Some("info"), Some(Verb::Inspect)) => Some(Verdict::Seen {
            holder: fourth,
            remaining: left(remaining),
            inside: inside(&eighth, ninth.clone(), &tenth).map(Box::new),
        }),
        (Some("record"), Some(Verb::JobStatus)) => record(&seventh, fourth, left(remaining)),
        (Some(word), _) => verdict(op, word, fourth, remaining),
        (None, _) => None,
    };
    let Some(verdict) = verdict else { return Err(unreadable(op, &tag)) };
    let attempt = match (&verdict, count(&eighth), count(&ninth)) {
        (Verdict::Vote, Some(number), Some(max)) => {
            Some(AttemptNumber { number: few(number), max: few(max), failures: few(count(&tenth).unwrap_or_default()) })
        }
        _ => None,
    };
    let asks_for_permit = matches!(op.verb(), Some(Verb::Acquire { job: None, .. }));
    let other_limit = count(&eighth).filter(|_| asks_for_permit).map_or(0, small);
    let earlier = attempt.and_then(|_| earlier(&eleventh));
    let is_of_several = op.keys().is_some_and(|keys| keys.kind() == Kind::Several);
    let (at, fences) = if is_of_several { several(&ninth) } else { (0, Vec::new()) };
    if verdict == Verdict::Vote && op.keys().is_some_and(|keys| keys.parts().len() != fences.len()) {
        return Err(unreadable(op, &ninth));
    }
    let is_refusal = matches!((&verdict, op.verb()), (Verdict::No { .. }, Some(Verb::Release { .. } | Verb::Leave)));
    let last_fence = count(&seventh).filter(|_| is_refusal).unwrap_or_default();
    let waits = matches!((&verdict, op.verb()), (Verdict::Ok, Some(Verb::Extend { .. }))) && count(&sixth) == Some(1);
    Ok(Reply {
        queued: queued(op, sixth, seventh),
        other_limit,
        last_fence,
        waits,
        attempt,
        earlier,
        at,
        fences,
        ..Reply::new(verdict, time_us, fence)
    })
}

/// Of several locks: which of them the reply is about, or the fences of all.
fn several(ninth: &Value) -> (usize, Vec<u64>) {
    match ninth {
        Value::Array(fences) => (0, fences.iter().filter_map(count).collect()),
        at => (count(at).and_then(|at| usize::try_from(at).ok()).map_or(0, |at| at.saturating_sub(1)), Vec::new()),
    }
}

/// The reason of this word why no attempt begins.
fn not_begun(word: &str) -> Option<NotBegun> {
    NotBegun::ALL.iter().copied().find(|why| why.as_str() == word)
}

/// The run that a later scheduled time left behind.
fn earlier(fields: &Value) -> Option<Box<EarlierRun>> {
    let Value::Array(fields) = fields else { return None };
    let [scheduled_time, attempts, by, error, keep] = fields.as_slice() else { return None };
    let (scheduled_time_ms, attempts, retention_ms) = (count(scheduled_time)?, small(count(attempts)?), count(keep)?);
    Some(Box::new(EarlierRun {
        scheduled_time_ms,
        attempts,
        by: text(by)?.to_owned(),
        error: text(error)?.to_owned(),
        retention_ms,
    }))
}

/// The record of a job, in the order in which its script lists the fields.
fn record(fields: &Value, holder: Option<String>, remaining: Remaining) -> Option<Verdict> {
    let Value::Array(fields) = fields else { return None };
    let text = |at: usize| fields.get(at).and_then(text).unwrap_or_default().to_owned();
    let number = |at: usize| fields.get(at).and_then(count).unwrap_or_default();
    Some(Verdict::Recorded(Box::new(JobRecord {
        state: text(0),
        attempts: small(number(1)),
        max_attempts: small(number(2)),
        by: text(3),
        at_us: number(4),
        error: text(5),
        result: text(6),
        not_before_ms: number(7),
        scheduled_time_ms: number(8),
        done_at_us: number(9),
        holder,
        remaining,
    })))
}

/// Those who hold the lock at once.
fn inside(holders: &Value, owners: Value, available: &Value) -> Option<Inside> {
    let (Some(holders), Value::Array(owners)) = (count(holders), owners) else { return None };
    Some(Inside { holders, owners: owners.into_iter().filter_map(entry).collect(), available: count(available) })
}

fn few(count: u64) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// What remains of a key: -1 for one without expiry, -2 for none.
fn left(ms: i64) -> Remaining {
    match u64::try_from(ms).map(Duration::from_millis) {
        Ok(left) => Remaining::For(left),
        Err(_) if ms == -1 => Remaining::Forever,
        Err(_) => Remaining::Gone,
    }
}

/// The answer of an operation that was done as asked: the server's time, or only that it was done. An extension has negative
/// numbers, so that no other operation takes its answer for its own.
fn done(op: &Op, number: i64) -> Answer {
    let size = number.unsigned_abs();
    Ok(match (op.verb(), number) {
        // Only a quorum's script answers so.
        (Some(Verb::Acquire { proposal, job: None, .. }), 0 | 2..) => Reply::new(Verdict::Vote, size, *proposal),
        (Some(Verb::Extend { fence, .. }), ..-1) => Reply::new(Verdict::Ok, size, *fence),
        (Some(Verb::Release { .. }), 1) => Reply::new(Verdict::Ok, 0, 0),
        (Some(Verb::EndAttempt { ending: Ending::Done { .. }, .. }), 2..) => Reply::new(Verdict::Ok, size, 0),
        (None, 0..) if matches!(op, Op::Publish { .. }) => Reply::new(Verdict::Ok, 0, 0),
        (None, 0..) if matches!(op, Op::Marker { remove: true }) => Reply::new(Verdict::Marker(None), 0, 0),
        (None, 0..) if matches!(op, Op::AwaitReplicas { .. }) => Reply::new(Verdict::Replicated { count: size }, 0, 0),
        _ => return Err(unreadable(op, &Value::Int(number))),
    })
}

/// The report on the queue in the sixth and the seventh field.
fn queued(op: &Op, sixth: Value, seventh: Value) -> Queued {
    match (op.verb(), seventh) {
        (Some(Verb::Release { .. } | Verb::Leave | Verb::EndAttempt { .. } | Verb::Reset), _) => {
            text(&sixth).map_or(Queued::Nothing, |error| Queued::NotNotified(error.to_owned()))
        }
        (Some(Verb::Inspect), Value::Array(entries)) => {
            Queued::Waiters { count: count(&sixth).unwrap_or_default(), first: entries.into_iter().filter_map(entry).collect() }
        }
        (Some(Verb::Acquire { .. }), seventh) => match (count(&sixth), count(&seventh)) {
            (Some(rank), Some(arrival)) => Queued::At { rank, arrival },
            _ => Queued::Nothing,
        },
        _ => Queued::Nothing,
    }
}

/// A value as the scripts show it: they cut a long value at a fixed number of bytes.
fn shown(mut bytes: Vec<u8>) -> String {
    if bytes.len() >= SHOWN_BYTES
        && let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).unwrap_or_else(|foreign| String::from_utf8_lossy(foreign.as_bytes()).into_owned())
}

/// A waiter of a queue. A client writes text, so bytes that are not text are shown with replacement characters.
fn entry(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(shown(bytes)),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

/// Whether an answer belongs to another operation: it names another owner where it must name ours, or ours where it must not.
pub(crate) fn is_about_another(op: &Op, value: &Value) -> bool {
    if let Value::Int(number) = value {
        // A number names no owner, but each operation has numbers of its own.
        return done(op, *number).is_err();
    }
    let (Some(owner), Value::Array(fields)) = (op.owner(), value) else { return false };
    let (Some(tag), Some(holder)) = (fields.first().and_then(text), fields.get(3)) else { return false };
    // Without an owner the release of everybody names nobody.
    let is_ours = !owner.is_empty() && text(holder) == Some(&**owner);
    match (op.verb(), tag) {
        (Some(Verb::Release { .. } | Verb::Leave | Verb::EndAttempt { .. }), "ok") => *holder != Value::Nil,
        (_, "vote" | "ok") => !is_ours,
        // An acquire that finds its own value votes; a release deletes it.
        (Some(Verb::Acquire { .. }), "held" | "no")
        | (Some(Verb::Release { .. } | Verb::Leave | Verb::EndAttempt { .. }), "no") => is_ours,
        _ => false,
    }
}

/// The verdict of a tag with the fourth and the fifth field, if this operation can have such a verdict.
fn verdict(op: &Op, tag: &str, fourth: Option<String>, fifth: i64) -> Option<Verdict> {
    let for_ms = || u64::try_from(fifth).map(Duration::from_millis).unwrap_or_default();
    Some(match (tag, op, op.verb()) {
        ("vote", _, Some(Verb::Acquire { .. })) => Verdict::Vote,
        ("held", _, Some(Verb::Acquire { .. })) => Verdict::Held { holder: fourth.unwrap_or_default(), remaining: left(fifth) },
        ("quarantine", Op::Greet { .. }, _) | ("quarantine", _, Some(Verb::Acquire { .. })) => {
            Verdict::Quarantine { left: for_ms() }
        }
        ("era", _, Some(Verb::Acquire { .. })) => Verdict::NewReplid,
        ("later", _, Some(Verb::Acquire { job: Some(_), .. })) => {
            Verdict::Later { left: for_ms(), error: fourth.unwrap_or_default() }
        }
        ("mismatch", Op::Greet { .. } | Op::Trust { .. }, _) | ("mismatch", _, Some(Verb::Acquire { .. })) => {
            Verdict::Mismatch { quorum: fourth.unwrap_or_default() }
        }
        ("info", Op::Probe { keys }, _) => {
            Verdict::Probed { missing: rights::missing(&fourth.unwrap_or_default(), keys, refusal::is_denial) }
        }
        ("ok", Op::Probe { .. }, _) | ("ok", _, Some(Verb::Acquire { .. } | Verb::Inspect | Verb::JobStatus)) => return None,
        ("ok", ..) => Verdict::Ok,
        ("no", ..) if op.owner().is_some() || matches!(op.verb(), Some(Verb::Reset)) => {
            Verdict::No { holder: fourth, remaining: left(fifth) }
        }
        ("conflict", ..) => Verdict::Conflict { found: fourth.unwrap_or_default() },
        _ => return None,
    })
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

/// The failure for an answer that is not from our script: the operation may have been done.
fn unreadable(op: &Op, value: &Value) -> Failure {
    let shown = quoted(&format!("{value:?}"));
    Failure::unknown(
        FailureKind::Protocol,
        format!("{} was answered with {shown}, which is no reply of a lock's script", op.name()),
    )
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
