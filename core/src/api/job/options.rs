//! Options of a job: those of its lock, and its own.

use std::time::{Duration, SystemTime};

use super::schedule::KEPT_BEYOND_LATENESS;
use super::{Job, RETENTION};
use crate::api::setters::{setters, setters_of_its_lock};
use crate::error::Error;
use crate::options::{JobOverrides, MAX_SPAN, Overlap, Wait};

impl Job {
    fn set(mut self, set: impl FnOnce(&mut JobOverrides)) -> Self {
        set(&mut self.own);
        self
    }

    fn scheduled(self, set: impl FnOnce(&mut JobOverrides)) -> Self {
        Self { is_scheduled: true, ..self.set(set) }
    }

    /// This job, whose options are valid, with the scheduled time that is meant now; for who has to name that.
    #[doc(hidden)]
    pub fn at_scheduled_time(self) -> Result<(Self, SystemTime), Error> {
        let (at_ms, late) = (self.own.scheduled_time()?.at_ms, self.own.latest());
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
        Ok((self.at(at).max_lateness(late.min(MAX_SPAN)), at))
    }

    /// For how long the job's record is kept.
    pub(super) fn kept_for(&self) -> Duration {
        let least = if self.is_scheduled { self.own.latest() + KEPT_BEYOND_LATENESS } else { Duration::ZERO };
        self.own.retention.unwrap_or(RETENTION).max(least)
    }
}

setters_of_its_lock! { Job }

setters! { Job, set:
    /// How many attempts may begin before the job is dead.
    ///
    /// Default 3, and 1 for a job of [`Client::cron_job`](crate::Client::cron_job); at least 1. The first worker that asks fixes it
    /// for the job; a client that names another number gets a warning event.
    ///
    /// ```
    /// # use locktender::Code;
    /// # let client = locktender::Client::open("memory://docs-job-max-attempts")?;
    /// let job = client.job("mail:7").max_attempts(1);
    /// let _ = job.run_blocking(|_| Err::<(), _>("no"));
    /// assert_eq!(job.begin_blocking().unwrap_err().code(), Code::JobDead);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    max_attempts(max_attempts: u32) |own| own.max_attempts = Some(max_attempts);

    /// How long after a failed attempt the next one may begin: twice as long after each further failure, up to an hour.
    ///
    /// Default 1 s; at most 1 h. The server counts the time. A worker that died is followed at once when its lease ends.
    retry_delay(retry_delay: Duration) |own| own.retry_delay = Some(retry_delay);

    /// For how long a job that is done or dead is remembered. A worker that asks later runs it again.
    ///
    /// Default 24 h; from 1 s to 366 days. With a scheduled time it is at least a day longer than
    /// [`max_lateness`](Job::max_lateness).
    retention(retention: Duration) |own| own.retention = Some(retention);

    /// Several options of its own at once; an option that is `None` keeps its value.
    #[doc(hidden)]
    overrides(given: JobOverrides) |own| *own = given.or(own);
}

setters! { Job, with_lock:
    /// How long the lease of an attempt lives without a renewal, and so how long a dead worker blocks the next one:
    /// [`Lock::ttl`](crate::Lock::ttl).
    ttl(ttl: Duration) |lock| lock.ttl(ttl);

    /// How long this worker waits as a backup while another one runs the job: [`Lock::wait`](crate::Lock::wait).
    ///
    /// Zero is one try, which fails with `ACQUIRE_TIMEOUT` if another worker runs the job.
    wait(wait: impl Into<Wait>) |lock| lock.wait(wait);
}

setters! {
    /// Options of a job that runs once per scheduled time. Each of them makes any job one: as
    /// [`Client::cron_job`](crate::Client::cron_job).
    Job, scheduled:
    /// The scheduled time: the time for which the scheduler planned this run, not the time at which it begins.
    ///
    /// Clocks of different machines then don't matter: each names the same time. Default: the time of the call by this machine's
    /// clock, rounded down to a multiple of [`every`](Job::every), one of which must be given. From the year 2000 on; at most 5 minutes ahead of the server.
    ///
    /// ```
    /// # use std::time::{Duration, SystemTime};
    /// # use locktender::NotRunReason;
    /// # let client = locktender::Client::open("memory://docs-job-at")?;
    /// # let planned = SystemTime::now();
    /// let run = |planned| client.cron_job("nightly").at(planned).run_blocking(|_| Ok::<_, String>(()));
    /// assert!(run(planned)?.ran);
    /// assert_eq!(run(planned)?.reason, Some(NotRunReason::Done));
    /// assert_eq!(run(planned - Duration::from_secs(60))?.reason, Some(NotRunReason::Missed));
    /// # Ok::<(), locktender::RunError<String>>(())
    /// ```
    at(scheduled_time: SystemTime) |own| own.at = Some(scheduled_time);

    /// How far scheduled times are apart, without [`at`](Job::at): the time of a call is rounded down to a multiple of it, counted
    /// from 1970-01-01 00:00 UTC.
    ///
    /// A timer that fires up to a second too early still counts for the time that was meant. No default: it must be longer than the
    /// replicas may begin apart, and only you know that. From 1 s to 366 days.
    every(every: Duration) |own| own.every = Some(every);

    /// How long ago a scheduled time may be, by the server's clock, and still run. With [`every`](Job::every) it counts from the
    /// end of the slot to which now is rounded. The record is kept for a day longer.
    ///
    /// Default 24 h; from 1 s to 366 days.
    max_lateness(max_lateness: Duration) |own| own.max_lateness = Some(max_lateness);

    /// What a scheduled time does while the work of an earlier one still runs. Default [`Overlap::Skip`].
    on_overlap(on_overlap: Overlap) |own| own.on_overlap = Some(on_overlap);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_forgets_can_not_run_any_more() {
        let client = crate::Client::open("memory://kept-beyond-late").unwrap();
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        assert_eq!(client.job("x").kept_for(), hours(24));
        assert_eq!(client.cron_job("x").kept_for(), hours(48));
        assert_eq!(client.cron_job("x").max_lateness(hours(1)).kept_for(), hours(25));
        assert_eq!(client.cron_job("x").max_lateness(hours(1)).every(hours(7 * 24)).kept_for(), hours(25 + 7 * 24));
        assert_eq!(client.cron_job("x").max_lateness(hours(1)).own.retention, None);
    }
}
