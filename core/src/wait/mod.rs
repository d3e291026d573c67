//! Waiting: how acquires wait for a busy or unreachable lock.
//!
//! A waiter joins the lock's queue on the servers, and is notified when the lock is free or kept for it. A notice is a hint, and
//! behind every hint there is a timer. The waiters of one process on one lock form a [local queue](LocalQueues): only its first
//! waiter talks to the servers, on behalf of all.
//!
//! An acquire that may wait joins the local queue before its first attempt, unless it takes the fast path: nobody of this process wants
//! the lock, and the server may have it free. The first waiter tries at once, and waiters that come meanwhile ask no server. An acquire
//! with one attempt (a wait of zero) joins no queue.
//!
//! Pure: the shells and the simulation drive the same code.

mod foreign;
mod hint;
mod local_queues;
mod passed;
mod pause;
mod shared_outage;
mod slot;

pub(crate) use foreign::is_foreign;
pub use hint::{Hint, Hinted, Mode};
pub(crate) use local_queues::queue_key_of_several;
pub use local_queues::{LeaveReason, LocalQueues, Wakeup};
pub(crate) use pause::{after_busy, after_expiry, after_failure, after_foreign, after_hint, after_split, soon};
pub use slot::{ListenState, Role, Slot, Waiter};
