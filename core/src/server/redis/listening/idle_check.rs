//! Idle check: whether a connection with a subscription still lives, though the server may send nothing on it for hours.

use std::time::Duration;

use crate::clock::Tick;

/// The pause between two looks at whether anything arrived. After two looks in vain the server is asked for an answer.
const LOOK: Duration = Duration::from_millis(2_500);
const LOOKS: u32 = 2;

/// The result of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Nothing,
    /// Nothing arrived for long: the server should be asked for an answer.
    Quiet,
    /// The server was asked, and nothing at all came back.
    HalfOpen,
}

/// The knowledge about the connection.
#[derive(Debug)]
pub(crate) struct IdleCheck {
    /// The time of the next look.
    at: Tick,
    /// The count of reads at the last look.
    reads: u64,
    /// The number of looks in vain, one after the other.
    quiet: u32,
    unanswered: usize,
    response_timeout: Duration,
}

impl IdleCheck {
    pub(crate) fn new(response_timeout: Duration) -> Self {
        Self { at: Tick::NEVER, reads: 0, quiet: 0, unanswered: 0, response_timeout }
    }

    /// The time of the next look.
    pub(crate) fn due(&self) -> Tick {
        self.at
    }

    /// `count` questions are sent now. What was asked before keeps its time: otherwise a connection that is asked again and again would
    /// never be found dead.
    pub(crate) fn asked(&mut self, count: usize, now: Tick, reads: u64) {
        if self.unanswered == 0 {
            (self.at, self.reads, self.quiet) = (now.after(self.response_timeout), reads, 0);
        }
        self.unanswered += count;
    }

    /// One of the questions is answered.
    pub(crate) fn answered(&mut self, now: Tick, reads: u64) {
        self.unanswered = self.unanswered.saturating_sub(1);
        if self.unanswered == 0 {
            (self.at, self.reads, self.quiet) = (now.after(LOOK), reads, 0);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Tick {
        Tick::from_micros(milliseconds * 1_000)
    }

    #[test]
    fn a_connection_that_is_asked_again_and_again_and_never_answers_is_dead() {
        let mut check = IdleCheck::new(Duration::from_secs(1));
        check.asked(1, at(0), 5);
        check.asked(1, at(700), 5);
        assert_eq!((check.due(), check.look(at(1_000), 5)), (at(1_000), Finding::HalfOpen));
        // One answer is a sign of life: the others have a response timeout from then on.
        let mut check = IdleCheck::new(Duration::from_secs(1));
        check.asked(2, at(0), 5);
        check.answered(at(900), 6);
        check.asked(1, at(950), 6);
        assert_eq!((check.look(at(1_000), 6), check.due()), (Finding::Nothing, at(2_000)));
        assert_eq!(check.look(at(2_000), 6), Finding::HalfOpen);
    }
}
