//! The lock of a job: an exclusive lock, and beside it a record of how many attempts began, and how the last one ended.
//!
//! The record is a hash. It decides, and not the lease: an attempt that ended just after its lease is recorded, unless a later
//! attempt has begun.

mod ending;
mod record;

use std::time::Duration;

use self::ending::end;
use self::record::{DEAD, DONE, KEPT_MS, RUNNING, Record};
use super::exclusive::{self, AcquireArgs, find_free, refusal, take};
use super::found::{conflict, look};
use super::queue;
use super::room::holder;
use super::state::State;
use crate::mutant::mutant;
use crate::name::Keys;
use crate::op::holder::{is_claim, owner_of};
use crate::op::job::{AttemptNumber, JobRecord, NotBegun, ScheduledTime, Terms};
use crate::op::{LockOp, Queued, Reply, Verb, Verdict};

/// The lock of a job.
pub(super) fn apply(state: &mut State, op: &LockOp, now_us: u64) -> Result<Reply, Reply> {
    let LockOp { keys, by, verb } = op;
    match verb {
        Verb::Acquire { job: Some(terms), .. } => begin(state, op, terms, now_us),
        Verb::EndAttempt { ending, attempt, leave } => end(state, keys, (by, attempt), ending, leave.as_deref(), now_us),
        Verb::Reset => reset(state, keys, now_us),
        Verb::JobStatus => status(state, keys, now_us),
        Verb::Extend { ttl_ms, .. } => {
            outlast(state, keys, by, *ttl_ms, now_us);
            exclusive::apply(state, op, now_us)
        }
        _ => exclusive::apply(state, op, now_us),
    }
}

fn read(state: &State, keys: &Keys, now_us: u64) -> Result<Record, Reply> {
    Record::read(state, keys, now_us).map_err(|found| conflict(0, found, now_us))
}

/// Begins an attempt.
fn begin(state: &mut State, op: &LockOp, terms: &Terms, now_us: u64) -> Result<Reply, Reply> {
    let LockOp { keys, by, .. } = op;
    let Some(args) = AcquireArgs::of(op) else { return exclusive::apply(state, op, now_us) };
    let found = read(state, keys, now_us)?;
    let is_later = match &terms.scheduled_time {
        Some(scheduled_time) => is_later(state, keys, &args, &found, (terms, scheduled_time), now_us)?,
        None => false,
    };
    let (earlier, done_at) = if is_later { (found.earlier(), found.text("done_at").to_owned()) } else { (None, String::new()) };
    let record = if is_later { Record::default() } else { found };
    let (attempts, max) = (record.count("attempts"), record.max(terms));
    match record.text("state") {
        DONE if !mutant!(DoneRunsAgain) => {
            let verdict = record.end(NotBegun::Done, record.text("result").to_owned(), max, now_us);
            return Err(over(state, keys, &args, verdict, now_us));
        }
        DEAD => {
            let verdict = record.end(NotBegun::Dead, record.text("error").to_owned(), max, now_us);
            return Err(over(state, keys, &args, verdict, now_us));
        }
        _ => (),
    }
    let free = find_free(state, keys, &args, now_us)?;
    if !free.found.is_owned_by(by) {
        if attempts >= max.saturating_add(u32::from(mutant!(OneAttemptTooMany))) {
            let error = record.died(max);
            state.put_fields(keys.record(), &[("state", DEAD), ("error", &error), ("died", "1")], now_us);
            state.expire(keys.record(), now_us, record.number("retention"));
            let verdict = record.end(NotBegun::Dead, error, max, now_us);
            return Err(over(state, keys, &args, verdict, now_us));
        }
        let left_ms = record.number("not_before").saturating_sub(now_us / 1_000);
        if left_ms > 0 && !mutant!(RetryDelayIgnored) {
            let queued = args.place.map_or(Queued::Nothing, |place| queue::enqueue(state, keys, place, now_us));
            let error = record.text("error").to_owned();
            let verdict = Verdict::Later { left: Duration::from_millis(left_ms), error };
            return Err(Reply { queued, ..free.found.reply(verdict) });
        }
    }
    let voted = take(state, keys, &args, &free, now_us)?;
    // A request that comes twice counts once.
    let is_counted = record.is_open(by) && !mutant!(AttemptCountedTwice);
    let number = attempts + u32::from(!is_counted);
    let [attempts, max_text, at, fence, keep] =
        [number.into(), max.into(), now_us, voted.fence, terms.retention_ms].map(|number: u64| number.to_string());
    let fields = [
        ("state", RUNNING),
        ("attempts", &attempts),
        ("max", &max_text),
        ("by", by),
        ("at", &at),
        ("fence", &fence),
        ("retention", &keep),
    ];
    if is_later {
        state.remove(keys.record());
    }
    state.put_fields(keys.record(), &fields, now_us);
    if record.number("not_before") > 0 {
        state.put_fields(keys.record(), &[("not_before", "0")], now_us);
    }
    if let Some(scheduled_time) = terms.scheduled_time {
        state.put_fields(keys.record(), &[("scheduled_time", &*scheduled_time.at_ms.to_string())], now_us);
    }
    if !done_at.is_empty() {
        state.put_fields(keys.record(), &[("done_at", &done_at)], now_us);
    }
    state.expire(keys.record(), now_us, args.ttl_ms.saturating_add(terms.retention_ms).saturating_add(KEPT_MS));
    let small = |count| u16::try_from(count).unwrap_or(u16::MAX);
    let attempt = AttemptNumber { number: small(number), max: small(max), failures: small(record.count("failures")) };
    Ok(Reply { attempt: Some(attempt), earlier, ..voted })
}

/// Whether a scheduled time is later than all that have begun. Then the job begins again with it.
///
/// # Errors
/// The refusal of one for which nothing runs.
fn is_later(
    state: &mut State,
    keys: &Keys,
    args: &AcquireArgs<'_>,
    record: &Record,
    (terms, scheduled_time): (&Terms, &ScheduledTime),
    now_us: u64,
) -> Result<bool, Reply> {
    let ScheduledTime { at_ms, max_lateness_ms, waits } = *scheduled_time;
    let (now_ms, last_ms) = (now_us / 1_000, record.number("scheduled_time"));
    let not_begun = |why| record.end(why, String::new(), record.max(terms), now_us);
    if at_ms > now_ms.saturating_add(ScheduledTime::MAX_AHEAD_MS) && !mutant!(FarScheduledTimeBegins) {
        return Err(Reply::new(not_begun(NotBegun::TooEarly), now_us, 0));
    }
    if at_ms < last_ms && !mutant!(EarlierScheduledTimeBegins) {
        return Err(over(state, keys, args, not_begun(NotBegun::Missed), now_us));
    }
    let is_later = if mutant!(ScheduledTimeBeginsTwice) { at_ms >= last_ms } else { at_ms > last_ms };
    if !is_later && [DONE, DEAD].contains(&record.text("state")) {
        return Ok(false);
    }
    if at_ms.saturating_add(max_lateness_ms) < now_ms && !mutant!(LateScheduledTimeBegins) {
        return Err(Reply::new(not_begun(NotBegun::TooLate), now_us, 0));
    }
    let is_backup = if is_later { waits } else { record.max(terms) > 1 };
    let holder = state.get(keys.lock(), now_us).and_then(|entry| entry.text()).unwrap_or_default();
    // A lock that is kept for a waiter is free soon.
    if !is_backup && !holder.is_empty() && owner_of(holder) != &**args.owner && !is_claim(holder) {
        return Err(Reply::new(not_begun(NotBegun::Running), now_us, 0));
    }
    Ok(is_later)
}

/// The answer to a client that asks for a job that is over. The other waiters are notified, too.
fn over(state: &mut State, keys: &Keys, args: &AcquireArgs<'_>, verdict: Verdict, now_us: u64) -> Reply {
    if let Some(place) = args.place {
        queue::leave(state, keys, &place.entry, now_us);
    }
    queue::wake_many(state, keys, now_us);
    Reply::new(verdict, now_us, 0)
}

/// Forgets the record, unless an attempt runs. Its waiters may begin at once then.
fn reset(state: &mut State, keys: &Keys, now_us: u64) -> Result<Reply, Reply> {
    let record = read(state, keys, now_us)?;
    let found = look(state, keys, now_us)?;
    let runs = record.text("state") == RUNNING && found.is_owned_by(record.text("by"));
    if runs || !record.exists() {
        return Err(refusal(state, keys, &found, ""));
    }
    state.remove(keys.record());
    if !found.is_held() {
        queue::wake(state, keys, true, false, now_us);
    }
    Ok(Reply::new(Verdict::Ok, now_us, 0))
}

fn status(state: &State, keys: &Keys, now_us: u64) -> Result<Reply, Reply> {
    let record = read(state, keys, now_us)?;
    let found = look(state, keys, now_us)?;
    let text = |field: &str| record.text(field).to_owned();
    Ok(found.seen(Verdict::Recorded(Box::new(JobRecord {
        state: text("state"),
        attempts: record.count("attempts"),
        max_attempts: record.count("max"),
        by: text("by"),
        at_us: record.number("at"),
        error: text("error"),
        result: text("result"),
        not_before_ms: record.number("not_before"),
        scheduled_time_ms: record.number("scheduled_time"),
        done_at_us: record.number("done_at"),
        holder: holder(state, keys, &found, ""),
        remaining: found.remaining(),
    }))))
}

/// Keeps the record of an attempt that runs for longer than a record is kept.
fn outlast(state: &mut State, keys: &Keys, by: &str, ttl_ms: u64, now_us: u64) {
    let is_held = look(state, keys, now_us).is_ok_and(|found| found.is_owned_by(by));
    // A record that a person has written may have no retention.
    if let Ok(record) = Record::read(state, keys, now_us)
        && is_held
        && !record.text("retention").is_empty()
    {
        state.expire(keys.record(), now_us, ttl_ms.saturating_add(record.number("retention")).saturating_add(KEPT_MS));
    }
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
