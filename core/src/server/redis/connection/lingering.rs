//! Lingering: the socket that was left last stays open for a while, since the server may still read what was written to it.
//!
//! TCP delivers what was written in order, however late: after lost packets, or out of a middlebox that stood still. An acquire that
//! comes so late, on a lock that is free again, would lock everybody out for a ttl. So a release that undoes it is written
//! behind it, on the same socket, where nothing can overtake it. When that is due only the protocol knows: other servers may have
//! granted the lock meanwhile, and this one may have got the key again. A socket that is closed at once could not carry the release,
//! and its end would answer the server's late words with a reset, which throws away what the server has not read.

use std::time::Duration;

use crate::clock::Tick;
use crate::mutant::mutant;
use crate::op::Op;
use crate::server::redis::commands::words::Form;
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::conversation::Conversation;
use crate::server::redis::connection::pipeline::Landing;

/// The time after which a socket that is still silent is closed. The pauses of TCP's retransmissions double from 0.2 s on, so it is
/// enough for the first eight.
const LONGEST: Duration = Duration::from_secs(60);

/// Why a socket is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It is closed, or of no use.
    Useless,
    /// It is silent: the server may still read from it, later.
    Silent,
}

/// A socket whose operations were all cancelled.
pub(super) struct Lingering {
    conversation: Box<Conversation>,
    /// The time at which it has lingered long enough.
    pub(super) until: Tick,
}

impl Lingering {
    /// `None` if nothing was cancelled that may have to be undone.
    pub(super) fn new(conversation: Box<Conversation>, now: Tick) -> Option<Self> {
        let may_come_late = conversation.pipeline.has_cancelled() && !mutant!(LateAcquireKept);
        may_come_late.then(|| Self { conversation, until: now.after(LONGEST) })
    }

    pub(super) fn buffers(&mut self) -> &mut Buffers {
        &mut self.conversation.buffers
    }

    pub(super) fn has_unwritten(&self) -> bool {
        !self.conversation.buffers.unwritten().is_empty()
    }

    /// Sends an operation if it undoes what was cancelled here.
    pub(super) fn send_undo(&mut self, op: &Op, now: Tick) {
        self.conversation.send_undo(op, self.until, now);
    }

    /// Sends what undoes everything that has no answer.
    pub(super) fn take_all_back(&mut self, now: Tick) {
        let undo: Vec<Op> = self.conversation.pipeline.undo().cloned().collect();
        undo.iter().for_each(|op| self.send_undo(op, now));
    }

    /// Reads what the server reports; returns whether it has something left to answer.
    pub(super) fn read(&mut self, count: usize, now: Tick) -> bool {
        self.conversation.buffers.replies.filled(count);
        while let Some(answer) = self.conversation.next() {
            match self.conversation.pipeline.land(answer) {
                Landing::Unknown(job) => self.conversation.send(job, Form::ByText, now),
                Landing::Broken(_) => return false,
                _ => (),
            }
        }
        self.conversation.pipeline.has_cancelled() || self.conversation.pipeline.is_busy()
    }
}

#[cfg(test)]
#[path = "lingering_tests.rs"]
mod tests;
