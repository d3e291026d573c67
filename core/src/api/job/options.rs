//! Options of a job: those of its lock, and its own.

use std::time::Duration;

use super::Job;
use crate::op::job::Terms;
use crate::options::{LockOverrides, Wait, wire_millis};

impl Job {
    fn with_lock(self, set: impl FnOnce(crate::Lock) -> crate::Lock) -> Self {
        Self { lock: set(self.lock), ..self }
    }

    fn with_terms(mut self) -> Self {
        let terms = Terms { max_attempts: self.max_attempts, keep_ms: wire_millis(self.keep) };
        self.lock = self.lock.of_job(terms);
        self
    }

    /// How many attempts may begin before the job is dead.
    ///
    /// Default 3, at least 1. The first worker that asks fixes it for the job; a client that names another number gets a warning
    /// event.
    ///
    /// ```
    /// # use locktender::Code;
    /// # let client = locktender::Client::open("memory://docs-job-max-attempts")?;
    /// let job = client.job("mail:7").max_attempts(1);
    /// let _ = job.run_blocking(|_| Err::<(), _>("no"));
    /// assert_eq!(job.begin_blocking().unwrap_err().code(), Code::JobDead);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = max_attempts;
        self.with_terms()
    }

    /// How long after a failed attempt the next one may begin: twice as long after each further one, up to an hour.
    ///
    /// Default none; at most 1 h. The server counts the time. A worker that died is followed at once when its lease ends.
    #[must_use]
    pub fn retry_delay(mut self, retry_delay: Duration) -> Self {
        self.retry_delay = retry_delay;
        self
    }

    /// For how long a job that is done or dead is remembered. A worker that asks later runs it again.
    ///
    /// Default 24 h; from 1 s to 366 days.
    #[must_use]
    pub fn keep(mut self, keep: Duration) -> Self {
        self.keep = keep;
        self.with_terms()
    }

    /// How long the lease of an attempt lives without a renewal, and so how long a dead worker blocks the next one:
    /// [`Lock::ttl`](crate::Lock::ttl).
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        self.with_lock(|lock| lock.ttl(ttl))
    }

    /// How long this worker waits as a backup while another one runs the job: [`Lock::wait`](crate::Lock::wait).
    ///
    /// Zero is one try, which fails with `ACQUIRE_TIMEOUT` if another worker runs the job.
    #[must_use]
    pub fn wait(self, wait: impl Into<Wait>) -> Self {
        self.with_lock(|lock| lock.wait(wait))
    }

    /// Whether the lease is renewed in the background: [`Lock::renew`](crate::Lock::renew).
    #[must_use]
    pub fn renew(self, renew: bool) -> Self {
        self.with_lock(|lock| lock.renew(renew))
    }

    /// The longest an attempt runs before its lease is lost: [`Lock::max_hold`](crate::Lock::max_hold).
    #[must_use]
    pub fn max_hold(self, span: impl Into<Option<Duration>>) -> Self {
        self.with_lock(|lock| lock.max_hold(span))
    }

    /// Whether workers begin strictly in the order in which they came: [`Lock::fair`](crate::Lock::fair).
    #[must_use]
    pub fn fair(self, fair: bool) -> Self {
        self.with_lock(|lock| lock.fair(fair))
    }

    /// The caller's task, as a number: [`Lock::caller`](crate::Lock::caller).
    #[must_use]
    pub fn caller(self, task: u64) -> Self {
        self.with_lock(|lock| lock.caller(task))
    }

    /// Several options of the lock at once; an option that is `None` keeps its value.
    #[doc(hidden)]
    #[must_use]
    pub fn settings(self, settings: LockOverrides) -> Self {
        self.with_lock(|lock| lock.settings(settings))
    }
}
