//! Jump: a server's clock that goes forward faster than time, as a hold sees it, and as its client reports it.

use std::time::Duration;

use crate::clock::Tick;
use crate::op::Answer;
use crate::protocol::Tag;
use crate::validity::{self, Reading};

/// A jump of one server's clock, between two of its answers to one hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The server.
    pub server: usize,
    /// The size of the jump, at least.
    pub by: Duration,
    /// The time of the last request whose answer showed the old clock.
    pub(super) since: Tick,
    /// The time of the request whose answer showed the new clock.
    pub(super) seen: Tick,
}

impl Jump {
    /// The jump that an answer shows, whatever its verdict.
    pub(super) fn shown(
        (server, tag): (usize, Tag),
        answer: &Answer,
        readings: &[Option<Reading>],
        received: Tick,
    ) -> Option<Self> {
        let (before, reply) = readings.get(server).copied().flatten().zip(answer.as_ref().ok())?;
        let by = validity::jump(before, reply.time_us, received)?;
        Some(Self { server, by, since: before.sent, seen: tag.sent })
    }
}

/// The jumps that a client has reported. Every hold sees a jump, each at its own next renewal.
#[derive(Debug, Default)]
pub(crate) struct Jumps {
    /// The servers whose clocks have jumped, each with the time at which the last jump was seen.
    reported: Vec<(usize, Tick)>,
}

impl Jumps {
    /// Whether the jump has not been reported yet. It has if another hold saw the new clock after this hold had last seen the old
    /// one.
    pub(crate) fn is_news(&mut self, jump: &Jump) -> bool {
        match self.reported.iter_mut().find(|(server, _)| *server == jump.server) {
            Some((_, seen)) if jump.since < *seen => false,
            Some((_, seen)) => {
                *seen = jump.seen;
                true
            }
            None => {
                self.reported.push((jump.server, jump.seen));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Remaining;
    use crate::op::{Failure, FailureKind, Reply, Verdict};
    use crate::protocol::Step;
    use crate::protocol::waiting::tests::{at, ms};

    #[test]
    fn an_answer_shows_a_jump_also_where_it_says_that_the_key_is_gone() {
        let readings = [None, Some(Reading { sent: at(0), server_us: 1_000_000 })];
        let tag = Tag { round: 2, step: Step::Extend, sent: at(100) };
        let answer = |verdict, ms: u64| Ok(Reply::new(verdict, ms * 1_000, 1));
        let jump = |by| Some(Jump { server: 1, by: ms(by), since: at(0), seen: at(100) });
        for (server, answer, expected) in [
            (1, answer(Verdict::Ok, 1_101), None),
            (1, answer(Verdict::Ok, 6_101), jump(5_000)),
            (1, answer(Verdict::No { holder: None, remaining: Remaining::Gone }, 61_101), jump(60_000)),
            (1, answer(Verdict::Ok, 500), None),
            (1, Err(Failure::unknown(FailureKind::Timeout, "late")), None),
            (0, answer(Verdict::Ok, 61_101), None),
        ] {
            assert_eq!(Jump::shown((server, tag), &answer, &readings, at(101)), expected, "{answer:?}");
        }
    }

    #[test]
    fn a_jump_that_many_holds_see_is_reported_once_and_the_next_one_again() {
        let mut jumps = Jumps::default();
        let mut is_news = |server, since, seen| jumps.is_news(&Jump { server, by: ms(5_000), since: at(since), seen: at(seen) });
        assert!(is_news(0, 100, 200));
        assert!(!is_news(0, 100, 200), "another hold of the same renewal");
        assert!(!is_news(0, 50, 900), "a hold with a long ttl, which saw both clocks at other times");
        assert!(is_news(1, 50, 900), "another server");
        assert!(is_news(0, 200, 300), "the same hold sees a second jump");
        assert!(!is_news(0, 250, 950));
    }
}
