//! Host: functions for a binding to another language. They are the words of its language, processes that fork, and the I/O of its
//! own event loop. It may change in any release.
//!
//! Methods that only bindings need are hidden methods of the public types: `Hold::enter`, `Call::then_driven`, `Client::warn`, …

mod follower;

pub use self::follower::{AttributeValue, Attributes, Follower, Record, Span};

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use crate::api::election::Leading;
use crate::api::job::{Attempt, Begun, JobOutcome};
use crate::error::{Error, LossReason};
pub use crate::event::Field;
pub use crate::event::line_protocol::line as line_protocol;
pub use crate::event::queue::{EventQueue, Queued};
use crate::event::{EventKind, LockEvent};
use crate::io::call::Call;
pub use crate::io::watch::{Driver, Watch};
use crate::name::{Keys, Kind, Label, LockKind};
pub use crate::options::{JobOverrides, LockOverrides, OptionRow, Options, Value, ValueKind};
pub use crate::options::{
    Place, instead_of, instead_of_event, instead_of_member, instead_of_member_of_several, milliseconds, options_of, seconds,
    suspicious,
};
pub use crate::process::{PerProcess, Process};
pub use crate::wording::{Language, Text};

/// An event without any fields: it has their names and kinds.
#[must_use]
pub fn empty_event() -> LockEvent {
    LockEvent::new(EventKind::Warning)
}

/// Checks the name of a lock without a client.
///
/// # Errors
/// `INVALID_ARGUMENT` if it can't be the name of a lock.
pub fn check_name(name: &str) -> Result<(), Error> {
    Keys::new(Kind::Exclusive, "", name, true).map(|_| ())
}

/// The category of the locks that a template makes.
#[must_use]
pub fn category(template: &str) -> Arc<str> {
    Label::new(LockKind::Lock, template).category
}

/// The attempt that has begun, or the outcome of a job for which none has.
pub fn begun(begun: Begun) -> Result<Attempt, JobOutcome> {
    match begun {
        Begun::Attempt(attempt) => Ok(attempt),
        Begun::Over(outcome) => Err(outcome),
    }
}

/// Whether an end of the attempt is still to be noted, also if its lease was lost. A client that was closed has given it back.
#[must_use]
pub fn is_open(attempt: &Attempt) -> bool {
    match attempt.check() {
        Ok(()) => true,
        Err(error) => error.loss().is_some_and(|loss| loss.reason != LossReason::Closed),
    }
}

/// The longest time for which an exit waits for the servers, for any number of slow clients.
pub const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Waits for calls of an exit, and sends all of them off before it waits for one.
pub fn wait_for_all(mut calls: Vec<Call<()>>, until: Instant) {
    calls.retain_mut(|call| call.wait_for(Duration::ZERO).is_none());
    for mut call in calls {
        let _ = call.wait_for(until.saturating_duration_since(Instant::now()));
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

    /// All kinds of events.
    pub const EVENT_KINDS: &[crate::EventKind] = crate::EventKind::ALL;
}
