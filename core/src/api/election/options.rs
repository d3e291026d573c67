//! Options of an election: those of its lock.

use std::sync::Arc;
use std::time::Duration;

use super::Election;
use crate::api::lock::Lock;
use crate::options::{LockOverrides, Wait};

impl Election {
    fn with_lock(self, set: impl FnOnce(Lock) -> Lock) -> Self {
        Self { lock: set(self.lock), ..self }
    }

    /// How long a leader that dies blocks the next one: [`Lock::ttl`](crate::Lock::ttl).
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        self.with_lock(|lock| lock.ttl(ttl))
    }

    /// How long a campaign waits while another one leads: [`Lock::wait`](crate::Lock::wait).
    ///
    /// [`Election::lead`] waits for ever unless this is set for the election itself; the client's default doesn't count there.
    #[must_use]
    pub fn wait(self, wait: impl Into<Wait>) -> Self {
        self.with_lock(|lock| lock.wait(wait))
    }

    /// Whether the leadership is renewed in the background: [`Lock::renew`](crate::Lock::renew).
    #[must_use]
    pub fn renew(self, renew: bool) -> Self {
        self.with_lock(|lock| lock.renew(renew))
    }

    /// The longest a term lasts before it is lost: [`Lock::max_hold`](crate::Lock::max_hold).
    #[must_use]
    pub fn max_hold(self, span: impl Into<Option<Duration>>) -> Self {
        self.with_lock(|lock| lock.max_hold(span))
    }

    /// Whether candidates lead strictly in the order in which they came: [`Lock::fair`](crate::Lock::fair).
    #[must_use]
    pub fn fair(self, fair: bool) -> Self {
        self.with_lock(|lock| lock.fair(fair))
    }

    /// How long the key outlives a term that was lost: [`Lock::grace`](crate::Lock::grace).
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        self.with_lock(|lock| lock.grace(grace))
    }

    /// The family under which metrics and events count the election: [`Lock::family`](crate::Lock::family).
    #[must_use]
    pub fn family(self, family: impl Into<Arc<str>>) -> Self {
        self.with_lock(|lock| lock.family(family))
    }

    /// The caller's task, as a number: [`Lock::caller`](crate::Lock::caller).
    #[must_use]
    pub fn caller(self, task: u64) -> Self {
        self.with_lock(|lock| lock.caller(task))
    }

    /// [`Lock::caller_in`](crate::Lock::caller_in).
    #[doc(hidden)]
    #[must_use]
    pub fn caller_in(self, task: u64, runs: impl FnOnce(u64) -> bool) -> Self {
        self.with_lock(|lock| lock.caller_in(task, runs))
    }

    /// Several options of the lock at once; an option that is `None` keeps its value.
    #[doc(hidden)]
    #[must_use]
    pub fn settings(self, settings: LockOverrides) -> Self {
        self.with_lock(|lock| lock.settings(settings))
    }
}
