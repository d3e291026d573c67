//! InFlight: an operation of a caller, on its way over a connection.

use crate::error::Remaining;
use crate::op::{Answer, Reply, Verdict};
use crate::server::redis::connection::effect::Effect;
use crate::server::{Completion, Request};

/// An operation, and the completion that gets its answer.
#[derive(Debug)]
pub struct InFlight {
    pub(crate) request: Request,
    pub(crate) completion: Completion,
    /// Whether it was sent before, on a socket that broke.
    pub(crate) repeated: bool,
    /// Whether it was refused before, and the server was asked for its replication id since, or the handshake was repeated.
    pub(crate) suspected: bool,
    /// Whether the node serves it only because it is asked to: its slot is moving there.
    pub(crate) asking: bool,
    /// Whether a transaction was tried, and whether it has taken the lock's key.
    pub(crate) tried: Option<bool>,
}

impl InFlight {
    /// An operation that was not sent so far.
    #[must_use]
    pub fn new(request: Request, completion: Completion) -> Self {
        Self { request, completion, repeated: false, suspected: false, asking: false, tried: None }
    }

    /// Ends an acquire that is only of use if the lock is free: it isn't, or more is needed. Nothing was done.
    pub(crate) fn refuse(self) -> Effect {
        let (holder, remaining) = (String::new(), Remaining::Gone);
        self.end(Ok(Reply::new(Verdict::Held { holder, remaining }, 0, 0)))
    }

    /// Ends the operation.
    pub(crate) fn end(self, answer: Answer) -> Effect {
        Effect::Complete(self.completion, answer)
    }
}
