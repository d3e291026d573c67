//! Job: work that must be done once, by whichever worker, and again by another worker if that one fails or dies. With a schedule:
//! once per scheduled time.

mod attempt;
mod blocking;
mod options;
mod outcome;
mod schedule;

use std::any::Any;
use std::fmt;
use std::time::Duration;

pub use self::attempt::{Attempt, Begun, JobResult};
pub use self::attempt::{MOST_ERROR, MOST_RESULT};
pub use self::outcome::{JobOutcome, NotRunReason};
use crate::api::lock::Lock;
use crate::error::{Code, Error, RunError};
use crate::io::call::Call;
use crate::name::LockKind;
use crate::op::Verb;
use crate::op::job::Terms;
use crate::options::{JobOverrides, LockOptions, wire_millis};
use crate::protocol::{JobStatus, job_reset, job_status};
use crate::session::ask_all::AssessLock;

/// How many attempts a job has, unless it says otherwise.
const ATTEMPTS: u32 = 3;

/// How long after the first failure the next attempt may begin, unless the job says otherwise: a server that is down for a moment
/// must not use up all attempts.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// For how long a job that is over is remembered, unless it says otherwise.
const RETENTION: Duration = Duration::from_secs(24 * 3600);

/// A job, as a name and options: work that must be done once in a cluster.
///
/// Any number of workers may ask for it, at any time. One of them runs it; the others wait as backups. If the work fails, or its
/// worker dies, the next one runs it, until it is done or its attempts are used up. The server counts the attempts, and keeps the
/// result or the last error for [`retention`](Job::retention). While an attempt runs, the lock with the job's name is held.
///
/// The work itself runs at least once: a worker may die after its effect, and before its end is recorded. So an effect that must not
/// come twice is stored under the job's name, in the transaction that makes it. Against a worker that is late, send
/// [`fence`](crate::Hold::fence) with each write, and let the resource refuse a smaller one.
///
/// A job needs one server: a client of several gets `INVALID_ARGUMENT`.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let client = locktender::Client::open("memory://docs-job").unwrap();
/// let job = client.job("mail:2026-11-21").max_attempts(5);
/// let outcome = job.run(async |attempt| {
///     println!("attempt {} with fence {}", attempt.number(), attempt.fence());
///     Ok::<_, std::io::Error>("\"sent\"")
/// }).await?;
/// assert_eq!((outcome.ran, outcome.result.as_deref()), (true, Some("\"sent\"")));
/// assert!(!job.run(async |_| Ok::<_, String>(())).await?.ran); // it is done
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Job {
    lock: Lock,
    own: JobOverrides,
    /// Whether it runs once per scheduled time.
    is_scheduled: bool,
}

impl Job {
    pub(super) fn new(lock: Lock) -> Self {
        Self { lock: lock.of_job(), own: JobOverrides::default(), is_scheduled: false }
    }

    /// A job that runs once per scheduled time.
    pub(super) fn cron_job(lock: Lock) -> Self {
        let job = Self::new(lock);
        let lock = job.lock.used_as(LockKind::CronJob);
        Self { lock, own: JobOverrides { max_attempts: Some(1), ..job.own }, is_scheduled: true }
    }

    /// The name, without the client's prefix.
    #[must_use]
    pub fn name(&self) -> &str {
        self.lock.name()
    }

    fn attempts(&self) -> u32 {
        self.own.max_attempts.unwrap_or(ATTEMPTS)
    }

    /// The options of the job's lock, checked, with the client's defaults filled in. No I/O.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-job-validate")?;
    /// assert!(client.job("mail:7").validate()?.renew);
    /// assert_eq!(client.job("mail:7").max_attempts(0).validate().unwrap_err().argument(), Some("max_attempts"));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, whose [`argument`](Error::argument) is the option that is wrong, or `name`.
    #[doc(hidden)]
    pub fn validate(&self) -> Result<&LockOptions, Error> {
        self.own.check()?;
        if self.is_scheduled {
            schedule::check_name(self.name())?;
        }
        self.lock.validate()
    }

    /// Begins an attempt, as soon as no other worker runs the job and its retry delay has passed. Waits for that at most
    /// [`wait`](Job::wait).
    ///
    /// Gives the attempt, which ends by [`Attempt::complete`], [`Attempt::fail`] or a [release](crate::Hold::release); or, of a job
    /// that is done or whose scheduled time is over, its outcome. [`Job::run`] does all of that around a closure.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use locktender::Begun;
    /// # let client = locktender::Client::open("memory://docs-job-begin").unwrap();
    /// match client.job("mail:7").begin().await? {
    ///     Begun::Attempt(attempt) => attempt.complete("\"sent\"").await?,
    ///     Begun::Over(outcome) => println!("done by another: {:?}", outcome.result),
    ///     other => println!("{other:?}"),
    /// }
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call releases the attempt that it may have begun: that one doesn't count.
    ///
    /// # Errors
    /// * `JOB_DEAD`: the last attempt failed, or its worker died. See [`Error::attempts`] and [`Error::last_error`].
    /// * `ACQUIRE_TIMEOUT`: another worker ran the job for all of [`wait`](Job::wait), or the next attempt may not begin yet.
    /// * `INVALID_ARGUMENT`: an option is wrong, or the client has several servers; a scheduled time is more than 5 minutes ahead
    ///   of the server's clock.
    /// * Otherwise as [`Lock::acquire`].
    ///
    /// A job that runs once per scheduled time has neither of the first two: it says them in its outcome.
    pub fn begin(&self) -> Call<Begun> {
        let scheduled_time = || self.is_scheduled.then(|| self.own.scheduled_time()).transpose();
        let scheduled_time = match self.validate().and_then(|_| scheduled_time()) {
            Ok(scheduled_time) => scheduled_time,
            Err(error) => return Call::refused(error),
        };
        let terms = Terms { max_attempts: self.attempts(), retention_ms: wire_millis(self.kept_for()), scheduled_time };
        let job = self.clone();
        self.lock.begin(false, Some(terms), drop, move |acquired| job.begun(acquired, scheduled_time))
    }

    /// Runs the job: begins an attempt, calls `work` with it, and notes how it ended.
    ///
    /// * `work` gives `Ok`: the job is done, and what it gave is the result.
    /// * `work` gives `Err`, or panics: the attempt failed. Another one may begin after the [retry delay](Job::retry_delay), by this
    ///   worker or another; after the last one the job is dead. The error comes back in [`RunError::Failed`].
    /// * The job was done before, or becomes done while this worker waits, or nothing is to run for its scheduled time: its
    ///   outcome, with `ran` false.
    ///
    /// An attempt whose lease is lost while `work` runs is still done, or has failed, if no other worker has begun since. An error that
    /// is the loss itself, as [`check`](crate::Hold::check) gives it, plain or boxed, is no failure of the work: the attempt counts
    /// as one whose lease was lost.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use locktender::RunError;
    /// # let client = locktender::Client::open("memory://docs-job-run").unwrap();
    /// let job = client.job("mail:7");
    /// let failed = job.run(async |_| Err::<(), _>("the mail server is down")).await.unwrap_err();
    /// assert!(matches!(failed, RunError::Failed("the mail server is down")));
    /// let outcome = job.run(async |attempt| Ok::<_, String>(format!("{}", attempt.number()))).await?;
    /// assert_eq!((outcome.attempts, outcome.result.as_deref()), (2, Some("2")));
    /// # Ok::<(), RunError<String>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the future drops `work`, and releases the attempt: it doesn't count.
    ///
    /// # Errors
    /// [`RunError::Lock`] with an error of [`Job::begin`] or [`Attempt::complete`]; [`RunError::Failed`].
    pub async fn run<R: JobResult, E: fmt::Display + 'static>(
        &self,
        work: impl AsyncFnOnce(&Attempt) -> Result<R, E>,
    ) -> Result<JobOutcome, RunError<E>> {
        let attempt = match self.begin().await? {
            Begun::Attempt(attempt) => attempt,
            Begun::Over(outcome) => return Ok(outcome),
        };
        self.lock.enter(&attempt);
        match work(&attempt).await {
            Ok(result) => {
                let result = result.into_text();
                if let Err(error) = attempt.complete(result.clone()).await {
                    if let Some(failed) = attempt.fails_by(&error) {
                        // The first error is the one for the caller.
                        let _ = failed.await;
                    }
                    return Err(error.into());
                }
                Ok(JobOutcome::ran(attempt.number(), result))
            }
            Err(error) => {
                // Its own error is the one for the caller.
                let _ = end_of_failed(&attempt, &error).await;
                Err(RunError::Failed(error))
            }
        }
    }

    /// Inspects the job: its state, its attempts, the worker that runs it, the result or the last error. Changes nothing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use locktender::JobState;
    /// # let client = locktender::Client::open("memory://docs-job-status").unwrap();
    /// let job = client.job("mail:7");
    /// assert_eq!(job.status().await?.state, JobState::New);
    /// job.run(async |_| Ok::<_, String>(())).await?;
    /// assert_eq!(job.status().await?.state, JobState::Done);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call changes nothing.
    ///
    /// # Errors
    /// `UNAVAILABLE`, `DENIED`, `KEY_CONFLICT`, `INVALID_ARGUMENT`, `CLOSED`.
    pub fn status(&self) -> Call<JobStatus> {
        self.ask(Verb::JobStatus, job_status)
    }

    /// Forgets the job's attempts, its result and its errors, so that it runs again. Gives whether there was something to forget.
    ///
    /// For an operator, once the cause of the failures is fixed. While an attempt runs, nothing is forgotten, and the answer is
    /// `false`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-job-reset").unwrap();
    /// let job = client.job("mail:7");
    /// job.run(async |_| Ok::<_, String>(())).await?;
    /// assert!(job.reset().await?);
    /// assert!(job.run(async |_| Ok::<_, String>(())).await?.ran);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Once started it continues.
    ///
    /// # Errors
    /// `UNAVAILABLE`, `DENIED`, `KEY_CONFLICT`, `INVALID_ARGUMENT`, `CLOSED`.
    pub fn reset(&self) -> Call<bool> {
        self.ask(Verb::Reset, job_reset)
    }

    fn ask<T: Send + 'static>(&self, verb: Verb, assess: AssessLock<T>) -> Call<T> {
        self.validate().map_or_else(Call::refused, |_| self.lock.ask(verb, assess))
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("name", &self.name()).field("max_attempts", &self.attempts()).finish_non_exhaustive()
    }
}

/// The end of an attempt whose work failed. The loss of the lease is no failure of the work.
fn end_of_failed<E: fmt::Display + 'static>(attempt: &Attempt, error: &E) -> Call<()> {
    let is_lost = || attempt.check().is_err_and(|lost| lost.code() == Code::LockLost);
    let is_loss = |error: &Error| error.code() == Code::LockLost && error.lock_name() == Some(attempt.name());
    if lock_error(error).is_some_and(is_loss) && is_lost() { attempt.leave() } else { attempt.fail(error) }
}

/// The error of a lock that an error of any type is, plain or boxed.
fn lock_error(error: &dyn Any) -> Option<&Error> {
    type Boxed = Box<dyn std::error::Error>;
    type BoxedSend = Box<dyn std::error::Error + Send + Sync>;
    let boxed = || error.downcast_ref::<Boxed>()?.downcast_ref::<Error>();
    let boxed_send = || error.downcast_ref::<BoxedSend>()?.downcast_ref::<Error>();
    error.downcast_ref::<Error>().or_else(boxed).or_else(boxed_send)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_lock_is_found_plain_and_boxed() {
        let code = |error: &dyn Any| lock_error(error).map(Error::code);
        let lost = || Error::internal(None, "lost");
        let boxed: Box<dyn std::error::Error> = lost().into();
        let boxed_send: Box<dyn std::error::Error + Send + Sync> = lost().into();
        let other: Box<dyn std::error::Error> = "lost".into();
        assert_eq!([code(&lost()), code(&boxed), code(&boxed_send)], [Some(Code::Internal); 3]);
        assert_eq!([code(&other), code(&"lost"), code(&lost().to_string())], [None; 3]);
    }
}
