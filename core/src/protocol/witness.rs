//! The witness: whether the servers show that another hold came between, since ours was granted.
//!
//! A server's fence above our fence is a vote that was cast after our grant. On one server such a vote is a hold. On several
//! it may be that of an attempt which failed: only a majority of servers that voted later proves that another client may
//! have been granted the lock, for every grant needs the votes of a majority.
//!
//! Votes for our own rounds don't count. An acquire of ours without an answer may be read later, and its vote is then the higher
//! one: such a server proves nothing. So a release may find *expired* where another hold came and went, but never blames one that
//! wasn't there.

use crate::mutant::mutant;
use crate::op::{Answer, Reply, Verdict};
use crate::per_server::{PerServer, per_server};
use crate::protocol::{Quorum, Step};

/// The votes for others that the servers have shown.
#[derive(Debug)]
pub(super) struct Witness {
    quorum: Quorum,
    /// The highest vote that each server cast for us, or may yet cast.
    ours: PerServer<u64>,
    /// The highest fence that each server has shown while its key was not ours.
    shown: PerServer<u64>,
}

impl Witness {
    pub(super) fn new(quorum: Quorum) -> Self {
        Self { quorum, ours: per_server(0, quorum.servers()), shown: per_server(0, quorum.servers()) }
    }

    /// Takes a server's answer to a step of a round with the value `owner`.
    pub(super) fn receive(&mut self, server: usize, step: Step, answer: &Answer, owner: Option<&str>) {
        match answer {
            Ok(reply) if step == Step::Acquire && reply.verdict == Verdict::Vote && !mutant!(OwnVoteAccused) => {
                self.ours[server] = self.ours[server].max(reply.fence);
            }
            // The server may read the acquire at any time from now on, and vote. So no fence there proves a vote for another
            // program.
            Err(failure) if step == Step::Acquire && failure.maybe_applied && !mutant!(UnansweredVoteAccused) => {
                self.ours[server] = u64::MAX;
            }
            Ok(reply @ Reply { verdict: Verdict::No { .. }, .. }) if !is_ours(reply, owner) => {
                self.shown[server] = self.shown[server].max(reply.fence);
            }
            _ => (),
        }
    }

    /// The highest vote after `fence` that wasn't ours. A server on which our acquire may still arrive doesn't count: its vote
    /// may be ours.
    pub(super) fn latest(&self, fence: u64, is_pending: impl Fn(usize) -> bool) -> Option<u64> {
        self.above(fence, is_pending).max()
    }

    /// The number of servers that have voted for others after `fence`.
    pub(super) fn count(&self, fence: u64, is_pending: impl Fn(usize) -> bool) -> usize {
        self.above(fence, is_pending).count()
    }

    /// Whether `count` servers prove another hold.
    pub(super) fn proves(&self, count: usize) -> bool {
        let needed = if mutant!(LoneVoteProves) { 1 } else { self.quorum.needed() };
        count >= needed && !mutant!(HigherFenceIgnored)
    }

    fn above(&self, fence: u64, is_pending: impl Fn(usize) -> bool) -> impl Iterator<Item = u64> {
        let later = move |server: usize| self.shown[server] > fence.max(self.ours[server]) && !is_pending(server);
        (0..self.shown.len()).filter(move |server| later(*server)).map(|server| self.shown[server])
    }
}

fn is_ours(reply: &Reply, owner: Option<&str>) -> bool {
    owner.is_some() && reply.holder() == owner
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Remaining;
    use crate::op::{Failure, FailureKind};

    fn reply(verdict: Verdict, fence: u64) -> Answer {
        Ok(Reply::new(verdict, 0, fence))
    }

    fn no(holder: Option<&str>) -> Verdict {
        Verdict::No { holder: holder.map(str::to_owned), remaining: Remaining::Gone }
    }

    /// The fence that is proved after our fence 7. Each server voted first for us, and then answered a release.
    fn proved(servers: &[(u64, u64, Option<&str>)]) -> Option<u64> {
        let mut witness = Witness::new(Quorum::of(servers.len()));
        for (server, (ours, shown, holder)) in servers.iter().enumerate() {
            witness.receive(server, Step::Acquire, &reply(Verdict::Vote, *ours), None);
            witness.receive(server, Step::Release, &reply(no(*holder), *shown), Some("us"));
        }
        let none = |_: usize| false;
        witness.latest(7, none).filter(|_| witness.proves(witness.count(7, none)))
    }

    fn only_votes_of_others_by_a_majority_prove_a_hold() {
        for (servers, expected) in [
            (&[(7, 7, None)][..], None),
            (&[(7, 8, None)], Some(8)),
            (&[(7, 8, Some("them"))], Some(8)),
            (&[(7, 8, Some("us"))], None),
            (&[(8, 8, None)], None),
            (&[(8, 9, None)], Some(9)),
            (&[(7, 0, None)], None),
            (&[(7, 9, None), (7, 7, None), (7, 7, None)], None),
            (&[(7, 9, None), (7, 10, None), (7, 7, None)], Some(10)),
            (&[(7, 9, None), (10, 10, None), (7, 7, None)], None),
            (&[(7, 9, None), (7, 9, None), (7, 9, None), (7, 7, None), (7, 7, None)], Some(9)),
            (&[(7, 9, None), (7, 9, None), (7, 7, None), (7, 7, None), (7, 7, None)], None),
        ] {
            assert_eq!(proved(servers), expected, "{servers:?}");
        }
    }

    #[test]
    fn a_higher_fence_proves_a_hold_where_a_majority_shows_it() {
        only_votes_of_others_by_a_majority_prove_a_hold();
    }

    #[test]
    fn whose_vote_it_is_where_our_own_may_still_come_nobody_knows() {
        let mut witness = Witness::new(Quorum::of(1));
        witness.receive(0, Step::Release, &reply(no(None), 8), Some("us"));
        assert_eq!((witness.latest(7, |_| true), witness.latest(7, |_| false)), (None, Some(8)));
    }

    fn an_acquire_of_our_own_that_had_no_answer_may_be_the_higher_vote() {
        let unanswered: Answer = Err(Failure::unknown(FailureKind::Disconnected, "connection lost"));
        let refused: Answer = Err(Failure::not_applied(FailureKind::Refused, "connection refused"));
        for (before, expected) in [(&unanswered, None), (&refused, Some(8))] {
            let mut witness = Witness::new(Quorum::of(1));
            witness.receive(0, Step::Acquire, before, None);
            witness.receive(0, Step::Acquire, &reply(Verdict::Vote, 7), None);
            witness.receive(0, Step::Release, &reply(no(None), 8), Some("us"));
            assert_eq!(witness.latest(7, |_| false), expected);
        }
    }

    #[test]
    fn a_server_proves_nothing_where_our_own_acquire_had_no_answer() {
        an_acquire_of_our_own_that_had_no_answer_may_be_the_higher_vote();
    }

    #[test]
    fn the_table_notices_what_is_left_out() {
        use crate::mutant::{Mutant, assert_each_noticed, assert_noticed};
        assert_each_noticed(
            [Mutant::OwnVoteAccused, Mutant::LoneVoteProves, Mutant::HigherFenceIgnored],
            only_votes_of_others_by_a_majority_prove_a_hold,
        );
        assert_noticed(Mutant::UnansweredVoteAccused, an_acquire_of_our_own_that_had_no_answer_may_be_the_higher_vote);
    }
}
