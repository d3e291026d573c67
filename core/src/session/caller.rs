//! The callers of an acquisition: one for the lock, any number for the hold.

use crate::api::call::Responder;
use crate::api::held::Held;
use crate::error::Error;
use crate::protocol::Release;

/// The caller of an acquire, which gets a busy lock as an error or as an answer.
pub(crate) enum Acquirer {
    Must(Responder<Held>),
    Try(Responder<Option<Held>>),
}

impl Acquirer {
    pub(crate) fn respond(self, held: Result<Option<Held>, Error>) {
        match self {
            Self::Try(responder) => responder.respond(held),
            Self::Must(responder) => {
                let busy = || Error::internal(None, "an acquire ended without a lock and without an error");
                responder.respond(held.and_then(|held| held.ok_or_else(busy)));
            }
        }
    }
}

/// The caller of an operation on a hold.
pub(crate) enum Caller {
    Extend(Responder<()>),
    Release(Responder<Release>),
    EndOfBody(Responder<()>),
    HandOver(Responder<String>),
}

impl Caller {
    /// Answers with an error.
    pub(crate) fn fail(self, error: Error) {
        match self {
            Self::Extend(responder) => responder.respond(Err(error)),
            Self::Release(responder) => responder.respond(Err(error)),
            Self::EndOfBody(responder) => responder.respond(Err(error)),
            Self::HandOver(responder) => responder.respond(Err(error)),
        }
    }
}
