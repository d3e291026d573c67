//! The callers of operations on a hold.

use crate::error::Error;
use crate::io::call::Responder;
use crate::io::reactor::Io;
use crate::protocol::Release;

/// The caller of an operation on a hold.
pub(crate) enum Caller {
    Extend(Responder<()>),
    Release(Responder<Release>),
    EndOfBody(Responder<()>),
    EndOfAttempt(Responder<()>),
    HandOver(Responder<String>),
}

impl Caller {
    /// Who does the I/O of the operation.
    pub(crate) fn io(&self) -> &Io {
        match self {
            Self::Extend(responder) => responder.io(),
            Self::Release(responder) => responder.io(),
            Self::EndOfBody(responder) | Self::EndOfAttempt(responder) => responder.io(),
            Self::HandOver(responder) => responder.io(),
        }
    }

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
