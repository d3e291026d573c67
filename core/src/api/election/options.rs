//! Options of an election: those of its lock.

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
    /// [`Election::lead`] waits without end unless this is set for the election itself; the client's default doesn't count there.
    wait(wait: impl Into<Wait>) |lock| lock.wait(wait);
}
