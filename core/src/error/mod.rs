//! Errors: the code is the contract, the text is one sentence a person can act on.

mod cause;
pub(crate) mod loss;
pub(crate) mod quoted;
mod run;
pub(crate) mod sentence;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use crate::error::cause::Cause;
pub use crate::error::loss::{Loss, LossReason};
pub use crate::error::run::RunError;
use crate::op::{Failure, FailureKind};
use crate::wording::{Language, Text, words};

/// The page about errors, with a heading for each code.
const PAGE: &str = "https://github.com/locktender/locktender/blob/main/docs/errors.md#";

words! {
    /// The code of an error, the same in every language.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Code, pub ALL;
    /// The code as it is spelled in every language.
    fn as_str, impl Display;
    /// `wait` ran out while the lock was held.
    AcquireTimeout = "ACQUIRE_TIMEOUT",
    /// The lock was ours and no longer is.
    LockLost = "LOCK_LOST",
    /// The handle was already released or handed over.
    NotHeld = "NOT_HELD",
    /// No majority of the servers could be reached for `unavailable_after`.
    Unavailable = "UNAVAILABLE",
    /// The servers refused the credentials, or the rights to what a lock needs.
    Denied = "DENIED",
    /// A key of the lock holds something that no lock writes there.
    KeyConflict = "KEY_CONFLICT",
    /// An option, a name or a URL is wrong.
    InvalidArgument = "INVALID_ARGUMENT",
    /// The acquire would wait for a lock that its own task holds: a deadlock.
    Deadlock = "DEADLOCK",
    /// The client is closed.
    Closed = "CLOSED",
    /// The handle was inherited through a fork.
    Forked = "FORKED",
    /// The job's last attempt failed or died: no further one begins.
    JobDead = "JOB_DEAD",
    /// A bug of this library: a caught panic.
    Internal = "INTERNAL",
}

impl Code {
    /// The address of what the documentation says of the code: when it occurs, and what to do.
    ///
    /// ```
    /// let url = locktender::Code::LockLost.docs_url();
    /// assert!(url.ends_with("/docs/errors.md#lock_lost"));
    /// ```
    #[must_use]
    pub fn docs_url(self) -> String {
        PAGE.to_owned() + &self.as_str().to_lowercase()
    }
}

/// How long a key remains on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum Remaining {
    /// There is no key.
    #[default]
    Gone,
    /// It expires after this time.
    For(Duration),
    /// It has no expiry.
    Forever,
}

/// The holder of a lock that was busy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// The value of the key: a readable owner of ours, or whatever another library wrote, up to its first 1,024 bytes.
    pub owner: String,
    /// How long it remained.
    pub remaining: Remaining,
}

/// The failure of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFailure {
    /// The server's address, without credentials.
    pub server: String,
    /// The kind of failure.
    pub kind: FailureKind,
    /// One sentence.
    pub message: String,
    pub(crate) cause: Option<Cause>,
}

impl ServerFailure {
    /// The error of a server that says only this.
    pub(crate) fn new(server: &str, kind: FailureKind, message: impl Into<String>) -> Self {
        Self { server: server.to_owned(), kind, message: message.into(), cause: None }
    }

    /// The error of a server that failed so.
    pub(crate) fn of(server: &str, failure: &Failure) -> Self {
        Self { cause: failure.cause.clone(), ..Self::new(server, failure.kind, failure.message.clone()) }
    }
}

impl fmt::Display for ServerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.server, self.message)
    }
}

impl std::error::Error for ServerFailure {
    /// The error of the program's own code that is behind it, such as that of a credentials provider.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.cause.as_ref()?.error())
    }
}

/// An error of any operation: a code to branch on, one sentence for people, and further facts. Cheap to clone.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    code: Code,
    message: Text,
    /// As the core spells it.
    argument: Option<Box<str>>,
    lock: Option<String>,
    holder: Option<Holder>,
    rank: Option<u64>,
    loss: Option<Loss>,
    servers: Vec<ServerFailure>,
    /// How many attempts a dead job had, and what the last one said.
    dead: Option<(u32, String)>,
}

impl Error {
    /// The code. Branch on it, never on the message.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::{Client, Code};
    /// # let client = Client::open("memory://docs-error-code")?;
    /// # let hold = client.lock("nightly").acquire_blocking()?;
    /// match client.lock("nightly").wait(Duration::ZERO).acquire_blocking() {
    ///     Err(error) if error.code() == Code::AcquireTimeout => println!("another process is at it"),
    ///     other => drop(other?),
    /// }
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The lock's name, where the error is about one lock.
    ///
    /// ```
    /// # use locktender::Client;
    /// # let client = Client::open("memory://docs-error-lock-name")?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// hold.release_blocking()?;
    /// assert_eq!(hold.check().unwrap_err().lock_name(), Some("nightly"));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn lock_name(&self) -> Option<&str> {
        self.0.lock.as_deref()
    }

    /// The message in the words of a language: with its names of options and verbs, and times in its unit. Displayed, an error
    /// speaks Rust.
    ///
    /// ```
    /// use locktender::host::Language;
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-in-words-of")?;
    /// let error = client.lock("nightly").max_hold(Duration::ZERO).acquire_blocking().unwrap_err();
    /// assert!(error.in_words_of(Language::Node).starts_with("maxHoldMs: must be from 10 ms"));
    /// assert!(error.in_words_of(Language::Python).starts_with("max_hold: must be from 0.01 s"));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[doc(hidden)]
    #[must_use]
    pub fn in_words_of(&self, language: Language) -> String {
        self.0.message.in_words_of(language)
    }

    /// With `INVALID_ARGUMENT`: the name of the option or argument that is wrong.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-argument")?;
    /// let error = client.lock("nightly").ttl(Duration::ZERO).acquire_blocking().unwrap_err();
    /// assert_eq!(error.argument(), Some("ttl"));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn argument(&self) -> Option<&str> {
        self.0.argument.as_deref()
    }

    /// With `ACQUIRE_TIMEOUT`: the holder, if a server showed one.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-error-holder")?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// let error = client.lock("nightly").wait(Duration::ZERO).acquire_blocking().unwrap_err();
    /// assert_eq!(error.holder().expect("it is held").owner, hold.owner());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn holder(&self) -> Option<&Holder> {
        self.0.holder.as_ref()
    }

    /// With `ACQUIRE_TIMEOUT`: how many waited before this caller. `None` if it never was in the server's queue, as with a `wait` of
    /// zero.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-error-rank")?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// let error = client.lock("nightly").wait(Duration::from_millis(20)).acquire_blocking().unwrap_err();
    /// assert_eq!(error.rank(), Some(0)); // it was the first of the queue
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn rank(&self) -> Option<u64> {
        self.0.rank
    }

    /// With `LOCK_LOST`: the reason, the next owner if one is known, and how late the loss was noticed.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::LossReason;
    /// # let client = locktender::Client::open("memory://docs-error-loss")?;
    /// let hold = client.lock("nightly").max_hold(Duration::from_millis(20)).acquire_blocking()?;
    /// hold.lost_blocking(Duration::from_secs(9))?;
    /// assert_eq!(hold.check().unwrap_err().loss().expect("it is lost").reason, LossReason::MaxHold);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn loss(&self) -> Option<&Loss> {
        self.0.loss.as_ref()
    }

    /// With `JOB_DEAD`: how many attempts there were.
    ///
    /// ```
    /// # use locktender::Code;
    /// # let client = locktender::Client::open("memory://docs-error-attempts")?;
    /// let job = client.job("mail:7").max_attempts(1);
    /// let _ = job.run_blocking(|_| Err::<(), _>("the mail server is down"));
    /// let error = job.begin_blocking().unwrap_err();
    /// assert_eq!((error.code(), error.attempts(), error.last_error()), (Code::JobDead, Some(1), Some("the mail server is down")));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn attempts(&self) -> Option<u32> {
        self.0.dead.as_ref().map(|(attempts, _)| *attempts)
    }

    /// With `JOB_DEAD`: what the last attempt said when it failed, or that its worker died.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-error-last-error")?;
    /// let job = client.job("mail:7").max_attempts(1);
    /// let _ = job.run_blocking(|_| Err::<(), _>("the mail server is down"));
    /// assert_eq!(job.begin_blocking().unwrap_err().last_error(), Some("the mail server is down"));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn last_error(&self) -> Option<&str> {
        self.0.dead.as_ref().map(|(_, error)| &**error)
    }

    /// With `UNAVAILABLE` and `DENIED`: one error for each server that failed.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use locktender::{Client, Code, FailureKind};
    /// let nobody = Client::builder().url("redis://127.0.0.1:1").unavailable_after(Duration::from_millis(50)).build()?;
    /// let error = nobody.lock("nightly").acquire_blocking().unwrap_err();
    /// assert_eq!((error.code(), error.servers()[0].kind), (Code::Unavailable, FailureKind::Refused));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn servers(&self) -> &[ServerFailure] {
        &self.0.servers
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words_of(Language::Rust))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.0.code)
    }
}

impl std::error::Error for Error {
    /// The error of the program's own code that is behind it, such as that of a credentials provider.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.servers.iter().find_map(std::error::Error::source)
    }
}
