//! Ending: how an attempt ends, and what becomes of its record.

use std::sync::Arc;

use super::record::{DEAD, DONE, KEPT_MS, NEW, RETRYING, RUNNING, Record};
use crate::error::Remaining;
use crate::machine::exclusive::{let_in, refusal};
use crate::machine::found::look;
use crate::machine::queue;
use crate::machine::state::State;
use crate::mutant::mutant;
use crate::name::Keys;
use crate::op::job::{AttemptNumber, Ending, OpenAttempt};
use crate::op::{Reply, Verdict};

/// Ends this attempt of the owner `by`.
pub(super) fn end(
    state: &mut State,
    keys: &Keys,
    (by, attempt): (&Arc<str>, &OpenAttempt),
    ending: &Ending,
    leave: Option<&str>,
    now_us: u64,
) -> Result<Reply, Reply> {
    if let Some(entry) = leave {
        queue::leave(state, keys, entry, now_us);
    }
    let (mut record, foreign) = match Record::read(state, keys, now_us) {
        Ok(record) => (record, None),
        Err(foreign) => (Record::default(), Some(foreign)),
    };
    let existed = record.exists();
    let found = look(state, keys, now_us)?;
    let owned = found.is_owned_by(by);
    let noted = match ending {
        Ending::GivenBack => {
            give_back(state, keys, &record, by, now_us);
            Noted { is_done: owned, ..Noted::default() }
        }
        _ if foreign.is_some() => Noted::default(),
        _ => {
            if owned && !record.exists() {
                record = restored(state, keys, (by, attempt), now_us);
            }
            note(state, keys, &record, (by, attempt), owned, ending, now_us)
        }
    };
    let freed = owned || leave.is_some_and(|entry| found.is_claimed_by(entry));
    if freed {
        state.remove(keys.lock());
    }
    let notifies = freed || leave.is_some() && !found.is_held();
    let nobody_waits = owned && leave.is_none() && existed && !found.shows_waiters();
    match noted {
        Noted { is_over: true, .. } if nobody_waits && matches!(ending, Ending::Done { .. }) => (),
        Noted { is_over: true, .. } => queue::wake_many(state, keys, now_us),
        Noted { retry_in_ms: 1.., .. } if notifies => queue::notify_later(state, keys, noted.retry_in_ms, now_us),
        _ if notifies => queue::wake(state, keys, true, false, now_us),
        _ if leave.is_some() => let_in(state, keys, &found),
        _ => (),
    }
    Ok(match foreign.filter(|_| *ending != Ending::GivenBack) {
        Some(found_type) => found.reply(Verdict::Conflict { found: found_type }),
        None if noted.is_done => Reply::new(Verdict::Ok, now_us, 0),
        None if found.is_held() && !freed => refusal(state, keys, &found, by),
        None => {
            let other = Some(record.text("by")).filter(|other| !other.is_empty() && *other != &**by);
            found.reply(Verdict::No { holder: other.map(str::to_owned), remaining: Remaining::Gone })
        }
    })
}

/// What became of the end of an attempt.
#[derive(Default)]
struct Noted {
    /// Whether it is noted, by this request or by an earlier one of the same attempt.
    is_done: bool,
    /// Whether this request has ended the job.
    is_over: bool,
    /// When the next attempt may begin.
    retry_in_ms: u64,
}

/// Writes a record again that a server has evicted, or an operator deleted, while its attempt held the lock.
fn restored(state: &mut State, keys: &Keys, (by, attempt): (&Arc<str>, &OpenAttempt), now_us: u64) -> Record {
    let OpenAttempt { fence, number: AttemptNumber { number, max, failures }, retention_ms, scheduled_time_ms } = *attempt;
    let [number, max, fence, keep, failures, scheduled_time] =
        [number.into(), max.into(), fence, retention_ms, failures.into(), scheduled_time_ms]
            .map(|number: u64| number.to_string());
    let fields = [
        ("state", RUNNING),
        ("attempts", &*number),
        ("max", &max),
        ("by", by),
        ("fence", &fence),
        ("retention", &keep),
        ("failures", &failures),
        ("scheduled_time", &scheduled_time),
    ];
    state.put_fields(keys.record(), &fields, now_us);
    Record::read(state, keys, now_us).unwrap_or_default()
}

/// Notes that an attempt is done or has failed, if it is the one that runs. One that made the job dead without an error of its own
/// may still say how it ended.
fn note(
    state: &mut State,
    keys: &Keys,
    record: &Record,
    (by, attempt): (&Arc<str>, &OpenAttempt),
    owned: bool,
    ending: &Ending,
    now_us: u64,
) -> Noted {
    let has_fence = record.number("fence") == attempt.fence || mutant!(OlderAttemptEnds);
    let is_open = (record.is_open(by) || record.has_died(by)) && has_fence;
    let is_open = if mutant!(LeaseDecides) { owned } else { is_open };
    let ended_as = |states: &[&str]| record.text("by") == &**by && has_fence && states.contains(&record.text("state"));
    if is_open && record.has_died(by) {
        state.put_fields(keys.record(), &[("error", ""), ("died", "")], now_us);
    }
    let failures = record.number("failures").saturating_add(1).to_string();
    match ending {
        Ending::Done { result } if is_open => {
            let done_at = now_us.to_string();
            state.put_fields(keys.record(), &[("state", DONE), ("result", &**result), ("done_at", &done_at)], now_us);
            state.expire(keys.record(), now_us, attempt.retention_ms);
            Noted { is_done: true, is_over: true, retry_in_ms: 0 }
        }
        Ending::Failed { error, retry_in_ms: Some(retry_in_ms) } if is_open && record.count("attempts") < record.count("max") => {
            let not_before = (now_us / 1_000).saturating_add(*retry_in_ms).to_string();
            let fields = [("state", RETRYING), ("error", &**error), ("failures", &failures), ("not_before", &not_before)];
            state.put_fields(keys.record(), &fields, now_us);
            state.expire(keys.record(), now_us, record.number("retention").saturating_add(KEPT_MS));
            Noted { is_done: true, is_over: false, retry_in_ms: *retry_in_ms }
        }
        Ending::Failed { error, .. } if is_open => {
            let fields = [("state", DEAD), ("error", &**error), ("failures", &failures)];
            state.put_fields(keys.record(), &fields, now_us);
            state.expire(keys.record(), now_us, record.number("retention"));
            Noted { is_done: true, is_over: true, retry_in_ms: 0 }
        }
        Ending::Done { .. } => Noted { is_done: ended_as(&[DONE]), ..Noted::default() },
        Ending::Failed { .. } => Noted { is_done: ended_as(&[RETRYING, DEAD]), ..Noted::default() },
        Ending::GivenBack => Noted::default(),
    }
}

/// Takes an attempt back that runs: it never happened.
fn give_back(state: &mut State, keys: &Keys, record: &Record, by: &str, now_us: u64) {
    if record.is_open(by) {
        let attempts = record.number("attempts").saturating_sub(1);
        let next = if attempts > 0 { RETRYING } else { NEW };
        let fields = [("state", next), ("attempts", &*attempts.to_string()), ("by", "")];
        state.put_fields(keys.record(), &fields, now_us);
        state.expire(keys.record(), now_us, record.number("retention").saturating_add(KEPT_MS));
    }
}
