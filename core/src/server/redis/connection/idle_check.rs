//! Idle check: whether a connection on which one listens still lives, though nothing may be said on it for hours.

use std::time::Duration;

use crate::clock::Tick;

/// How often it is looked whether anything arrived. After two looks in vain something is asked, to see whether it is answered.
pub(crate) const LOOK: Duration = Duration::from_millis(2_500);
pub(crate) const LOOKS: u32 = 2;

/// What a look brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Nothing,
    /// Nothing arrived for long: to be asked for an answer.
    Quiet,
    /// Something was asked, and nothing at all came back.
    HalfOpen,
}

/// What is known of the connection.
#[derive(Debug)]
pub(crate) struct IdleCheck {
    /// When to look next.
    at: Tick,
    /// How much had arrived at the last look.
    reads: u64,
    /// Looks in vain, one after the other.
    quiet: u32,
    unanswered: usize,
    response_timeout: Duration,
}

impl IdleCheck {
    pub(crate) fn new(response_timeout: Duration) -> Self {
        Self { at: Tick::NEVER, reads: 0, quiet: 0, unanswered: 0, response_timeout }
    }

    /// When to look next.
    pub(crate) fn due(&self) -> Tick {
        self.at
    }

    /// So many questions are asked now.
    pub(crate) fn asked(&mut self, count: usize, now: Tick, reads: u64) {
        (self.at, self.reads, self.quiet) = (now.after(self.response_timeout), reads, 0);
        self.unanswered += count;
    }

    /// One of them is answered.
    pub(crate) fn answered(&mut self, now: Tick, reads: u64) {
        self.unanswered = self.unanswered.saturating_sub(1);
        if self.unanswered == 0 {
            (self.at, self.reads, self.quiet) = (now.after(LOOK), reads, 0);
        }
    }

    /// The connection is gone, and with it what was asked.
    pub(crate) fn forget(&mut self) {
        self.unanswered = 0;
    }

    /// Looks, if it is time.
    pub(crate) fn look(&mut self, now: Tick, reads: u64) -> Finding {
        if now < self.at {
            return Finding::Nothing;
        }
        let lives = self.reads != reads;
        self.reads = reads;
        if self.unanswered > 0 {
            self.at = now.after(self.response_timeout);
            return if lives { Finding::Nothing } else { Finding::HalfOpen };
        }
        self.quiet = if lives { 0 } else { self.quiet + 1 };
        self.at = now.after(LOOK);
        if self.quiet >= LOOKS { Finding::Quiet } else { Finding::Nothing }
    }
}
