//! Seen values: the results of a step, as JSON.

use std::time::{Duration, SystemTime};

use locktender::{
    Attempt, Error, Grant, Hold, HoldInfo, JobOutcome, JobStatus, Leadership, LockInfo, NotRunReason, Observation, Remaining,
};
use locktender_tests::Reply;
use serde_json::{Value, json};

pub fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

pub fn look(held: &Hold) -> Value {
    let mut seen = json!({
        "owner": held.owner(), "remaining_ms": ms(held.remaining()),
        "valid": held.is_valid(), "check": held.check().err().map(|error| error.code().as_str()),
    });
    match &held.fences()[..] {
        [(name, fence)] => (seen["name"], seen["fence"]) = ((*name).into(), (*fence).into()),
        several => {
            seen["names"] = held.names().into();
            seen["fences"] = several.iter().map(|(_, fence)| Value::from(*fence)).collect();
        }
    }
    seen
}

pub fn look_at(attempt: &Attempt) -> Value {
    let mut seen = look(attempt);
    (seen["number"], seen["max_attempts"]) = (attempt.number().into(), attempt.max_attempts().into());
    seen["is_last"] = attempt.is_last().into();
    seen
}

pub fn look_at_term(leadership: &Leadership) -> Value {
    let mut seen = look(leadership);
    seen["term"] = leadership.term().into();
    seen
}

/// The result of a job: JSON text.
fn result(text: Option<&String>) -> Value {
    text.map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

pub fn outcome(outcome: &JobOutcome) -> Value {
    json!({
        "ran": outcome.ran, "reason": outcome.reason.map(NotRunReason::as_str), "result": result(outcome.result.as_ref()),
        "attempts": outcome.attempts, "last_error": outcome.last_error,
    })
}

pub fn status(status: &JobStatus, start: SystemTime) -> Value {
    let since_start = |time: SystemTime| match time.duration_since(start) {
        Ok(later) => ms(later),
        Err(earlier) => -ms(earlier.duration()),
    };
    json!({
        "state": status.state.as_str(), "attempts": status.attempts, "max_attempts": status.max_attempts, "last_owner": status.last_owner,
        "began_ago_ms": status.began_ago.map(ms), "remaining_ms": left(status.remaining),
        "retry_in_ms": status.retry_in.map(ms), "last_error": status.last_error, "result": result(status.result.as_ref()),
        "scheduled_time_ms": status.scheduled_time.map(since_start), "last_done_ms": status.last_done.map(since_start),
    })
}

pub fn observed(seen: &Observation) -> Value {
    let leader = seen.leader.as_ref().map(|leader| {
        let since = leader.since.map(|since| since.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis());
        json!({ "owner": leader.owner, "term": leader.term, "since": since, "remaining_ms": left(leader.remaining) })
    });
    json!({ "leader": leader, "unknown": seen.unknown })
}

fn left(remaining: Remaining) -> Value {
    match remaining {
        Remaining::For(span) => ms(span).into(),
        Remaining::Forever => "forever".into(),
        _ => 0.into(),
    }
}

pub fn show(info: Option<&LockInfo>) -> Value {
    let Some(info) = info else { return json!({ "free": true }) };
    let fields = info.fields.as_ref().map(|fields| {
        let at = fields.at.map(|at| at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis());
        json!({ "app": fields.app, "host": fields.host, "pid": fields.pid, "at": at, "id": fields.id })
    });
    json!({
        "free": false, "name": info.name, "owner": info.owner, "fields": fields, "remaining_ms": left(info.remaining),
        "fence": info.fence, "waiters": info.waiters, "queue": info.queue,
        "holder_count": info.holder_count, "holders": info.holders, "available": info.available,
    })
}

pub fn show_grant(grant: &Grant) -> Value {
    let lasted = grant.ended.map(|ended| ended.duration_since(grant.began).unwrap());
    json!({
        "name": grant.name, "owner": grant.owner, "pid": grant.fields.as_ref().and_then(|fields| fields.pid), "fence": grant.fence,
        "state": grant.state.as_str(), "is_shared": grant.is_shared, "lasted_ms": lasted.map(ms),
    })
}

pub fn show_hold(hold: &HoldInfo) -> Value {
    json!({
        "name": hold.name, "kind": hold.kind.as_str(), "owner": hold.owner, "fence": hold.fence,
        "held_for_ms": hold.held_for.as_millis() as u64, "remaining_ms": hold.remaining.as_millis() as u64,
    })
}

pub fn describe(error: &Error) -> Value {
    let servers: Vec<Value> = error
        .servers()
        .iter()
        .map(|each| json!({ "server": each.server, "kind": each.kind.as_str(), "message": each.message }))
        .collect();
    json!({
        "error": error.code().as_str(), "message": error.to_string(), "lock_name": error.lock_name(),
        "holder": error.holder().map(|holder| &holder.owner), "holder_remaining_ms": error.holder().map(|holder| left(holder.remaining)),
        "rank": error.rank(),
        "reason": error.loss().map(|loss| loss.reason.as_str()), "next_owner": error.loss().and_then(|loss| loss.next_owner.as_ref()),
        "next_fence": error.loss().and_then(|loss| loss.next_fence),
        "overrun_ms": error.loss().map(|loss| ms(loss.overrun)), "servers": servers,
        "attempts": error.attempts(), "last_error": error.last_error(),
    })
}

pub fn plain(reply: Reply) -> Value {
    match reply {
        Reply::Nil => Value::Null,
        Reply::Status(text) | Reply::Error(text) | Reply::Text(text) => text.into(),
        Reply::Int(int) => int.into(),
        Reply::Array(items) => items.into_iter().map(plain).collect(),
    }
}
