//! The outcome of a job, and why there is none.

use std::fmt;

use crate::error::Error;
use crate::op::job::JobEnd;
use crate::protocol::JobState;

/// The outcome of a job that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobOutcome {
    /// The job's state: [`JobState::Done`].
    pub state: JobState,
    /// Whether this call ran the work. If not, the job was done before, or by another worker meanwhile.
    pub ran: bool,
    /// What the work gave; `None` if that was nothing.
    pub result: Option<String>,
    /// How many attempts there were.
    pub attempts: u32,
}

impl JobOutcome {
    pub(super) fn ran(attempts: u32, result: Option<String>) -> Self {
        Self { state: JobState::Done, ran: true, result, attempts }
    }

    pub(super) fn found(end: JobEnd) -> Self {
        let result = Some(end.text).filter(|text| !text.is_empty());
        Self { state: JobState::Done, ran: false, result, attempts: end.attempts }
    }
}

/// Why [`Job::run`](crate::Job::run) has no outcome.
#[derive(Debug)]
#[non_exhaustive]
pub enum JobError<E> {
    /// The work failed with this error. That is noted: another attempt may follow.
    Failed(E),
    /// An error of the job's lock or record: the work did not run, or its end may not be noted.
    Lock(Error),
}

impl<E> From<Error> for JobError<E> {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

impl<E: fmt::Display> fmt::Display for JobError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Lock(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for JobError<E> {}
