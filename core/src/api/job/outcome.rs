//! The outcome of a job, and why there is none.

use crate::api::job::schedule::too_early;
use crate::error::Error;
use crate::op::job::{JobEnd, NotBegun, ScheduledTime};
use crate::wording::words;

/// The outcome of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobOutcome {
    /// Whether this call ran the work, which is done.
    pub ran: bool,
    /// Why this call did not run the work; `None` if it did.
    pub reason: Option<NotRunReason>,
    /// What the work gave, in this call or in an earlier one; `None` if that was nothing.
    pub result: Option<String>,
    /// How many attempts there were, of a job that is done or dead; otherwise 0.
    pub attempts: u32,
    /// What the last attempt said, of a job that is dead.
    pub last_error: Option<String>,
}

words! {
    /// Why a call did not run a job's work. A job without a scheduled time has only the first one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum NotRunReason;
    /// The reason's name, the same in every language.
    fn as_str;
    /// The job was done before, or by another worker meanwhile; for this scheduled time, if it has one.
    Done = "done",
    /// The last attempt for this scheduled time failed, or its worker died.
    Dead = "dead",
    /// A worker runs it, or still the work of an earlier scheduled time.
    Running = "running",
    /// A later scheduled time has begun. Scheduled times never run out of order; those that are missed are coalesced.
    Missed = "missed",
    /// The scheduled time is longer ago than [`max_lateness`](crate::Job::max_lateness).
    TooLate = "too_late",
}

impl JobOutcome {
    pub(super) fn ran(attempts: u32, result: Option<String>) -> Self {
        Self { ran: true, reason: None, result, attempts, last_error: None }
    }

    pub(super) fn not_run(reason: NotRunReason) -> Self {
        Self { ran: false, reason: Some(reason), result: None, attempts: 0, last_error: None }
    }

    /// The outcome for a caller that began no attempt of the job `name`.
    pub(super) fn found(name: &str, end: JobEnd, scheduled_time: Option<ScheduledTime>) -> Result<Self, Error> {
        let JobEnd { why, text, attempts, time_us, .. } = end;
        Ok(match (why, scheduled_time) {
            (NotBegun::Dead, None) => return Err(Error::job_dead(name, attempts, text)),
            (NotBegun::TooEarly, scheduled_time) => return Err(too_early(scheduled_time, time_us)),
            (NotBegun::Done, _) => {
                Self { result: Some(text).filter(|text| !text.is_empty()), attempts, ..Self::not_run(NotRunReason::Done) }
            }
            (NotBegun::Dead, _) => Self { attempts, last_error: Some(text), ..Self::not_run(NotRunReason::Dead) },
            (NotBegun::Running, _) => Self::not_run(NotRunReason::Running),
            (NotBegun::Missed, _) => Self::not_run(NotRunReason::Missed),
            (NotBegun::TooLate, _) => Self::not_run(NotRunReason::TooLate),
        })
    }
}
