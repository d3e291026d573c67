//! Host: functions for a binding to another language. They are the words of its language, processes that fork, and the I/O of its
//! own event loop. It may change in any release.
//!
//! Methods that only bindings need are hidden methods of the public types: `Held::enter`, `Call::then_driven`, `Client::warn`, …

use std::sync::Arc;
use std::time::Duration;

pub use crate::api::election::Leading;
use crate::api::job::Attempt;
pub use crate::api::job::schedule::check_schedule;
use crate::api::job::terms::check_terms;
use crate::error::{Error, LossReason};
pub use crate::event::line_protocol::Point;
pub use crate::event::queue::{EventQueue, Queued};
pub use crate::io::watch::{Driver, Watch};
use crate::name::{Keys, Kind, Label, LockKind};
use crate::options::MIN_KEEP;
pub use crate::options::{LockOverrides, Place, instead_of, instead_of_member, milliseconds, seconds, suspicious};
pub use crate::process::{PerProcess, Process};
pub use crate::session::trace::trace_next;
pub use crate::wording::{Language, Text};

/// Checks the name of a lock without a client.
///
/// # Errors
/// `INVALID_ARGUMENT` if it can't be the name of a lock.
pub fn check_name(name: &str) -> Result<(), Error> {
    Keys::new(Kind::Exclusive, "", name, true).map(|_| ())
}

/// The family of the locks that a template makes.
#[must_use]
pub fn family(template: &str) -> Arc<str> {
    Label::new(LockKind::Lock, template).family
}

/// Refuses options of a job that are out of their bounds. One that wasn't given has its default.
///
/// # Errors
/// `INVALID_ARGUMENT`, as of [`Job::validate`](crate::Job::validate).
pub fn check_job(max_attempts: Option<u32>, retry_delay: Option<Duration>, keep: Option<Duration>) -> Result<(), Error> {
    check_terms(max_attempts.unwrap_or(1), retry_delay.unwrap_or_default(), keep.unwrap_or(MIN_KEEP))
}

/// Whether an end of the attempt is still to be noted, also if its lease was lost. A client that was closed has given it back.
#[must_use]
pub fn is_open(attempt: &Attempt) -> bool {
    match attempt.check() {
        Ok(()) => true,
        Err(error) => error.loss().is_some_and(|loss| loss.reason != LossReason::Closed),
    }
}

/// Locks between threads that survive a fork.
pub mod sync {
    pub use crate::sync::*;
}

/// What the program `locktender` needs beside the public API.
pub mod cli {
    pub use crate::api::client::Markers;
    pub use crate::api::job::{MOST_ERROR, MOST_RESULT};
    pub use crate::api::lock::may_be_no_lock;
    pub use crate::entropy::draw;
    pub use crate::error::quoted::{is_plain, on_one_line, quoted};
    pub use crate::event::Level;
    pub use crate::machine::marker::{Shown, read as read_marker};
    pub use crate::name::MAX_NAME_BYTES;
    pub use crate::op::history::HISTORY_LENGTH;
    pub use crate::op::holder::is_claim;
    pub use crate::owner::{Fields, host_name};
}
