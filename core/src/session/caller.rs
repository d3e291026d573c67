//! The callers of an acquisition: one for the lock, any number for the hold.

use crate::api::call::Responder;
use crate::api::held::Held;
use crate::error::Error;
use crate::op::job::JobEnd;
use crate::protocol::Release;

/// The caller of an acquire, which gets a busy lock as an error or as an answer.
pub(crate) enum Acquirer {
    Must(Responder<Held>),
    Try(Responder<Option<Held>>),
    /// The caller of an attempt of a job.
    Begin(Box<dyn FnOnce(Result<Acquired, Error>) + Send>),
}

/// The answer for the caller of an acquire that did not fail.
pub(crate) enum Acquired {
    Held(Held),
    Busy,
    Over(JobEnd),
}

impl Acquirer {
    pub(crate) fn respond(self, acquired: Result<Acquired, Error>) {
        let unexpected = || Error::internal(None, "an acquire ended without a lock and without an error");
        match self {
            Self::Try(responder) => responder.respond(match acquired {
                Ok(Acquired::Held(held)) => Ok(Some(held)),
                Ok(Acquired::Busy) => Ok(None),
                Ok(Acquired::Over(_)) => Err(unexpected()),
                Err(error) => Err(error),
            }),
            Self::Must(responder) => responder.respond(match acquired {
                Ok(Acquired::Held(held)) => Ok(held),
                Ok(Acquired::Busy | Acquired::Over(_)) => Err(unexpected()),
                Err(error) => Err(error),
            }),
            Self::Begin(respond) => respond(acquired),
        }
    }
}

/// The caller of an operation on a hold.
pub(crate) enum Caller {
    Extend(Responder<()>),
    Release(Responder<Release>),
    EndOfBody(Responder<()>),
    EndOfAttempt(Responder<()>),
    HandOver(Responder<String>),
}

impl Caller {
    /// Answers with an error.
    pub(crate) fn fail(self, error: Error) {
        match self {
            Self::Extend(responder) => responder.respond(Err(error)),
            Self::Release(responder) => responder.respond(Err(error)),
            Self::EndOfBody(responder) | Self::EndOfAttempt(responder) => responder.respond(Err(error)),
            Self::HandOver(responder) => responder.respond(Err(error)),
        }
    }
}
