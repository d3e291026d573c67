//! Errors: the code is the contract, the text is one sentence a person can act on.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use crate::loss::{Loss, LossReason};
use crate::quoted::{on_one_line, quoted};
use crate::server::FailureKind;

/// What went wrong, the same in every language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// `wait` ran out while somebody held the lock.
    AcquireTimeout,
    /// The lock was ours and no longer is.
    LockLost,
    /// The handle was already released or handed over.
    NotHeld,
    /// No majority of the servers could be reached for `unavailable_after`.
    Unavailable,
    /// The servers refused the credentials, or the rights to what a lock needs.
    Denied,
    /// The key holds something that isn't a string.
    KeyConflict,
    /// An option, a name or a URL is wrong.
    InvalidArgument,
    /// The client is closed.
    Closed,
    /// The handle was inherited through a fork.
    Forked,
    /// A bug of this library: a caught panic.
    Internal,
}

impl Code {
    /// Every code.
    pub const ALL: [Self; 10] = [
        Self::AcquireTimeout,
        Self::LockLost,
        Self::NotHeld,
        Self::Unavailable,
        Self::Denied,
        Self::KeyConflict,
        Self::InvalidArgument,
        Self::Closed,
        Self::Forked,
        Self::Internal,
    ];

    /// The code as it is spelled in every language.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AcquireTimeout => "ACQUIRE_TIMEOUT",
            Self::LockLost => "LOCK_LOST",
            Self::NotHeld => "NOT_HELD",
            Self::Unavailable => "UNAVAILABLE",
            Self::Denied => "DENIED",
            Self::KeyConflict => "KEY_CONFLICT",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::Closed => "CLOSED",
            Self::Forked => "FORKED",
            Self::Internal => "INTERNAL",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How long a key remains on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Remaining {
    /// There is no key.
    #[default]
    Gone,
    /// It expires after this time.
    For(Duration),
    /// It has no expiry.
    Forever,
}

/// Who held the lock when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The value of the key: a readable owner of ours, or whatever another library wrote, up to its first 1,024 bytes.
    pub owner: String,
    /// How long it remained.
    pub remaining: Remaining,
}

/// What one server answered, or why it did not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerError {
    /// The server's address, without credentials.
    pub server: String,
    /// The kind of failure.
    pub kind: FailureKind,
    /// One sentence.
    pub message: String,
}

/// Any error of this crate. Cheap to clone.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    code: Code,
    message: String,
    lock: Option<String>,
    holder: Option<Holder>,
    rank: Option<u64>,
    loss: Option<Loss>,
    servers: Vec<ServerError>,
}

impl Error {
    fn new(code: Code, lock: Option<&str>, message: String) -> Self {
        Self::build(code, lock, message, |_| ())
    }

    fn build(code: Code, lock: Option<&str>, message: String, fill: impl FnOnce(&mut Inner)) -> Self {
        let lock = lock.map(str::to_owned);
        let mut inner = Inner { code, message, lock, holder: None, rank: None, loss: None, servers: Vec::new() };
        fill(&mut inner);
        Self(Arc::new(inner))
    }

    /// `INVALID_ARGUMENT`: `argument` was given as `given`, and `why` that can't be.
    #[must_use]
    pub fn invalid(argument: &str, given: impl fmt::Debug, why: String) -> Self {
        let mut given = format!("{given:?}");
        if given.len() > 80 {
            let end = (0..=77).rev().find(|&at| given.is_char_boundary(at)).unwrap_or(0);
            given.truncate(end);
            given.push_str("...");
        }
        Self::new(Code::InvalidArgument, None, format!("{argument}: {why} (given: {given})"))
    }

    /// `INVALID_ARGUMENT`: the task that asks for `lock` holds it already, in a body that began at `place`.
    pub(crate) fn waits_for_itself(lock: &str, place: Option<&str>) -> Self {
        let since = place.map(|place| format!(" since {place}")).unwrap_or_default();
        let message = format!(
            "lock {lock:?}: this task holds it already{since}, and would wait for itself; locks are not re-entrant: pass the hold down"
        );
        Self::new(Code::InvalidArgument, Some(lock), message)
    }

    pub(crate) fn acquire_timeout(lock: &str, waited: Duration, holder: Holder, rank: Option<u64>) -> Self {
        let remaining = match holder.remaining {
            Remaining::For(left) => format!("{} ms remain", left.as_millis()),
            Remaining::Forever => "its key has no expiry".to_owned(),
            Remaining::Gone => "its key has just gone".to_owned(),
        };
        let before = match rank {
            Some(rank @ 1..) => format!("; {rank} more waited before this one"),
            _ => String::new(),
        };
        let message = format!(
            "lock {lock:?} was not acquired within {} ms: it is held by \"{}\" ({remaining}){before}",
            waited.as_millis(),
            quoted(&holder.owner)
        );
        Self::build(Code::AcquireTimeout, Some(lock), message, |inner| {
            inner.holder = Some(holder);
            inner.rank = rank;
        })
    }

    /// `LOCK_LOST`: the lock `lock` was lost that way.
    #[must_use]
    pub fn lost(lock: &str, loss: Loss) -> Self {
        let message = format!("lock {lock:?} was lost: {}", loss.sentence());
        Self::build(Code::LockLost, Some(lock), message, |inner| inner.loss = Some(loss))
    }

    pub(crate) fn not_held(lock: &str, why: &str) -> Self {
        Self::new(Code::NotHeld, Some(lock), format!("lock {lock:?} is not held by this handle: {why}"))
    }

    pub(crate) fn unavailable(lock: Option<&str>, servers: Vec<ServerError>) -> Self {
        Self::servers_failed(Code::Unavailable, lock, "no majority of the servers could be reached", servers)
    }

    pub(crate) fn denied(lock: Option<&str>, servers: Vec<ServerError>) -> Self {
        Self::servers_failed(Code::Denied, lock, "the server denied access", servers)
    }

    fn servers_failed(code: Code, lock: Option<&str>, what: &str, servers: Vec<ServerError>) -> Self {
        let each: Vec<String> =
            servers.iter().map(|error| format!("{}: {}", error.server, on_one_line(&error.message))).collect();
        let subject = lock.map(|lock| format!("lock {lock:?}: ")).unwrap_or_default();
        let message = format!("{subject}{what} ({})", each.join("; "));
        Self::build(code, lock, message, |inner| inner.servers = servers)
    }

    pub(crate) fn key_conflict(lock: &str, found: &str) -> Self {
        let message = format!("lock {lock:?}: its key holds a {}, which is no lock, and was left as it is", quoted(found));
        Self::new(Code::KeyConflict, Some(lock), message)
    }

    pub(crate) fn closed(lock: Option<&str>) -> Self {
        let subject = lock.map(|lock| format!("lock {lock:?}: ")).unwrap_or_default();
        Self::new(Code::Closed, lock, format!("{subject}the client is closed"))
    }

    pub(crate) fn forked(lock: &str) -> Self {
        let message = format!("lock {lock:?} is held by the parent process; this handle was inherited through a fork");
        Self::new(Code::Forked, Some(lock), message)
    }

    /// `INTERNAL`: a bug of this library.
    #[must_use]
    pub fn internal(lock: Option<&str>, what: &str) -> Self {
        Self::new(Code::Internal, lock, format!("internal error, please report it: {what}"))
    }

    /// The code to decide by.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The lock's name, where the error is about one lock.
    #[must_use]
    pub fn lock_name(&self) -> Option<&str> {
        self.0.lock.as_deref()
    }

    /// With `ACQUIRE_TIMEOUT`: who held the lock.
    #[must_use]
    pub fn holder(&self) -> Option<&Holder> {
        self.0.holder.as_ref()
    }

    /// With `ACQUIRE_TIMEOUT`: how many waited before this one, where the server put it in line.
    #[must_use]
    pub fn rank(&self) -> Option<u64> {
        self.0.rank
    }

    /// With `LOCK_LOST`: why, to whom, and how late it was noticed.
    #[must_use]
    pub fn loss(&self) -> Option<&Loss> {
        self.0.loss.as_ref()
    }

    /// With `UNAVAILABLE` and `DENIED`: one error per server.
    #[must_use]
    pub fn servers(&self) -> &[ServerError] {
        &self.0.servers
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_is_one_sentence_with_the_name_and_the_numbers() {
        let holder = Holder { owner: "host=web-3 pid=1".into(), remaining: Remaining::For(Duration::from_millis(740)) };
        let error = Error::acquire_timeout("orders:42", Duration::from_millis(5_000), holder, Some(0));
        assert_eq!(
            error.to_string(),
            "lock \"orders:42\" was not acquired within 5000 ms: it is held by \"host=web-3 pid=1\" (740 ms remain)"
        );
        assert_eq!((error.code().as_str(), error.lock_name()), ("ACQUIRE_TIMEOUT", Some("orders:42")));
    }

    #[test]
    fn what_was_given_is_shown_but_not_at_length() {
        let error = Error::invalid("name", "é".repeat(300), "too long".into());
        assert!(error.to_string().len() < 120, "{error}");
    }
}
