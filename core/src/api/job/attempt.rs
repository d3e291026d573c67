//! Attempt: one run of a job's work.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::{Job, JobOutcome, NotRunReason, RETRY_DELAY};
use crate::api::hold::{Acquired, Hold};
use crate::error::{Code, Error};
use crate::io::call::Call;
use crate::io::reactor::Io;
use crate::op::job::{AttemptNumber, Ending, ScheduledTime};
use crate::options::{check_span, wire_millis};
use crate::protocol::Input;
use crate::session::caller::Caller;
use crate::wording::Text;

/// The longest result, in bytes.
pub const MOST_RESULT: usize = 64 * 1024;

/// The longest error text that is noted, in bytes.
pub const MOST_ERROR: usize = 1_024;

/// The longest delay before another attempt.
const LONGEST_DELAY: Duration = Duration::from_secs(3600);

/// What [`Job::begin`] gives.
#[derive(Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "it is moved once, and an attempt is the usual case")]
pub enum Begun {
    /// The attempt: the work is this worker's.
    Attempt(Attempt),
    /// The job is done, or nothing is to run for its scheduled time: its outcome.
    Over(JobOutcome),
}

/// The result of a job's work: JSON text for people and programs of any language, of at most 64 KiB; or nothing.
pub trait JobResult {
    /// The text; `None` for no result.
    fn into_text(self) -> Option<String>;
}

impl JobResult for () {
    fn into_text(self) -> Option<String> {
        None
    }
}

impl JobResult for String {
    fn into_text(self) -> Option<String> {
        Some(self)
    }
}

impl JobResult for &str {
    fn into_text(self) -> Option<String> {
        Some(self.to_owned())
    }
}

impl<T: JobResult> JobResult for Option<T> {
    fn into_text(self) -> Option<String> {
        self.and_then(JobResult::into_text)
    }
}

/// One attempt at a job: a [`Hold`], with its number.
///
/// [`Attempt::complete`] and [`Attempt::fail`] record how it ended. [`Hold::release`] ends it as if it had never begun: it
/// doesn't count, and another worker may begin at once, unless the lease was lost before (`expired`, `taken`). Dropping it gives it
/// back, too, in the background. Dropping it in a panic notes it as failed.
pub struct Attempt {
    held: Hold,
    number: AttemptNumber,
    retry_delay: Duration,
}

impl Job {
    pub(super) fn begun(&self, acquired: Result<Acquired, Error>, scheduled_time: Option<ScheduledTime>) -> Result<Begun, Error> {
        let unexpected = || Error::internal(Some(self.name()), "an attempt began without a number");
        match acquired {
            Ok(Acquired::Held(held)) => {
                let number = held.grant.attempt.ok_or_else(unexpected)?;
                Ok(Begun::Attempt(Attempt { held, number, retry_delay: self.own.retry_delay.unwrap_or(RETRY_DELAY) }))
            }
            Ok(Acquired::Over(end)) => JobOutcome::found(self.name(), end, scheduled_time).map(Begun::Over),
            Ok(Acquired::Busy) => Err(unexpected()),
            // It was a backup to the end of its wait.
            Err(error) if error.code() == Code::AcquireTimeout && scheduled_time.is_some() => {
                Ok(Begun::Over(JobOutcome::not_run(NotRunReason::Running)))
            }
            Err(error) => Err(error),
        }
    }
}

impl Attempt {
    /// The number of this attempt; the first is 1.
    ///
    /// ```
    /// # use locktender::Begun;
    /// # let client = locktender::Client::open("memory://docs-attempt-number")?;
    /// let Begun::Attempt(attempt) = client.job("mail:7").begin_blocking()? else { panic!("it is new") };
    /// assert_eq!((attempt.number(), attempt.max_attempts(), attempt.is_last()), (1, 3, false));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number.number.into()
    }

    /// How many attempts may begin.
    #[must_use]
    pub fn max_attempts(&self) -> u32 {
        self.number.max.into()
    }

    /// Whether the job is dead if this attempt fails.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.number.number >= self.number.max
    }

    /// Notes that the job is done, with its result, and releases the lock. No other attempt begins.
    ///
    /// It also succeeds just after the lease was lost, if no other attempt has begun since.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use locktender::Begun;
    /// # let client = locktender::Client::open("memory://docs-attempt-complete").unwrap();
    /// let Begun::Attempt(attempt) = client.job("mail:7").begin().await? else { panic!("it is new") };
    /// attempt.complete("{\"sent\": 3}").await?;
    /// assert_eq!(client.job("mail:7").status().await?.result.as_deref(), Some("{\"sent\": 3}"));
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Once started it continues, also if the call is dropped.
    ///
    /// # Errors
    /// * `LOCK_LOST`: the lease was lost, and another attempt has begun or ended since; see [`Error::loss`]. Nothing is noted.
    /// * `NOT_HELD`: the attempt has ended before.
    /// * `INVALID_ARGUMENT`: the result is longer than 64 KiB. The attempt continues.
    /// * `UNAVAILABLE`: the outcome is still unknown after the client's
    ///   [`unavailable_after`](crate::ClientBuilder::unavailable_after). Call it again to learn the outcome.
    pub fn complete(&self, result: impl JobResult) -> Call<()> {
        let result = result.into_text().unwrap_or_default();
        if result.len() > MOST_RESULT {
            let why =
                Text::new("a result has at most 65536 bytes of JSON: store a larger one elsewhere, and give its address", []);
            return Call::refused(Error::invalid("result", result, why));
        }
        self.end(Ending::Done { result: result.into() })
    }

    /// Notes that this attempt failed, and releases the lock. After the job's [retry delay](Job::retry_delay) another attempt may
    /// begin; if this was the last one, the job is dead.
    ///
    /// The first 1,024 bytes of the error are kept.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use locktender::{Begun, JobState};
    /// # let client = locktender::Client::open("memory://docs-attempt-fail").unwrap();
    /// let Begun::Attempt(attempt) = client.job("mail:7").begin().await? else { panic!("it is new") };
    /// attempt.fail("the mail server is down").await?;
    /// assert_eq!(client.job("mail:7").status().await?.state, JobState::Retrying);
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// As [`Attempt::complete`].
    ///
    /// # Errors
    /// As [`Attempt::complete`], without `INVALID_ARGUMENT`.
    pub fn fail(&self, error: impl fmt::Display) -> Call<()> {
        self.failed(&error, Some(self.delay()))
    }

    /// [`Attempt::fail`], with a delay of its own before the next attempt: at most 1 h.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::Begun;
    /// # let client = locktender::Client::open("memory://docs-attempt-fail-in")?;
    /// let Begun::Attempt(attempt) = client.job("mail:7").begin_blocking()? else { panic!("it is new") };
    /// attempt.fail_in("too many requests", Duration::from_secs(60)).blocking()?;
    /// let retry_in = client.job("mail:7").status_blocking()?.retry_in.expect("it failed");
    /// assert!(retry_in > Duration::from_secs(50));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Cancel safety
    /// As [`Attempt::complete`].
    ///
    /// # Errors
    /// As [`Attempt::fail`]; `INVALID_ARGUMENT` for a longer delay.
    pub fn fail_in(&self, error: impl fmt::Display, retry_in: Duration) -> Call<()> {
        check_span("retry_in", retry_in).map_or_else(Call::refused, |()| self.failed(&error, Some(retry_in)))
    }

    /// [`Attempt::fail`], of a failure that no other attempt can help: the job is dead, whatever [`max_attempts`](Job::max_attempts)
    /// allows.
    ///
    /// ```
    /// # use locktender::{Begun, JobState};
    /// # let client = locktender::Client::open("memory://docs-attempt-fail-permanently")?;
    /// let Begun::Attempt(attempt) = client.job("mail:7").begin_blocking()? else { panic!("it is new") };
    /// attempt.fail_permanently("there is no such address").blocking()?;
    /// assert_eq!(client.job("mail:7").status_blocking()?.state, JobState::Dead);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Cancel safety
    /// As [`Attempt::complete`].
    ///
    /// # Errors
    /// As [`Attempt::fail`].
    pub fn fail_permanently(&self, error: impl fmt::Display) -> Call<()> {
        self.failed(&error, None)
    }

    /// The failure of an attempt whose result can't be noted, unless it has ended.
    pub(super) fn fails_by(&self, error: &Error) -> Option<Call<()>> {
        self.held.is_valid().then(|| self.fail(error))
    }

    /// The delay before the next attempt. Attempts before it that died don't count.
    fn delay(&self) -> Duration {
        let doubled = 1_u32.checked_shl(self.number.failures.into()).unwrap_or(u32::MAX);
        self.retry_delay.saturating_mul(doubled).min(LONGEST_DELAY)
    }

    fn failed(&self, error: &dyn fmt::Display, retry_in: Option<Duration>) -> Call<()> {
        self.end(failure(error, retry_in))
    }

    fn end(&self, ending: Ending) -> Call<()> {
        let actor = Arc::clone(&self.held.actor);
        self.held.call(move |responder| {
            actor.call(Caller::EndOfAttempt(responder), |call| Input::EndAttempt(call, ending));
        })
    }
}

fn failure(error: &dyn fmt::Display, retry_in: Option<Duration>) -> Ending {
    let mut error = error.to_string();
    let end = (0..=MOST_ERROR.min(error.len())).rev().find(|at| error.is_char_boundary(*at)).unwrap_or(0);
    error.truncate(end);
    Ending::Failed { error: error.into(), retry_in_ms: retry_in.map(wire_millis) }
}

impl Deref for Attempt {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.held
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Else a job that makes its worker panic would begin without end.
            drop(self.failed(&"the work panicked", Some(self.delay())).then_by(Io::Background, |_| ()));
        }
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("number", &self.number()).field("held", &self.held).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_noted_up_to_its_first_kilobyte_of_whole_letters() {
        for (given, bytes) in
            [("no".to_owned(), 2), ("x".repeat(5_000), 1_024), ("é".repeat(5_000), 1_024), ("鍵".repeat(500), 1_023)]
        {
            let Ending::Failed { error, .. } = failure(&given, Some(Duration::ZERO)) else { panic!("it is a failure") };
            assert_eq!(&*error, &given[..bytes]);
        }
    }
}
