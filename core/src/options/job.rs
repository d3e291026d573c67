//! The options of a job: one list, as of a lock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::check_span;
use super::value::{Value, from_value, overrides};
use crate::clock::millis;
use crate::error::Error;
use crate::wording::Text;

/// The most attempts that a job may have.
const MOST_ATTEMPTS: u32 = 10_000;

/// The years in which a scheduled time may lie: from 2000 to 9999. An earlier one is probably a number in another unit.
const SCHEDULED_TIMES: std::ops::Range<u64> = 946_684_800_000..253_402_300_800_000;

/// The choices of [`Overlap`].
const OVERLAPS: &str = "must be \"skip\" or \"wait\"";

/// What a scheduled time does while the work of an earlier one still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overlap {
    /// It is left out.
    #[default]
    Skip,
    /// It waits, as long as the job's [`wait`](crate::Job::wait) says.
    Wait,
}

impl Overlap {
    /// The choice of this name.
    pub(super) fn named(name: &str) -> Result<Self, Error> {
        match name {
            "skip" => Ok(Self::Skip),
            "wait" => Ok(Self::Wait),
            other => Err(Error::invalid("on_overlap", other, OVERLAPS)),
        }
    }
}

from_value! {
    Overlap: Value::Text(name) => Self::named(&name)?;
}

overrides! {
    /// The options that a user gave for one job, besides those of its lock. What is `None` has its default.
    pub struct JobOverrides {
        /// See [`Job::at`](crate::Job::at).
        at(Instant): SystemTime;
        /// See [`Job::every`](crate::Job::every).
        every(Time): Duration;
        /// See [`Job::max_lateness`](crate::Job::max_lateness).
        max_lateness(Time): Duration;
        /// See [`Job::on_overlap`](crate::Job::on_overlap).
        on_overlap(Choice(OVERLAPS)): Overlap;
        /// See [`Job::max_attempts`](crate::Job::max_attempts).
        max_attempts(Count(1, MOST_ATTEMPTS)): u32;
        /// See [`Job::retry_delay`](crate::Job::retry_delay).
        retry_delay(Time): Duration;
        /// See [`Job::retention`](crate::Job::retention).
        retention(Time): Duration;
    }
}

impl JobOverrides {
    /// Whether a job has the option of that name, or one that runs once per scheduled time.
    #[must_use]
    pub fn has(name: &str, is_cron_job: bool) -> bool {
        match name {
            "at" | "every" | "max_lateness" | "on_overlap" => is_cron_job,
            "retention" => !is_cron_job,
            _ => true,
        }
    }

    /// Refuses what is out of its bounds.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, as of [`Job::validate`](crate::Job::validate).
    pub fn check(&self) -> Result<(), Error> {
        if let Some(attempts) = self.max_attempts.filter(|attempts| !(1..=MOST_ATTEMPTS).contains(attempts)) {
            return Err(Error::invalid("max_attempts", attempts, "must be from 1 to 10000"));
        }
        for (option, span) in [
            ("retry_delay", self.retry_delay),
            ("retention", self.retention),
            ("every", self.every),
            ("max_lateness", self.max_lateness),
        ] {
            span.map_or(Ok(()), |span| check_span(option, span))?;
        }
        match self.at.map(since_epoch).filter(|at_ms| !SCHEDULED_TIMES.contains(at_ms)) {
            Some(at_ms) => {
                let why = Text::new("must be a time from the year 2000 to 9999; as a number it counts the {since_1970}", []);
                Err(Error::invalid_time("at", Duration::from_millis(at_ms), why))
            }
            None => Ok(()),
        }
    }
}

/// The milliseconds since 1970.
pub(crate) fn since_epoch(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, millis)
}
