//! Host: functions for a binding to another language. They are the words of its language, processes that fork, and the I/O of its
//! own event loop. It may change in any release.
//!
//! Methods that only bindings need are hidden methods of the public types: `Held::enter`, `Call::then_driven`, `Client::warn`, …

pub use crate::io::watch::{Driver, Watch};
pub use crate::options::{LockOverrides, Place, instead_of, milliseconds, seconds, suspicious};
pub use crate::process::{PerProcess, Process};
pub use crate::wording::{Language, Text};

/// Locks between threads that survive a fork.
pub mod sync {
    pub use crate::sync::*;
}
