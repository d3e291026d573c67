//! The vote: whether a round over N servers grants the lock, and with which fence.
//!
//! A fence is an *attested ballot*. Each server that gives us its key casts a vote, a number above every vote it cast
//! before. If a majority voted the same number, that number is attested. Otherwise the largest vote counted is written back,
//! and is attested once a majority either voted exactly it or confirmed it: then every later majority contains a server that
//! will vote higher. A server that has moved on to a newer vote refuses to confirm.

use crate::mutant::mutant;
use crate::per_server::{PerServer, per_server};
use crate::protocol::Quorum;

/// The vote of one server in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Vote {
    #[default]
    Pending,
    Cast(u64),
    Confirmed,
    Against,
}

/// The standing of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The round is not decided yet.
    Open,
    /// The fence is chosen, but must be confirmed. This is given once, at the moment of the choice.
    Confirm(u64),
    /// A majority attests the fence.
    Granted(u64),
    /// No majority is possible any more.
    Failed,
}

/// The request for a server whose vote came after the fence was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// None: the vote counts.
    Keep,
    /// A confirmation: the vote is lower than the fence.
    Confirm,
    /// A release: the vote is higher than the fence.
    Release,
}

/// The votes of one acquire round.
#[derive(Clone, Debug)]
pub struct Ballot {
    quorum: Quorum,
    votes: PerServer<Vote>,
    fence: Option<u64>,
}

impl Ballot {
    /// An empty ballot.
    #[must_use]
    pub fn new(quorum: Quorum) -> Self {
        Self { quorum, votes: per_server(Vote::Pending, quorum.servers()), fence: None }
    }

    /// The fence, once chosen.
    #[must_use]
    pub fn fence(&self) -> Option<u64> {
        self.fence
    }

    /// Whether the server has not answered the acquire yet.
    #[must_use]
    pub fn is_pending(&self, server: usize) -> bool {
        self.votes[server] == Vote::Pending
    }

    /// Whether the server's answer leaves no trace of us on it.
    #[must_use]
    pub fn is_against(&self, server: usize) -> bool {
        self.votes[server] == Vote::Against
    }

    /// Whether the server's vote differs from the fence that was chosen since, and the server has not confirmed the fence.
    #[must_use]
    pub fn is_unconfirmed(&self, server: usize) -> bool {
        self.fence.is_some_and(|fence| matches!(self.votes[server], Vote::Cast(cast) if cast != fence))
    }

    /// Whether the server's vote is above `fence`.
    #[must_use]
    pub fn is_above(&self, server: usize, fence: u64) -> bool {
        matches!(self.votes[server], Vote::Cast(cast) if cast > fence)
    }

    /// Counts a server's `vote`. Gives the standing of the round, and the request that a vote after the choice needs.
    pub fn cast(&mut self, server: usize, vote: u64) -> (Standing, Late) {
        if self.votes[server] != Vote::Pending {
            return (self.standing(), Late::Keep);
        }
        self.votes[server] = Vote::Cast(vote);
        let late = match self.fence {
            Some(fence) if vote > fence && !mutant!(VoteAboveCounts) => Late::Release,
            // One more request, even while a request to confirm is under way: that one may have overtaken the acquire.
            Some(fence) if vote < fence => Late::Confirm,
            _ => Late::Keep,
        };
        (self.standing_after_vote(), late)
    }

    /// Counts a server that confirmed the fence.
    pub fn confirm(&mut self, server: usize) -> Standing {
        self.votes[server] = Vote::Confirmed;
        self.standing()
    }

    /// Counts a server that is against the round, failed, or refused to confirm.
    pub fn oppose(&mut self, server: usize) -> Standing {
        self.votes[server] = Vote::Against;
        self.standing()
    }

    /// Counts a server that refused to confirm. Its vote stays there, and counts only if it was exactly the fence. A server that
    /// has not voted yet was asked too early, and may still vote.
    pub fn refuse_confirmation(&mut self, server: usize) -> Standing {
        let vote = self.votes[server];
        if vote != Vote::Pending && vote != Vote::Cast(self.fence.unwrap_or(0)) {
            self.votes[server] = Vote::Against;
        }
        self.standing()
    }

    /// The servers whose vote is below the fence and needs a confirmation, and those whose vote is above it and must be released.
    pub fn others(&self, fence: u64) -> impl Iterator<Item = (usize, Late)> + '_ {
        self.votes.iter().enumerate().filter_map(move |(server, vote)| match *vote {
            Vote::Cast(cast) if cast < fence => Some((server, Late::Confirm)),
            Vote::Cast(cast) if cast > fence => Some((server, Late::Release)),
            _ => None,
        })
    }

    fn standing_after_vote(&mut self) -> Standing {
        if self.fence.is_some() {
            return self.standing();
        }
        let cast = || self.votes.iter().filter_map(|vote| if let Vote::Cast(cast) = vote { Some(*cast) } else { None });
        if cast().count() < self.quorum.needed() {
            return self.standing();
        }
        let Some(largest) = cast().max() else { return self.standing() };
        self.fence = Some(largest);
        if cast().filter(|vote| *vote == largest).count() >= self.quorum.needed() || mutant!(NoWriteBack) {
            return Standing::Granted(largest);
        }
        Standing::Confirm(largest)
    }

    /// The standing of the round.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let attested = |vote: &&Vote| match (**vote, self.fence) {
            (Vote::Confirmed, _) => true,
            (Vote::Cast(cast), Some(fence)) => cast == fence || (cast > fence && mutant!(VoteAboveCounts)),
            _ => false,
        };
        if let Some(fence) = self.fence
            && self.votes.iter().filter(attested).count() >= self.quorum.needed()
        {
            return Standing::Granted(fence);
        }
        let hopeless = |vote: &&Vote| match (**vote, self.fence) {
            (Vote::Against, _) => true,
            (Vote::Cast(cast), Some(fence)) => cast > fence,
            _ => false,
        };
        if self.quorum.blocked_by(self.votes.iter().filter(hopeless).count()) { Standing::Failed } else { Standing::Open }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ballot(servers: usize) -> Ballot {
        Ballot::new(Quorum::of(servers))
    }

    #[test]
    fn one_server_is_a_quorum_of_one() {
        let mut one = ballot(1);
        assert_eq!(one.cast(0, 7), (Standing::Granted(7), Late::Keep));
        assert_eq!(ballot(1).oppose(0), Standing::Failed);
    }

    #[test]
    fn equal_votes_of_a_majority_grant_in_one_round() {
        let mut three = ballot(3);
        assert_eq!(three.cast(0, 7).0, Standing::Open);
        assert_eq!(three.cast(2, 7).0, Standing::Granted(7));
        assert_eq!(three.cast(1, 6), (Standing::Granted(7), Late::Confirm));
    }

    #[test]
    fn unequal_votes_are_written_back_before_they_grant() {
        let mut three = ballot(3);
        three.cast(0, 7);
        assert_eq!(three.cast(1, 9).0, Standing::Confirm(9));
        assert_eq!(three.cast(2, 8), (Standing::Open, Late::Confirm));
        assert_eq!(three.confirm(2), Standing::Granted(9));
    }

    #[test]
    fn a_late_vote_above_the_token_never_counts() {
        let mut three = ballot(3);
        three.cast(0, 7);
        three.cast(1, 9);
        assert_eq!(three.cast(2, 10), (Standing::Open, Late::Release));
        assert_eq!(three.refuse_confirmation(0), Standing::Failed);
    }

    #[test]
    fn a_confirmation_that_overtook_the_acquire_is_asked_again() {
        let mut three = ballot(3);
        three.cast(0, 7);
        three.cast(1, 9);
        three.oppose(0);
        assert_eq!(three.refuse_confirmation(2), Standing::Open, "it has not voted yet");
        assert_eq!(three.cast(2, 8), (Standing::Open, Late::Confirm));
        assert_eq!(three.confirm(2), Standing::Granted(9));
    }

    #[test]
    fn a_refused_confirmation_does_not_take_an_exact_vote_away() {
        let mut three = ballot(3);
        three.cast(0, 7);
        three.cast(1, 9);
        assert_eq!(three.refuse_confirmation(1), Standing::Open);
        assert_eq!(three.confirm(0), Standing::Granted(9));
    }

    #[test]
    fn a_round_fails_when_no_majority_is_left() {
        let mut five = ballot(5);
        assert_eq!(five.oppose(0), Standing::Open);
        assert_eq!(five.oppose(1), Standing::Open);
        assert_eq!(five.oppose(2), Standing::Failed);
        let mut even = ballot(4);
        assert_eq!(even.oppose(0), Standing::Open);
        assert_eq!(even.oppose(1), Standing::Failed, "2 of 4 is no majority");
    }
}
