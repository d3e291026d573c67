//! The failure of a `with`: an error of the lock, and the body's result.

use std::fmt;

use crate::error::Error;

/// The failure of a [`Lock::with`](crate::Lock::with): the error, and the body's result if the body ran.
///
/// It converts into an [`Error`], so that `?` works where the result doesn't matter.
///
/// ```
/// # use locktender::{Client, Code};
/// # let client = Client::open("memory://docs-with-error")?;
/// let failed = client.lock("").with_blocking(|_| "done").unwrap_err();
/// assert_eq!((failed.error.code(), failed.result), (Code::InvalidArgument, None));
/// # Ok::<(), locktender::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct WithError<T> {
    /// The error of the lock.
    pub error: Error,
    /// The body's result, if the body ran: the lock was lost before it ended.
    pub result: Option<T>,
}

impl<T> WithError<T> {
    pub(super) fn before(error: Error) -> Self {
        Self { error, result: None }
    }

    pub(super) fn settle(left: Result<(), Error>, result: T) -> Result<T, Self> {
        match left {
            Ok(()) => Ok(result),
            Err(error) => Err(Self { error, result: Some(result) }),
        }
    }
}

impl<T> fmt::Display for WithError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T: fmt::Debug> std::error::Error for WithError<T> {}

impl<T> From<WithError<T>> for Error {
    fn from(failed: WithError<T>) -> Self {
        failed.error
    }
}
