//! Failures: why a server does not answer.

use std::error::Error;
use std::fmt;

use crate::error::Cause;
use crate::wording::words;

words! {
    /// Why there is no answer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum FailureKind, pub ALL;
    /// The kind as it is spelled in every language.
    fn as_str;
    /// The connection was refused.
    Refused = "refused",
    /// The name could not be resolved.
    Dns = "dns",
    /// The TLS handshake failed.
    Tls = "tls",
    /// No answer within the response timeout, or no connection within the connect timeout.
    Timeout = "timeout",
    /// The connection broke.
    Disconnected = "disconnected",
    /// What answers is not a Redis, or answers what was not asked.
    Protocol = "protocol",
    /// The server is loading its data.
    Loading = "loading",
    /// The server is a replica.
    ReadOnly = "read_only",
    /// The server refuses writes because it can't persist them.
    Misconfigured = "misconfigured",
    /// The server is out of memory.
    OutOfMemory = "out_of_memory",
    /// The cluster is down, or the slot is moving.
    ClusterDown = "cluster_down",
    /// Wrong or missing credentials, or rights.
    Denied = "denied",
    /// The server is new or lost its data and doesn't vote yet.
    Quarantine = "quarantine",
    /// The server is another than the client is configured for: its marker says another quorum, it is a node of a cluster or a
    /// sentinel, its sentinels watch no service of that name, it lacks the URL's database, or it doesn't speak TLS.
    Mismatch = "mismatch",
    /// Too few replicas have confirmed what was written.
    NotReplicated = "not_replicated",
    /// The operation's deadline passed before it was sent.
    TooLate = "too_late",
    /// The client is closing.
    Closed = "closed",
    /// Something else.
    Other = "other",
}

/// An operation without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// What happened.
    pub kind: FailureKind,
    /// One sentence, without credentials.
    pub message: String,
    /// Whether the server may have applied the operation. `false` is a promise that it did not and will not.
    pub maybe_applied: bool,
    /// Whether trying again is of no use before a person has changed something.
    pub lasting: bool,
    /// The error of the program's own code that is behind it, such as that of a credentials provider.
    pub(crate) cause: Option<Cause>,
    /// What a node of a cluster says instead of serving the operation.
    pub(crate) redirect: Option<Box<Redirect>>,
}

/// What a node of a cluster says of an operation that it doesn't serve. Nothing was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// Another node serves the slot.
    Moved {
        /// The slot of the keys.
        slot: u16,
        /// The host of that node; empty for the host of the node that says so.
        host: String,
        /// The port of that node.
        port: u16,
    },
    /// The slot is moving to another node, and the keys are there already. Only this one operation goes there.
    Ask {
        /// The host of that node; empty for the host of the node that says so.
        host: String,
        /// The port of that node.
        port: u16,
    },
    /// The slot is moving, and some of the keys are on either node.
    TryAgain,
}

impl Failure {
    /// A failure after which the operation may have been applied.
    #[must_use]
    pub fn unknown(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), maybe_applied: true, lasting: false, cause: None, redirect: None }
    }

    /// A failure of an operation that never reached the server, or that the server refused as a whole.
    #[must_use]
    pub fn not_applied(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), maybe_applied: false, lasting: false, cause: None, redirect: None }
    }

    /// The same as a failure that lasts until a person has changed something.
    #[must_use]
    pub fn for_good(self) -> Self {
        Self { lasting: true, ..self }
    }

    /// The same with what is behind it.
    #[must_use]
    pub fn caused_by(self, error: Box<dyn Error + Send + Sync>) -> Self {
        Self { cause: Some(Cause::new(error)), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
