//! Blocking twins: the verbs of a job for code without an executor.

use std::fmt;

use super::{Attempt, Begun, Job, JobOutcome, JobResult, end_of_failed};
use crate::error::{Error, RunError};
use crate::protocol::JobStatus;

impl Job {
    /// [`Job::begin`], blocking this thread.
    ///
    /// # Errors
    /// As [`Job::begin`].
    pub fn begin_blocking(&self) -> Result<Begun, Error> {
        self.begin().blocking()
    }

    /// [`Job::run`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-job-run-blocking")?;
    /// let outcome = client.job("mail:7").run_blocking(|attempt| Ok::<_, String>(attempt.number().to_string()))?;
    /// assert_eq!(outcome.result.as_deref(), Some("1"));
    /// # Ok::<(), locktender::RunError<String>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Job::run`].
    pub fn run_blocking<R: JobResult, E: fmt::Display + 'static>(
        &self,
        work: impl FnOnce(&Attempt) -> Result<R, E>,
    ) -> Result<JobOutcome, RunError<E>> {
        let attempt = match self.begin_blocking()? {
            Begun::Attempt(attempt) => attempt,
            Begun::Over(outcome) => return Ok(outcome),
        };
        self.lock.enter(&attempt);
        match work(&attempt) {
            Ok(result) => {
                let result = result.into_text();
                if let Err(error) = attempt.complete(result.clone()).blocking() {
                    if let Some(failed) = attempt.fails_by(&error) {
                        // The first error is the one for the caller.
                        let _ = failed.blocking();
                    }
                    return Err(error.into());
                }
                Ok(JobOutcome::ran(attempt.number(), result))
            }
            Err(error) => {
                // Its own error is the one for the caller.
                let _ = end_of_failed(&attempt, &error).blocking();
                Err(RunError::Failed(error))
            }
        }
    }

    /// [`Job::status`], blocking this thread.
    ///
    /// # Errors
    /// As [`Job::status`].
    pub fn status_blocking(&self) -> Result<JobStatus, Error> {
        self.status().blocking()
    }

    /// [`Job::reset`], blocking this thread.
    ///
    /// # Errors
    /// As [`Job::reset`].
    pub fn reset_blocking(&self) -> Result<bool, Error> {
        self.reset().blocking()
    }
}
