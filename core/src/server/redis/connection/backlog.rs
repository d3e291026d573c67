//! Backlog: the operations that wait for a connection, in the order of their submission.

use std::collections::VecDeque;

use crate::clock::Tick;
use crate::op::Failure;
use crate::server::redis::connection::effect::Effect;
use crate::server::redis::connection::failure::too_late;
use crate::server::redis::connection::in_flight::InFlight;

/// The operations that wait, and the time at which the first of their deadlines passes.
pub(crate) struct Backlog {
    operations: VecDeque<InFlight>,
    /// A time not later than the first deadline.
    due: Tick,
}

impl Backlog {
    pub(crate) fn new() -> Self {
        Self { operations: VecDeque::new(), due: Tick::NEVER }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    pub(crate) fn due(&self) -> Tick {
        self.due
    }

    pub(crate) fn push(&mut self, pending: InFlight) {
        self.due = self.due.min(pending.request.deadline);
        self.operations.push_back(pending);
    }

    /// Empties the backlog; `send` gets the operations that may still be sent, or ends them.
    pub(crate) fn drain(&mut self, now: Tick, mut send: impl FnMut(InFlight) -> Option<Effect>, out: &mut Vec<Effect>) {
        self.due = Tick::NEVER;
        for pending in self.operations.drain(..) {
            if pending.request.deadline <= now {
                out.push(pending.end(Err(too_late())));
            } else {
                out.extend(send(pending));
            }
        }
    }

    /// Ends with `failure` the operations that are unfit to wait.
    pub(crate) fn refuse(&mut self, failure: &Failure, unfit: impl Fn(&InFlight) -> bool, out: &mut Vec<Effect>) {
        self.due = Tick::NEVER;
        for pending in std::mem::take(&mut self.operations) {
            if unfit(&pending) {
                // An operation that was sent before, on a socket that broke, may have been done then.
                let maybe_applied = failure.maybe_applied || pending.repeated;
                out.push(pending.end(Err(Failure { maybe_applied, ..failure.clone() })));
            } else {
                self.push(pending);
            }
        }
    }
}
