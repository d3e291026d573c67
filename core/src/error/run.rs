//! The failure of work under a lock: its own error, or one of the lock.

use std::fmt;

use crate::error::Error;

/// Why [`Lock::with`](crate::Lock::with), [`Job::run`](crate::Job::run) or [`Election::lead`](crate::Election::lead) has no result.
///
/// If the work fails with an [`Error`], too, `?` makes one of both.
///
/// ```
/// # use locktender::{Client, Code, Error, RunError};
/// # let client = Client::open("memory://docs-run-error")?;
/// let failed = client.lock("orders:42").with_blocking(|_| Err::<(), _>("no stock"));
/// assert!(matches!(failed, Err(RunError::Failed("no stock"))));
/// let failed = client.lock("").with_blocking(|_| Ok::<_, String>("done"));
/// assert!(matches!(failed, Err(RunError::Lock(error)) if error.code() == Code::InvalidArgument));
/// let fence = client.lock("orders:42").with_blocking(|hold| hold.check().map(|()| hold.fence()))?;
/// # assert!(fence > 0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError<E> {
    /// The work failed with this error. The lock was released; of a job the failure is noted, and another attempt may follow.
    Failed(E),
    /// An error of the lock: the work did not run, or the lock was lost before it ended, or its end may not be noted.
    Lock(Error),
}

impl<E> RunError<E> {
    /// The result of a body whose lock was left behind it. Of two errors the body's own one counts.
    pub(crate) fn behind<T>(result: Result<T, E>, left: Result<(), Error>) -> Result<T, Self> {
        let result = result.map_err(Self::Failed)?;
        left.map(|()| result).map_err(Self::Lock)
    }
}

impl<E> From<Error> for RunError<E> {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

impl From<RunError<Self>> for Error {
    fn from(failed: RunError<Self>) -> Self {
        match failed {
            RunError::Failed(error) | RunError::Lock(error) => error,
        }
    }
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Lock(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for RunError<E> {
    /// The error of the lock, with its code, for a caller that has only a `dyn Error`. `None` if the work failed.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(_) => None,
            Self::Lock(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as StdError;
    use std::fmt;

    use super::*;
    use crate::{Client, Code};

    /// The code of the error, found as a caller does that has only a `dyn Error`.
    fn code(error: &(dyn StdError + 'static)) -> Option<Code> {
        error.downcast_ref::<Error>().map(Error::code).or_else(|| code(error.source()?))
    }

    #[test]
    fn the_code_is_found_among_the_sources() {
        let client = Client::open("memory://run-error-source").unwrap();
        let with = client.lock("").with_blocking(|_| Ok::<_, fmt::Error>("done")).unwrap_err();
        let job = client.job("").run_blocking(|_| Ok::<_, fmt::Error>("done")).unwrap_err();
        for failed in [with, job] {
            assert_eq!(code(&failed), Some(Code::InvalidArgument));
            assert_eq!(
                code(&Error::from(RunError::<Error>::from(client.lock("").acquire_blocking().unwrap_err()))),
                code(&failed)
            );
        }
        assert_eq!(code(&RunError::Failed(fmt::Error)), None);
    }
}
