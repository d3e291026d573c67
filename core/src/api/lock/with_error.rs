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

impl<T: fmt::Debug> std::error::Error for WithError<T> {
    /// The error of the lock, with its code, for a caller that has only a `dyn Error`.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl<T> From<WithError<T>> for Error {
    fn from(failed: WithError<T>) -> Self {
        failed.error
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as StdError;
    use std::fmt;

    use super::*;
    use crate::{Client, Code, JobError, LeadError};

    /// The code of the error, found as a caller does that has only a `dyn Error`.
    fn code(error: &(dyn StdError + 'static)) -> Option<Code> {
        error.downcast_ref::<Error>().map(Error::code).or_else(|| code(error.source()?))
    }

    #[test]
    fn the_code_is_found_among_the_sources_of_every_error() {
        let client = Client::open("memory://with-error-source").unwrap();
        let invalid = || client.lock("").acquire_blocking().unwrap_err();
        let with = client.lock("").with_blocking(|_| "done").unwrap_err();
        let job = client.job("").run_blocking(|_| Ok::<_, fmt::Error>("done")).unwrap_err();
        let failed: [Box<dyn StdError>; 4] =
            [Box::new(with), Box::new(job), Box::new(LeadError::<fmt::Error>::Lock(invalid())), Box::new(invalid())];
        assert_eq!(failed.map(|error| code(&*error)), [Some(Code::InvalidArgument); 4]);
        let work: [Box<dyn StdError>; 2] = [Box::new(JobError::Failed(fmt::Error)), Box::new(LeadError::Failed(fmt::Error))];
        assert_eq!(work.map(|error| code(&*error)), [None; 2]);
    }
}
