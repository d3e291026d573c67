//! What a binding to another language needs and a Rust program does not: the words of its language, processes that fork, and the
//! I/O of its own event loop. It may change in any release.

pub use crate::io::watch::{Driver, Watch};
pub use crate::options::{Place, instead_of, milliseconds, seconds, suspicious};
pub use crate::process::{PerProcess, Process};
pub use crate::wording::{Language, Text};

/// Locks between threads that survive a fork.
pub mod sync {
    pub use crate::sync::*;
}
