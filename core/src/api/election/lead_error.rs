//! The failure of `lead`: an error of the lock, or of the work.

use std::fmt;

use crate::error::Error;

/// Why [`Election::lead`](crate::Election::lead) has ended without being stopped.
#[derive(Debug)]
#[non_exhaustive]
pub enum LeadError<E> {
    /// The work failed with this error. The leader has resigned.
    Failed(E),
    /// A campaign failed for good.
    Lock(Error),
}

impl<E> From<Error> for LeadError<E> {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

impl<E: fmt::Display> fmt::Display for LeadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Lock(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for LeadError<E> {
    /// The error of the lock, with its code, for a caller that has only a `dyn Error`. `None` if the work failed.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(_) => None,
            Self::Lock(error) => Some(error),
        }
    }
}
