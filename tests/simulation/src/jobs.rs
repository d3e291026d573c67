//! Jobs: some users of some runs run a job of the lock's name, of every second one once per scheduled time. What they do with an attempt,
//! the words of its scripts, and what they get.

use std::sync::Arc;

use locktender::internals::name::{Keys, Kind as LockKind};
use locktender::internals::protocol::{Answered, CallId, Grant, Input};
use locktender::op::job::{AttemptNumber, EarlierRun, Ending, JobEnd, NotBegun, OpenAttempt, ScheduledTime, Terms};
use locktender::op::{LockOp, Op, Reply, Verb, Verdict};
use locktender::{Code, Error, LossReason, Release};

use super::clock::micros;
use super::resp;
use super::slot::{Gone, Kind};
use super::waiters::LOOK;
use super::world::World;

/// The time between two scheduled times.
const PERIOD_MS: u64 = 700;

/// The name of the script that begins an attempt.
const BEGIN: &str = "begin";

/// The name of the script for this operation on a job, if it is one of its own.
pub(super) fn name(op: &Op) -> Option<&'static str> {
    let is_begin = matches!(op.verb(), Some(Verb::Acquire { job: Some(_), .. }));
    is_begin.then_some(BEGIN)
}

/// Terms by which the scripts of a job are known.
pub(super) const ANY: Terms = Terms { max_attempts: 1, retention_ms: 1, scheduled_time: None };

/// An end by which the script of ends is known.
pub(super) fn any_end() -> Verb {
    Verb::EndAttempt { ending: Ending::GivenBack, attempt: OpenAttempt::default(), leave: None }
}

/// The operation of a job's script that is called with these words.
pub(super) fn op(script: &str, words: &[String], known: &[Arc<Keys>]) -> Option<Op> {
    let count: usize = words.first()?.parse().ok()?;
    match script {
        BEGIN => {
            let (args, terms) = words.split_at(words.len().checked_sub(3)?);
            let scheduled_time = if terms[2].is_empty() { None } else { Some(scheduled_time(&terms[2])?) };
            let terms = Terms { max_attempts: terms[0].parse().ok()?, retention_ms: terms[1].parse().ok()?, scheduled_time };
            let Op::Lock(mut begin) = resp::op("acquire", args, known)? else { return None };
            if let Verb::Acquire { job, .. } = &mut begin.verb {
                *job = Some(Box::new(terms));
            }
            Some(Op::Lock(begin))
        }
        "end" => {
            let keys = known.iter().find(|keys| words.get(1).is_some_and(|lock| keys.lock() == lock)).cloned()?;
            let rest = words.get(1 + count..)?;
            let text = |at: usize| rest.get(at).map(String::as_str).unwrap_or_default();
            let ending = match text(1) {
                "done" => Ending::Done { result: text(4).into() },
                "failed" => Ending::Failed { error: text(4).into(), retry_in_ms: text(5).parse().ok() },
                "back" => Ending::GivenBack,
                _ => return None,
            };
            let mut known = text(6).split(' ').map(|number| number.parse::<u64>().unwrap_or_default());
            let mut small = || u16::try_from(known.next().unwrap_or_default()).unwrap_or_default();
            let number = AttemptNumber { number: small(), max: small(), failures: small() };
            let scheduled_time_ms = known.next().unwrap_or_default();
            let (fence, retention_ms) = (text(2).parse().ok()?, text(3).parse().unwrap_or_default());
            let attempt = OpenAttempt { fence, number, retention_ms, scheduled_time_ms };
            let leave = Some(text(7)).filter(|leave| !leave.is_empty()).map(Arc::from);
            Some(Op::Lock(LockOp { keys, by: text(0).into(), verb: Verb::EndAttempt { ending, attempt, leave } }))
        }
        _ => None,
    }
}

/// The scheduled time of the last word of an acquire.
fn scheduled_time(word: &str) -> Option<ScheduledTime> {
    let mut parts = word.split(' ');
    let at_ms = parts.next()?.parse().ok()?;
    let max_lateness_ms = parts.next()?.parse().ok()?;
    Some(ScheduledTime { at_ms, max_lateness_ms, waits: parts.next()? == "w" })
}

/// The run that a later scheduled time has left behind, as the last field.
fn left_behind(run: &EarlierRun) -> String {
    let EarlierRun { scheduled_time_ms, attempts, by, error, retention_ms } = run;
    let (by, error) = (resp::bulk(by), resp::bulk(error));
    format!("*5\r\n:{scheduled_time_ms}\r\n:{attempts}\r\n{by}{error}:{retention_ms}\r\n")
}

/// The answer of the script that begins an attempt, if it isn't that of an acquire: behind `granted`, its first five fields, or in their
/// place. `queued` are the sixth and the seventh.
pub(super) fn begun(reply: &Reply, granted: &str, queued: &str) -> Option<String> {
    let (time, fence) = (reply.time_us, reply.fence);
    let nobody = "$-1\r\n".repeat(2);
    match &reply.verdict {
        Verdict::Vote => {
            let AttemptNumber { number, max, failures } = reply.attempt?;
            let queued = if queued.is_empty() { &nobody } else { queued };
            let earlier = reply.earlier.as_deref().map_or_else(|| "$-1\r\n".to_owned(), left_behind);
            Some(format!("*11\r\n{granted}{queued}:{number}\r\n:{max}\r\n:{failures}\r\n{earlier}"))
        }
        Verdict::Over(end) => {
            let (why, text, by) = (resp::bulk(end.why.as_str()), resp::bulk(&end.text), resp::bulk(&end.by));
            Some(format!("*9\r\n{why}:{time}\r\n:0\r\n{text}:{}\r\n{nobody}:{}\r\n{by}", end.attempts, end.max_attempts))
        }
        Verdict::Later { left, error } => {
            let fields = if queued.is_empty() { 5 } else { 7 };
            let (later, error, left) = (resp::bulk("later"), resp::bulk(error), left.as_millis());
            Some(format!("*{fields}\r\n{later}:{time}\r\n:{fence}\r\n{error}:{left}\r\n{queued}"))
        }
        _ => None,
    }
}

impl World {
    /// Whether a user runs a job, and by which terms.
    pub(super) fn draw_job(&mut self, client: usize, name: usize) -> Option<Terms> {
        if !self.plan.has_jobs || self.rng.u8(..8) == 0 {
            return None;
        }
        let max_attempts = self.rng.u32(1..=4);
        if name.is_multiple_of(2) {
            return Some(Terms { max_attempts, retention_ms: self.rng.u64(1_000..3_000), scheduled_time: None });
        }
        let wall_ms = self.read_clocks(client).wall_us / 1_000;
        let (at_ms, max_lateness_ms) = (wall_ms - wall_ms % PERIOD_MS, self.rng.u64(PERIOD_MS..5_000));
        let scheduled_time = Some(ScheduledTime { at_ms, max_lateness_ms, waits: self.rng.bool() });
        // The record outlives the scheduled time.
        Some(Terms { max_attempts, retention_ms: max_lateness_ms + 86_400_000, scheduled_time })
    }

    /// Ends an attempt in one of the ways of its user, or asks again how it ended; says whether it did.
    pub(super) fn end_attempt(&mut self, client: usize, slot: usize, is_again: bool) -> bool {
        let entry = &self.processes[client].slots[slot];
        if entry.recipe.job.is_none() || is_again && entry.ending.is_none() {
            return false;
        }
        // Who asks again how an attempt ended has to ask for the same end.
        let ending = match (entry.ending.clone(), self.rng.u8(..20)) {
            (Some(ending), _) => ending,
            (None, 0..=7) => Ending::Done { result: format!("\"c{client}.{slot}\"").into() },
            (None, 8..=14) => {
                let retry_in_ms = (self.rng.u8(..6) > 0).then(|| self.rng.u64(..1_500));
                Ending::Failed { error: format!("c{client}.{slot} failed").into(), retry_in_ms }
            }
            // It is released: it doesn't count.
            _ => return false,
        };
        self.call_end(client, slot, &ending);
        true
    }

    fn call_end(&mut self, client: usize, slot: usize, ending: &Ending) {
        let (now, stopped) = (self.now, self.processes[client].stopped);
        let entry = &mut self.processes[client].slots[slot];
        let id = entry.call(Kind::End, now, stopped);
        entry.ending = Some(ending.clone());
        self.leave(client, slot, Gone::Released, Input::EndAttempt(id, ending.clone()));
        self.processes[client].slots[slot].released.0 = true;
    }

    /// A worker learns how the end of its attempt went.
    pub(super) fn attempt_ended(&mut self, client: usize, slot: usize, id: CallId, result: &Result<Release, Error>) {
        self.trace(|| format!("c{client}.{slot} ENDED {result:?}"));
        let Some(call) = self.end_call(client, slot, id) else { return };
        let entry = &self.processes[client].slots[slot];
        let (Some(owner), Some(ending)) = (entry.owner.clone(), entry.ending.clone()) else {
            return self.violate(format!("c{client}.{slot}: an end of nothing"));
        };
        let (is_known, limit) = (entry.released.1, entry.recipe.unavailable_after);
        let ledger = self.jobs.get(entry.name);
        let noted = ledger.and_then(|ledger| ledger.noted(&owner));
        // Behind a request without an answer another attempt has begun, whatever became of that: the failure may be noted, or not.
        let is_followed = ledger.is_some_and(|ledger| !ledger.is_last(&owner));
        let is_unknowable = self.forgot || matches!(ending, Ending::Failed { .. }) && entry.is_unsure && is_followed;
        let fits = match result {
            Ok(_) => is_unknowable || noted.is_some_and(|(noted, _)| *noted == ending),
            Err(error) => match error.code() {
                Code::LockLost => is_unknowable || noted.is_none_or(|(_, is_forgotten)| is_forgotten),
                Code::NotHeld => is_known || entry.left,
                Code::Unavailable => true,
                _ => false,
            },
        };
        if !fits {
            self.violate(format!(
                "c{client}.{slot}: an attempt ended with {ending:?}: {result:?}, and the record says {noted:?}"
            ));
        }
        if !self.in_time(client, call.at, call.stopped, limit) {
            self.violate(format!("c{client}.{slot}: the end of an attempt outlasted {limit:?}"));
        }
        let is_unknown = matches!(result, Err(error) if error.code() == Code::Unavailable);
        let entry = &mut self.processes[client].slots[slot];
        // A close has released it: a release may still say so.
        let is_closed = entry.loss.as_ref().is_some_and(|loss| loss.reason == LossReason::Closed);
        entry.released.1 |= !is_unknown && !is_closed;
        self.worker_released(client, slot, is_unknown);
    }

    /// The grant, if the lock was not busy and the job is not over.
    pub(super) fn granted_to(&mut self, client: usize, slot: usize, answered: Answered) -> Option<Grant> {
        match answered {
            Answered::Granted(grant) => {
                let name = self.processes[client].slots[slot].name;
                let counted = self.jobs.get(name).and_then(|ledger| ledger.counted(&grant.owner));
                let number = grant.attempt.map(|attempt| u32::from(attempt.number));
                if !self.forgot && number != counted {
                    self.violate(format!("c{client}.{slot}: attempt {number:?} began, and the record counted {counted:?}"));
                }
                Some(grant)
            }
            Answered::Over(end) => {
                self.finds_over(client, slot, &end);
                None
            }
            _ => None,
        }
    }

    fn finds_over(&mut self, client: usize, slot: usize, end: &JobEnd) {
        let entry = &mut self.processes[client].slots[slot];
        entry.is_over = true;
        let (name, is_job) = (entry.name, entry.recipe.job.is_some());
        let is_scheduled = entry.recipe.job.is_some_and(|terms| terms.scheduled_time.is_some());
        let is_so = self.jobs.get(name).is_some_and(|ledger| match end.why {
            NotBegun::Done => ledger.had_result(&end.text),
            NotBegun::Dead => ledger.has_died(),
            NotBegun::Running | NotBegun::Missed | NotBegun::TooLate | NotBegun::TooEarly => is_scheduled,
        });
        if !is_job || !is_so && !self.forgot {
            self.violate(format!("c{client}.{slot}: a job is over, and it isn't so: {end:?}"));
        }
    }

    /// Whether a call ends an attempt of a job.
    pub(super) fn ends_attempt(&self, client: usize, slot: usize, id: CallId) -> bool {
        self.processes[client].slots[slot].calls.iter().any(|call| call.id == id && matches!(call.kind, Kind::End))
    }

    /// The next attempt of a job may begin later: its waiters don't come before.
    pub(super) fn comes_later(&mut self, name: usize, after: u64) {
        let until = self.now + after + LOOK + self.moment() + micros(self.plan.response_timeout);
        self.excuse(name, until);
    }
}

/// Whether it is an operation on a job's record, which decides whom it notifies.
pub(super) fn is_about_record(op: &Op) -> bool {
    op.keys().is_some_and(|keys| keys.kind() == LockKind::Job)
        && matches!(op.verb(), Some(Verb::EndAttempt { .. } | Verb::Acquire { job: Some(_), .. }))
}
