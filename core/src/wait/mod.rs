//! Waiting for a busy or unreachable lock.
//!
//! A waiter lines up in the lock's queue on the servers, and is told when its turn comes; what it is told is a hint, and a
//! timer stands behind every one. The waiters of one process on one lock form a [line](LocalQueues): only its front talks to the
//! servers, on behalf of all. An acquire that may wait joins that line before its first attempt, also for a lock that is free: the
//! first of a line tries at once, and whoever comes meanwhile asks no server. One attempt (a wait of zero) joins none.
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
pub use hint::{Hint, Hinted};
pub use local_queues::{LeaveReason, LocalQueues, Wakeup};
pub(crate) use pause::{after_busy, after_expiry, after_failure, after_foreign, after_hint, after_split, soon};
pub use slot::{ListenState, Role, Seat, Slot};
