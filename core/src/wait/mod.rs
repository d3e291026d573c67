//! Waiting for a busy or unreachable lock.
//!
//! A waiter lines up in the lock's queue on the servers, and is told when its turn comes; what it is told is a hint, and a
//! timer stands behind every one. The waiters of one process on one lock form a [line](Lines): only its front talks to the
//! servers, on behalf of all. Pure: the shells and the simulation drive the same code.

mod foreign;
mod hint;
mod lines;
mod passed;
mod pause;
mod slot;
mod trouble;

pub(crate) use foreign::is_foreign;
pub use hint::{Hint, Hinted};
pub use lines::{Departure, Lines, Told};
pub(crate) use pause::{after_busy, after_expiry, after_failure, after_foreign, after_hint, after_split, soon};
pub use slot::{Hearing, Seat, Slot, Turn};
