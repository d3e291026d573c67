//! Host: functions for a binding to another language. They are the words of its language, processes that fork, and the I/O of its
//! own event loop. It may change in any release.
//!
//! Methods that only bindings need are hidden methods of the public types: `Held::enter`, `Call::then_driven`, `Client::warn`, …

use crate::error::Error;
pub use crate::io::watch::{Driver, Watch};
use crate::name::{Keys, Kind};
pub use crate::options::{LockOverrides, Place, instead_of, milliseconds, seconds, suspicious};
pub use crate::process::{PerProcess, Process};
pub use crate::wording::{Language, Text};

/// Checks the name of a lock without a client.
///
/// # Errors
/// `INVALID_ARGUMENT` if it can't be the name of a lock.
pub fn check_name(name: &str) -> Result<(), Error> {
    Keys::new(Kind::Exclusive, "", name, true).map(|_| ())
}

/// Locks between threads that survive a fork.
pub mod sync {
    pub use crate::sync::*;
}
