//! Routed request: an operation on its way through a cluster, and where it has to go. Pure.

use crate::io::reactor::Io;
use crate::name::HISTORY;
use crate::name::slot::slot_of;
use crate::op::{Failure, Op};
use crate::server::{Completion, Request};

/// An operation on its way.
pub(super) struct Routed {
    pub(super) request: Request,
    pub(super) completion: Completion,
    /// From how many nodes it was sent on.
    pub(super) hops: u8,
    /// How often it came while its slot was moving.
    pub(super) waits: u32,
}

impl Routed {
    pub(super) fn new(request: Request, completion: Completion) -> Self {
        Self { request, completion, hops: 0, waits: 0 }
    }

    /// The same, sent later: by the I/O thread, because its caller drives nothing by then.
    pub(super) fn later(mut self) -> Self {
        self.request.io = Io::Background;
        self
    }

    pub(super) fn fail(self, failure: Failure) {
        self.completion.complete_by(&self.request.io, Err(failure));
    }

    /// The slot whose node gets it; `None` if any node may.
    pub(super) fn slot(&self) -> Option<u16> {
        let key = match &self.request.op {
            Op::Lock(op) => op.keys.lock(),
            Op::Part(op) => op.key(),
            Op::Probe { keys } => keys.lock(),
            Op::Publish { channel, .. } => channel,
            Op::Log(_) | Op::History { .. } => HISTORY,
            Op::Peek { key } => key,
            _ => return None,
        };
        Some(slot_of(key))
    }
}
