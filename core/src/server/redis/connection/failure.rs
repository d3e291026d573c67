//! Failures: the failures that a connection makes itself, and which failures are the server's fault.

use std::io;
use std::time::Duration;

use crate::op::{Failure, FailureKind};
use crate::server::redis::commands::refusal;

pub(crate) fn too_late() -> Failure {
    Failure::not_applied(FailureKind::TooLate, "the operation's deadline passed before it could be sent")
}

/// The failure of an operation whose deadline passed before there was a connection. It gives the reason of the last failed attempt,
/// or says that this attempt takes too long.
pub(crate) fn no_connection(trouble: Option<&Failure>) -> Failure {
    let slow = || Failure::not_applied(FailureKind::Timeout, "no connection was made in the time the operation had");
    trouble.cloned().unwrap_or_else(slow)
}

pub(crate) fn no_answer(timeout: Duration) -> Failure {
    Failure::unknown(FailureKind::Timeout, format!("no answer within {} ms", timeout.as_millis()))
}

pub(crate) fn disconnected() -> Failure {
    Failure::unknown(FailureKind::Disconnected, "the connection broke before the answer came")
}

/// The failure of an operation on a closed server.
pub(crate) fn closed(sent: bool) -> Failure {
    Failure { maybe_applied: sent, ..Failure::not_applied(FailureKind::Closed, "the client is closed") }
}

/// Whether an answer says that the server can't serve at all, rather than that this client or this lock is refused.
pub(crate) fn is_servers_fault(kind: FailureKind) -> bool {
    use FailureKind::{ClusterDown, Loading, Misconfigured, OutOfMemory, Protocol, ReadOnly};
    matches!(kind, ClusterDown | Loading | Misconfigured | OutOfMemory | Protocol | ReadOnly)
}

/// The failure of a connection whose socket was closed; `None` means that the peer ended it.
pub(crate) fn broke_by(why: Option<io::Error>) -> Failure {
    why.map_or_else(disconnected, |error| refusal::failure(&error.into(), true))
}
