//! Options of an election: those of its lock.

use std::sync::Arc;
use std::time::Duration;

use super::Election;
use crate::api::setters::{setters, setters_of_its_lock};
use crate::options::Wait;

setters_of_its_lock! { Election }

setters! { Election, with_lock:
    /// How long a leader that dies blocks the next one: [`Lock::ttl`](crate::Lock::ttl).
    ttl(ttl: Duration) |lock| lock.ttl(ttl);

    /// How long a campaign waits while another one leads: [`Lock::wait`](crate::Lock::wait).
    ///
    /// [`Election::lead`] waits for ever unless this is set for the election itself; the client's default doesn't count there.
    wait(wait: impl Into<Wait>) |lock| lock.wait(wait);

    /// Whether the leadership is renewed in the background: [`Lock::renew`](crate::Lock::renew).
    renew(renew: bool) |lock| lock.renew(renew);

    /// The longest a term lasts before it is lost: [`Lock::max_hold`](crate::Lock::max_hold).
    max_hold(span: impl Into<Option<Duration>>) |lock| lock.max_hold(span);

    /// Whether candidates lead strictly in the order in which they came: [`Lock::fair`](crate::Lock::fair).
    fair(fair: bool) |lock| lock.fair(fair);

    /// How long the key outlives a term that was lost: [`Lock::grace`](crate::Lock::grace).
    grace(grace: Duration) |lock| lock.grace(grace);

    /// The family under which metrics and events count the election: [`Lock::family`](crate::Lock::family).
    family(family: impl Into<Arc<str>>) |lock| lock.family(family);
}
