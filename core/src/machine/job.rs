//! The lock of a job: an exclusive lock, and beside it a record of how many attempts began, and how the last one ended.
//!
//! The record is a hash. It decides, and not the lease: an attempt that ended just after its lease is recorded, unless a later
//! attempt has begun.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::exclusive::{AcquireArgs, Exclusive, conflict, find_free, look, look_whatever_the_fence, vote};
use super::fence::{self, KEPT_MS};
use super::queue;
use super::rules::Rules;
use super::state::{State, Value};
use crate::error::Remaining;
use crate::mutant::mutant;
use crate::name::Keys;
use crate::op::holder::{claim, is_claim};
use crate::op::job::{AttemptNumber, EarlierRun, Ending, FireTime, JobEnd, JobRecord, NotBegun, OpenAttempt, Terms};
use crate::op::{LockOp, Queued, Reply, Verb, Verdict};

/// The states of a record.
const NEW: &str = "new";
const RUNNING: &str = "running";
const RETRYING: &str = "retrying";
const DONE: &str = "done";
const DEAD: &str = "dead";

/// The lock of a job.
pub(super) struct Job;

impl Rules for Job {
    fn apply(&self, state: &mut State, op: &LockOp, now_us: u64) -> Reply {
        let LockOp { keys, by, verb } = op;
        match verb {
            Verb::Acquire { job: Some(terms), .. } => begin(state, op, terms, now_us).unwrap_or_else(|refusal| refusal),
            Verb::EndAttempt { ending, attempt, leave } => end(state, keys, (by, attempt), ending, leave.as_deref(), now_us),
            Verb::Reset => reset(state, keys, now_us),
            Verb::JobStatus => status(state, keys, now_us),
            Verb::Extend { ttl_ms, lock_only: false, .. } => {
                outlast(state, keys, by, *ttl_ms, now_us);
                Exclusive.apply(state, op, now_us)
            }
            _ => Exclusive.apply(state, op, now_us),
        }
    }

    fn renew(&self, state: &mut State, keys: &Keys, owner: &str, ttl_ms: u64, now_us: u64) -> bool {
        Exclusive.renew(state, keys, owner, ttl_ms, now_us)
    }
}

/// A record as it was before the operation; without one, all is empty.
#[derive(Default)]
struct Record(BTreeMap<Arc<str>, Arc<str>>);

impl Record {
    /// # Errors
    /// The type and the key of a value that is no record.
    fn read(state: &State, keys: &Keys, now_us: u64) -> Result<Self, String> {
        match state.get(keys.record(), now_us) {
            None => Ok(Self::default()),
            Some(entry) => match &entry.value {
                Value::Fields(fields) => Ok(Self(fields.clone())),
                _ => Err(fence::at(entry, keys.record())),
            },
        }
    }

    fn exists(&self) -> bool {
        !self.0.is_empty()
    }

    fn text(&self, field: &str) -> &str {
        self.0.get(field).map_or("", |value| value)
    }

    fn number(&self, field: &str) -> u64 {
        self.text(field).parse().unwrap_or(0)
    }

    fn count(&self, field: &str) -> u32 {
        u32::try_from(self.number(field)).unwrap_or(u32::MAX)
    }

    /// Whether the attempt of this owner has begun, and has not ended.
    fn is_open(&self, by: &str) -> bool {
        self.text("state") == RUNNING && (self.text("by") == by || mutant!(AnybodysAttemptEnded))
    }

    /// Whether the last attempt of this owner made the job dead without an error of its own: another client found its lease ended.
    fn has_died(&self, by: &str) -> bool {
        self.text("state") == DEAD && !self.text("died").is_empty() && self.text("by") == by
    }

    /// What there is to say of a last attempt that did not end.
    fn died(&self, max: u32) -> String {
        let (attempts, by) = (self.count("attempts"), self.text("by"));
        format!("attempt {attempts} of {max}: its worker died or lost the lease ({by})")
    }

    /// The run that the record is about, which a later fire time leaves behind.
    fn earlier(&self) -> Option<Box<EarlierRun>> {
        let error = match (self.text("state"), self.text("error")) {
            (RETRYING, error) if !error.is_empty() => error.to_owned(),
            (RUNNING | RETRYING, _) => self.died(self.count("max")),
            _ => String::new(),
        };
        let (fire_time_ms, attempts, by) = (self.number("fire_time"), self.count("attempts"), self.text("by").to_owned());
        self.exists().then(|| Box::new(EarlierRun { fire_time_ms, attempts, by, error, keep_ms: self.number("keep") }))
    }

    /// How many attempts are allowed: what the first acquire has fixed, else what this one asks for.
    fn max(&self, terms: &Terms) -> u32 {
        if self.count("max") == 0 { terms.max_attempts } else { self.count("max") }
    }

    fn end(&self, why: NotBegun, text: String, max_attempts: u32, time_us: u64) -> Verdict {
        let (attempts, by) = (self.count("attempts"), self.text("by").to_owned());
        Verdict::Over(Box::new(JobEnd { why, text, attempts, max_attempts, by, time_us }))
    }
}

/// Begins an attempt.
fn begin(state: &mut State, op: &LockOp, terms: &Terms, now_us: u64) -> Result<Reply, Reply> {
    let LockOp { keys, by, .. } = op;
    let Some(args) = AcquireArgs::of(op) else { return Ok(Exclusive.apply(state, op, now_us)) };
    let found = Record::read(state, keys, now_us).map_err(|found| conflict(0, found, now_us))?;
    let is_anew = match &terms.fire_time {
        Some(fire_time) => is_later(state, keys, &args, &found, (terms, fire_time), now_us)?,
        None => false,
    };
    let (earlier, done_at) = if is_anew { (found.earlier(), found.text("done_at").to_owned()) } else { (None, String::new()) };
    let record = if is_anew { Record::default() } else { found };
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
    if free.found.holder.as_deref() != Some(&**by) {
        if attempts >= max.saturating_add(u32::from(mutant!(OneAttemptTooMany))) {
            let error = record.died(max);
            state.put_fields(keys.record(), &[("state", DEAD), ("error", &error), ("died", "1")], now_us);
            state.expire(keys.record(), now_us, record.number("keep"));
            let verdict = record.end(NotBegun::Dead, error, max, now_us);
            return Err(over(state, keys, &args, verdict, now_us));
        }
        let left_ms = record.number("not_before").saturating_sub(now_us / 1_000);
        if left_ms > 0 && !mutant!(RetryDelayIgnored) {
            let queued = args.place.map_or(Queued::Nothing, |place| queue::line_up(state, keys, place, now_us));
            let error = record.text("error").to_owned();
            let verdict = Verdict::Later { left: Duration::from_millis(left_ms), error };
            return Err(Reply { queued, ..free.found.reply(verdict) });
        }
    }
    let voted = vote(state, keys, &args, &free, now_us);
    // A request that comes twice counts once.
    let is_counted = record.is_open(by) && !mutant!(AttemptCountedTwice);
    let number = attempts + u32::from(!is_counted);
    let [attempts, max_text, at, fence, keep] =
        [number.into(), max.into(), now_us, voted.fence, terms.keep_ms].map(|number: u64| number.to_string());
    let fields = [
        ("state", RUNNING),
        ("attempts", &attempts),
        ("max", &max_text),
        ("by", by),
        ("at", &at),
        ("fence", &fence),
        ("keep", &keep),
    ];
    if is_anew {
        state.remove(keys.record());
    }
    state.put_fields(keys.record(), &fields, now_us);
    if record.number("not_before") > 0 {
        state.put_fields(keys.record(), &[("not_before", "0")], now_us);
    }
    if let Some(fire_time) = terms.fire_time {
        state.put_fields(keys.record(), &[("fire_time", &*fire_time.at_ms.to_string())], now_us);
    }
    if !done_at.is_empty() {
        state.put_fields(keys.record(), &[("done_at", &done_at)], now_us);
    }
    state.expire(keys.record(), now_us, args.ttl_ms.saturating_add(terms.keep_ms).saturating_add(KEPT_MS));
    let small = |count| u16::try_from(count).unwrap_or(u16::MAX);
    let attempt = AttemptNumber { number: small(number), max: small(max), failures: small(record.count("failures")) };
    Ok(Reply { attempt: Some(attempt), earlier, ..voted })
}

/// Whether a fire time is later than all that have begun. Then the job begins anew with it.
///
/// # Errors
/// The refusal of one for which nothing runs.
fn is_later(
    state: &mut State,
    keys: &Keys,
    args: &AcquireArgs<'_>,
    record: &Record,
    (terms, fire_time): (&Terms, &FireTime),
    now_us: u64,
) -> Result<bool, Reply> {
    let FireTime { at_ms, late_ms, waits } = *fire_time;
    let (now_ms, last_ms) = (now_us / 1_000, record.number("fire_time"));
    let not_begun = |why| record.end(why, String::new(), record.max(terms), now_us);
    if at_ms > now_ms.saturating_add(FireTime::MAX_AHEAD_MS) && !mutant!(FarFireTimeBegins) {
        return Err(Reply::new(not_begun(NotBegun::TooEarly), now_us, 0));
    }
    if at_ms < last_ms && !mutant!(EarlierFireTimeBegins) {
        return Err(over(state, keys, args, not_begun(NotBegun::Missed), now_us));
    }
    let is_later = if mutant!(FireTimeBeginsTwice) { at_ms >= last_ms } else { at_ms > last_ms };
    if !is_later && [DONE, DEAD].contains(&record.text("state")) {
        return Ok(false);
    }
    if at_ms.saturating_add(late_ms) < now_ms && !mutant!(LateFireTimeBegins) {
        return Err(Reply::new(not_begun(NotBegun::TooLate), now_us, 0));
    }
    let is_backup = if is_later { waits } else { record.max(terms) > 1 };
    let holder = state.get(keys.lock(), now_us).and_then(|entry| entry.text()).unwrap_or_default();
    // A lock that is kept for a waiter is free soon.
    if !is_backup && !holder.is_empty() && holder != &**args.owner && !is_claim(holder) {
        return Err(Reply::new(not_begun(NotBegun::Running), now_us, 0));
    }
    Ok(is_later)
}

/// The answer to whoever asks for a job that is over. The other waiters hear of it, too.
fn over(state: &mut State, keys: &Keys, args: &AcquireArgs<'_>, verdict: Verdict, now_us: u64) -> Reply {
    if let Some(place) = args.place {
        queue::leave(state, keys, &place.entry, now_us);
    }
    queue::wake_many(state, keys, now_us);
    Reply::new(verdict, now_us, 0)
}

/// Ends this attempt of the owner `by`.
fn end(
    state: &mut State,
    keys: &Keys,
    (by, attempt): (&Arc<str>, &OpenAttempt),
    ending: &Ending,
    leave: Option<&str>,
    now_us: u64,
) -> Reply {
    if let Some(entry) = leave {
        queue::leave(state, keys, entry, now_us);
    }
    let (mut record, foreign) = match Record::read(state, keys, now_us) {
        Ok(record) => (record, None),
        Err(foreign) => (Record::default(), Some(foreign)),
    };
    let existed = record.exists();
    let found = match look_whatever_the_fence(state, keys, now_us) {
        Ok(found) => found,
        Err(conflict) => return conflict,
    };
    let owned = found.holder.as_deref() == Some(&**by);
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
    let freed = owned || leave.is_some_and(|entry| found.holder.as_deref() == Some(&claim(entry)));
    if freed {
        state.remove(keys.lock());
    }
    let tells = freed || leave.is_some() && found.holder.is_none();
    // A fence without the mark shows that nobody waits.
    let shows_fence = state.get(keys.fence(), now_us).and_then(|entry| entry.text()) == Some(&*attempt.fence.to_string());
    let nobody_waits = owned && leave.is_none() && existed && shows_fence;
    match noted {
        Noted { is_over: true, .. } if nobody_waits && matches!(ending, Ending::Done { .. }) => (),
        Noted { is_over: true, .. } => queue::wake_many(state, keys, now_us),
        Noted { retry_in_ms: 1.., .. } if tells => queue::tell_later(state, keys, noted.retry_in_ms, now_us),
        _ if tells => queue::wake(state, keys, true, false, now_us),
        _ => (),
    }
    match foreign.filter(|_| *ending != Ending::GivenBack) {
        Some(found_type) => found.reply(Verdict::Conflict { found: found_type }),
        None if noted.is_done => Reply::new(Verdict::Ok, now_us, 0),
        None if found.holder.is_some() && !freed => found.no(),
        None => {
            let rival = Some(record.text("by")).filter(|rival| !rival.is_empty() && *rival != &**by);
            found.reply(Verdict::No { holder: rival.map(str::to_owned), remaining: Remaining::Gone })
        }
    }
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
    let OpenAttempt { fence, number: AttemptNumber { number, max, failures }, keep_ms, fire_time_ms } = *attempt;
    let [number, max, fence, keep, failures, fire_time] =
        [number.into(), max.into(), fence, keep_ms, failures.into(), fire_time_ms].map(|number: u64| number.to_string());
    let fields = [
        ("state", RUNNING),
        ("attempts", &*number),
        ("max", &max),
        ("by", by),
        ("fence", &fence),
        ("keep", &keep),
        ("failures", &failures),
        ("fire_time", &fire_time),
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
            state.expire(keys.record(), now_us, attempt.keep_ms);
            Noted { is_done: true, is_over: true, retry_in_ms: 0 }
        }
        Ending::Failed { error, retry_in_ms: Some(retry_in_ms) } if is_open && record.count("attempts") < record.count("max") => {
            let not_before = (now_us / 1_000).saturating_add(*retry_in_ms).to_string();
            let fields = [("state", RETRYING), ("error", &**error), ("failures", &failures), ("not_before", &not_before)];
            state.put_fields(keys.record(), &fields, now_us);
            state.expire(keys.record(), now_us, record.number("keep").saturating_add(KEPT_MS));
            Noted { is_done: true, is_over: false, retry_in_ms: *retry_in_ms }
        }
        Ending::Failed { error, .. } if is_open => {
            let fields = [("state", DEAD), ("error", &**error), ("failures", &failures)];
            state.put_fields(keys.record(), &fields, now_us);
            state.expire(keys.record(), now_us, record.number("keep"));
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
        state.expire(keys.record(), now_us, record.number("keep").saturating_add(KEPT_MS));
    }
}

/// Forgets the record, unless an attempt runs. Its waiters may begin at once then.
fn reset(state: &mut State, keys: &Keys, now_us: u64) -> Reply {
    let record = match Record::read(state, keys, now_us) {
        Ok(record) => record,
        Err(found) => return conflict(0, found, now_us),
    };
    let found = match look_whatever_the_fence(state, keys, now_us) {
        Ok(found) => found,
        Err(conflict) => return conflict,
    };
    let runs = record.text("state") == RUNNING && found.holder.as_deref() == Some(record.text("by"));
    if runs || !record.exists() {
        return found.no();
    }
    state.remove(keys.record());
    if found.holder.is_none() {
        queue::wake(state, keys, true, false, now_us);
    }
    Reply::new(Verdict::Ok, now_us, 0)
}

fn status(state: &State, keys: &Keys, now_us: u64) -> Reply {
    let record = match Record::read(state, keys, now_us) {
        Ok(record) => record,
        Err(found) => return conflict(0, found, now_us),
    };
    let found = match look(state, keys, now_us) {
        Ok(found) => found,
        Err(conflict) => return conflict,
    };
    let text = |field: &str| record.text(field).to_owned();
    found.reply(Verdict::Recorded(Box::new(JobRecord {
        state: text("state"),
        attempts: record.count("attempts"),
        max_attempts: record.count("max"),
        by: text("by"),
        at_us: record.number("at"),
        error: text("error"),
        result: text("result"),
        not_before_ms: record.number("not_before"),
        fire_time_ms: record.number("fire_time"),
        done_at_us: record.number("done_at"),
        holder: found.shown(),
        remaining: found.remaining(),
    })))
}

/// Keeps the record of an attempt that runs for longer than a record is kept.
fn outlast(state: &mut State, keys: &Keys, by: &str, ttl_ms: u64, now_us: u64) {
    let is_held = state.get(keys.lock(), now_us).and_then(|entry| entry.text()) == Some(by);
    // A record that a person has written may have no `keep`.
    if let Ok(record) = Record::read(state, keys, now_us)
        && is_held
        && !record.text("keep").is_empty()
    {
        state.expire(keys.record(), now_us, ttl_ms.saturating_add(record.number("keep")).saturating_add(KEPT_MS));
    }
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
