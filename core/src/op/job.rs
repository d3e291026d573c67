//! Job: what the operations on a job carry beside those of its lock.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Remaining;
use crate::wording::words;

/// The terms of a job, which each acquire of an attempt brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How many attempts may begin. The first acquire fixes it for the job.
    pub max_attempts: u32,
    /// For how long a job that is done, dead or forgotten keeps its record, milliseconds.
    pub retention_ms: u64,
    /// For a job that runs once per scheduled time: which one.
    pub scheduled_time: Option<ScheduledTime>,
}

/// A scheduled time of a schedule. The job begins again with each one that is later than all before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledTime {
    /// The time for which the scheduler planned it, milliseconds since the epoch.
    pub at_ms: u64,
    /// How long ago that may be by the server's clock, milliseconds.
    pub max_lateness_ms: u64,
    /// Whether it waits while the work of an earlier scheduled time runs. Else it is left out.
    pub waits: bool,
}

impl ScheduledTime {
    /// How far ahead of the server's clock it may be, milliseconds. One clock that is years ahead must not stop a schedule.
    pub const MAX_AHEAD_MS: u64 = 300_000;
}

/// How an attempt ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The work is done. With its result, or an empty text.
    Done {
        /// JSON text, or an empty text.
        result: Arc<str>,
    },
    /// The work failed. The next attempt may begin later; after the last one the job is dead.
    Failed {
        /// What happened.
        error: Arc<str>,
        /// When the next attempt may begin, milliseconds; `None` for never: the job is dead.
        retry_in_ms: Option<u64>,
    },
    /// The attempt never happened: it doesn't count.
    GivenBack,
}

/// The number of an attempt: the first one is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptNumber {
    /// This one.
    pub number: u16,
    /// The last one that may begin.
    pub max: u16,
    /// How many attempts before it failed; the others died.
    pub failures: u16,
}

/// What a record says of the attempt that runs, as its worker knows it. So its end is noted in full also where the record was evicted
/// or deleted meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenAttempt {
    /// Its fence; 0 for an attempt that was never granted, which can only be given back.
    pub fence: u64,
    /// Its number.
    pub number: AttemptNumber,
    /// For how long a job that is over keeps its record, milliseconds.
    pub retention_ms: u64,
    /// The scheduled time, milliseconds since the epoch; 0 for a job without any.
    pub scheduled_time_ms: u64,
}

/// What a record said before the first attempt for a later scheduled time replaced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierRun {
    /// The scheduled time, milliseconds since the epoch; 0 if the record was that of a job without any.
    pub scheduled_time_ms: u64,
    /// How many attempts began.
    pub attempts: u32,
    /// The owner value of the last attempt.
    pub by: String,
    /// What became of it, if its work has neither succeeded nor failed for good: its worker died, or no other attempt began. Else empty.
    pub error: String,
    /// For how long the record would have been kept, milliseconds.
    pub retention_ms: u64,
}

words! {
    /// Why no attempt begins, however long the worker waits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NotBegun, pub ALL;
    /// The word in the server's answer.
    fn as_str;
    /// The job is done.
    Done = "done",
    /// The job is dead: its last attempt failed, or died.
    Dead = "dead",
    /// A worker runs it, and this one is no backup.
    Running = "running",
    /// A later scheduled time has begun.
    Missed = "missed",
    /// The scheduled time is too long ago.
    TooLate = "too_late",
    /// The scheduled time is too far ahead.
    TooEarly = "too_early",
}

/// A job of which no attempt begins for the client that asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// Why.
    pub why: NotBegun,
    /// The result of a job that is done, or the last error of a dead one.
    pub text: String,
    /// How many attempts began.
    pub attempts: u32,
    /// How many were allowed.
    pub max_attempts: u32,
    /// The owner value of the last attempt.
    pub by: String,
    /// The server's clock, microseconds since the epoch.
    pub time_us: u64,
}

/// What a job's record says, and the holder of its lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRecord {
    /// `new`, `running`, `retrying`, `done` or `dead`; empty without a record.
    pub state: String,
    /// How many attempts began.
    pub attempts: u32,
    /// How many are allowed; 0 if that is not known yet.
    pub max_attempts: u32,
    /// The owner value of the last attempt.
    pub by: String,
    /// When the last attempt began, by the server's clock in microseconds.
    pub at_us: u64,
    /// What the last attempt that failed said.
    pub error: String,
    /// The result.
    pub result: String,
    /// When the next attempt may begin, by the server's clock in milliseconds; 0 for at once.
    pub not_before_ms: u64,
    /// The latest scheduled time that has begun, milliseconds since the epoch; 0 for a job without any.
    pub scheduled_time_ms: u64,
    /// When the work was done last, by the server's clock in microseconds; 0 for never.
    pub done_at_us: u64,
    /// The value of the lock's key, if there is one.
    pub holder: Option<String>,
    /// How long the lock's key remains.
    pub remaining: Remaining,
}

impl JobRecord {
    /// Whether the last attempt holds the lock.
    pub(crate) fn runs(&self) -> bool {
        self.state == "running" && self.holder.as_deref() == Some(&*self.by)
    }

    /// How long it is until the next attempt may begin, seen at `now_us` of the server's clock.
    pub(crate) fn retry_in(&self, now_us: u64) -> Duration {
        Duration::from_millis(self.not_before_ms.saturating_sub(now_us / 1_000))
    }
}
