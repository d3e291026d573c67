//! Replids: the replication ids of a server, and which of them is the present one. Pure.
//!
//! A promoted replica may lack the latest locks, and so may a server that was restarted. Either has a new id, which it shows as
//! `master_replid`. All connections to a server have one id: otherwise one process would renew on the old primary, and
//! acquire on the new one.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::mutant::mutant;
use crate::server::redis::commands::handshake_facts::Replid;

/// The time for which an id that was left does not come back. An old primary that is isolated, or was started again, still calls
/// itself a primary.
const LEFT: Duration = Duration::from_secs(60);

/// The time after which an id that was left may come back, because no connection to a later one is up.
const ALONE: Duration = Duration::from_secs(3);

/// How many of the ids that were left are remembered.
const REMEMBERED: usize = 16;

/// The meaning of an id that a node shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Assessment {
    /// It is the present id, or the first that was seen.
    Present,
    /// It is a new id, which follows this one.
    Follows(Replid),
    /// It was left a moment ago, for a later one.
    Left,
}

/// The replication ids of one server, as its connections have seen them.
#[derive(Debug, Default)]
pub(crate) struct Replids {
    present: Option<Replid>,
    /// The number of the present id: each new one has a larger number.
    number: u64,
    /// The connections that are up with the present id, and the time since which there is none.
    up: usize,
    alone_since: Tick,
    /// The ids that were left, and when. The last one comes last.
    left: Vec<(Arc<str>, Tick)>,
    /// Until then the present id has no votes: it was left before, and may lack locks of the id that came between.
    votes_from: Tick,
}

impl Replids {
    /// The number of the present id.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The present id, if a node has shown one.
    pub(crate) fn present(&self) -> Option<&Arc<str>> {
        self.present.as_ref().map(|present| &present.id)
    }

    /// The time from which on the present id has votes.
    pub(crate) fn votes_from(&self) -> Tick {
        self.votes_from
    }

    /// Assesses the id that a node shows in a handshake. With `max_ttl` an id that was left and comes back has no votes for that
    /// time: the id that came between may have holds that it doesn't know.
    pub(crate) fn assess(&mut self, shown: &Replid, max_ttl: Option<Duration>, now: Tick) -> Assessment {
        let Some(present) = &mut self.present else {
            self.present = Some(shown.clone());
            self.leave_earlier(shown, now);
            return Assessment::Present;
        };
        // A primary lets its backlog go an hour after its last replica left. It then changes its id.
        let is_renamed = present.run_id.is_some() && present.run_id == shown.run_id && shown.is_first;
        if present.id == shown.id || is_renamed {
            *present = shown.clone();
            return Assessment::Present;
        }
        let span = LEFT.max(max_ttl.unwrap_or_default());
        let left_at = self.left.iter().find(|(id, _)| *id == shown.id).map(|(_, at)| *at);
        let is_alone = self.up == 0 && now >= self.alone_since.after(ALONE);
        if left_at.is_some_and(|at| now < at.after(span)) && !is_alone && !mutant!(LeftReplidReturns) {
            return Assessment::Left;
        }
        let comes_back = left_at.is_some() && !mutant!(LeftReplidVotes);
        self.votes_from = max_ttl.filter(|_| comes_back).map_or(Tick::default(), |max_ttl| now.after(max_ttl));
        let before = std::mem::replace(present, shown.clone());
        self.left.retain(|(id, _)| *id != shown.id);
        self.left.push((Arc::clone(&before.id), now));
        self.leave_earlier(shown, now);
        self.left.drain(..self.left.len().saturating_sub(REMEMBERED));
        self.number += 1;
        (self.up, self.alone_since) = (0, now);
        Assessment::Follows(before)
    }

    /// Leaves the id that this one has followed, by what its node shows. The old primary's handshake may come only now, or may have
    /// begun before that of its successor.
    fn leave_earlier(&mut self, shown: &Replid, now: Tick) {
        let is_known = |id: &Arc<str>| self.left.iter().any(|(left, _)| left == id);
        let before = shown.before.as_ref().filter(|id| !is_known(id) && **id != shown.id && !mutant!(OldPrimaryFollows));
        self.left.extend(before.map(|id| (Arc::clone(id), now)));
    }

    /// A connection is up with the present id.
    pub(crate) fn connected(&mut self) {
        self.up += 1;
    }

    /// A connection of the id with this number is gone.
    pub(crate) fn disconnected(&mut self, number: u64, now: Tick) {
        if number == self.number {
            self.up = self.up.saturating_sub(1);
            self.alone_since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replid(id: &str, run_id: &str) -> Replid {
        Replid { id: id.into(), run_id: Some(run_id.into()), is_first: false, before: None }
    }

    fn at(seconds: u64) -> Tick {
        Tick::from_micros(seconds * 1_000_000)
    }

    fn follows(before: &Replid) -> Assessment {
        Assessment::Follows(before.clone())
    }

    #[test]
    fn a_promotion_a_restart_and_a_demotion_in_one_run_each_give_a_new_replid() {
        let (first, promoted, restarted, again) =
            (replid("e1", "r1"), replid("e2", "r2"), replid("e3", "r2b"), replid("e4", "r2b"));
        let mut replids = Replids::default();
        for (number, shown, expected) in [
            (0, &first, Assessment::Present),
            (0, &first, Assessment::Present),
            (1, &promoted, follows(&first)),
            (1, &promoted, Assessment::Present),
            (2, &restarted, follows(&promoted)),
            (3, &again, follows(&restarted)),
        ] {
            assert_eq!((replids.assess(shown, None, at(1)), replids.number()), (expected, number), "{shown:?}");
        }
    }

    #[test]
    fn a_primary_without_replicas_for_an_hour_counts_under_its_new_replid() {
        let (first, renamed) = (replid("e1", "r1"), Replid { is_first: true, ..replid("e2", "r1") });
        let mut replids = Replids::default();
        replids.assess(&first, None, at(1));
        assert_eq!((replids.assess(&renamed, None, at(2)), replids.number()), (Assessment::Present, 0));
        assert_eq!(replids.assess(&renamed, None, at(3)), Assessment::Present);
        let restarted = Replid { is_first: true, ..replid("e3", "r2") };
        assert_eq!(replids.assess(&restarted, None, at(4)), follows(&renamed), "another process has no id before either");
        let nameless = Replid { run_id: None, is_first: true, ..replid("e4", "") };
        assert_eq!(replids.assess(&nameless, None, at(5)), follows(&restarted));
        assert_eq!(replids.assess(&Replid { id: "e5".into(), ..nameless.clone() }, None, at(6)), follows(&nameless));
    }

    fn a_replid_that_was_left_stays_left() {
        let (first, second) = (replid("e1", "r1"), replid("e2", "r2"));
        let left_for_second = |connections: usize| {
            let mut replids = Replids::default();
            replids.assess(&first, None, at(1));
            replids.connected();
            replids.assess(&second, None, at(100));
            // A connection with the old id that breaks now is no news of the new one.
            replids.disconnected(0, at(100));
            (0..connections).for_each(|_| replids.connected());
            replids
        };
        // The last column is the second from which on the id has votes, if it comes back.
        for (connections, ended, max_ttl, when, votes_from) in [
            (1, 0, None, 101, None),
            (1, 0, None, 159, None),
            (1, 0, None, 160, Some(0)),
            (2, 1, None, 159, None),
            (2, 2, None, 122, None),
            (2, 2, None, 123, Some(0)),
            (2, 2, Some(5), 122, None),
            (2, 2, Some(5), 123, Some(128)),
            (2, 1, Some(5), 159, None),
            (2, 1, Some(5), 160, Some(165)),
            (2, 1, Some(90), 189, None),
            (2, 1, Some(90), 9_000, Some(9_090)),
            (0, 0, None, 102, None),
            (0, 0, None, 103, Some(0)),
        ] {
            let mut replids = left_for_second(connections);
            (0..ended).for_each(|_| replids.disconnected(1, at(120)));
            let expected = if votes_from.is_some() { follows(&second) } else { Assessment::Left };
            let case = (connections, ended, max_ttl, when);
            assert_eq!(replids.assess(&first, max_ttl.map(Duration::from_secs), at(when)), expected, "{case:?}");
            assert_eq!(replids.number(), if votes_from.is_some() { 2 } else { 1 }, "{case:?}");
            assert_eq!(replids.votes_from(), at(votes_from.unwrap_or(0)), "{case:?}");
        }
    }

    #[test]
    fn a_replid_that_follows_another_one_for_the_first_time_has_the_quarantine_of_its_server_alone() {
        let (first, second, third) = (replid("e1", "r1"), replid("e2", "r2"), replid("e3", "r3"));
        let mut replids = Replids::default();
        let mut shows = |shown: &Replid, second: u64| {
            replids.assess(shown, Some(Duration::from_secs(5)), at(second));
            (replids.votes_from(), replids.left.len())
        };
        assert_eq!([shows(&first, 1), shows(&second, 2)], [(at(0), 0), (at(0), 1)]);
        assert_eq!(shows(&first, 90), (at(95), 1), "it is left no more, and the second one is");
        assert_eq!(shows(&third, 91), (at(0), 2), "a new primary after that");
        for number in 4..40 {
            assert!(shows(&replid(&format!("e{number}"), "r"), 91 + number).1 <= REMEMBERED);
        }
    }

    #[test]
    fn a_replid_that_was_left_comes_back_after_a_minute_or_where_nothing_else_is_there() {
        a_replid_that_was_left_stays_left();
    }

    #[test]
    fn a_replid_that_comes_back_at_once_or_without_quarantine_is_noticed() {
        use crate::mutant::{Mutant, assert_each_noticed};
        assert_each_noticed([Mutant::LeftReplidReturns, Mutant::LeftReplidVotes], a_replid_that_was_left_stays_left);
    }

    #[test]
    fn the_replid_that_gave_way_is_left_in_its_turn() {
        let (first, second) = (replid("e1", "r1"), replid("e2", "r2"));
        let mut replids = Replids::default();
        replids.assess(&first, None, at(1));
        replids.assess(&second, None, at(2));
        assert_eq!(replids.assess(&first, None, at(62)), follows(&second));
        replids.connected();
        assert_eq!(replids.assess(&second, None, at(63)), Assessment::Left);
        assert_eq!(replids.assess(&first, None, at(63)), Assessment::Present);
    }

    fn the_replid_that_a_node_has_followed_was_left() {
        let (old, new) = (replid("e1", "r1"), Replid { before: Some("e1".into()), ..replid("e2", "r2") });
        let mut replids = Replids::default();
        assert_eq!(replids.assess(&new, None, at(1)), Assessment::Present);
        replids.connected();
        // The handshake of the old primary began first, and ends last.
        assert_eq!(replids.assess(&old, None, at(2)), Assessment::Left);
        let third = Replid { before: Some("e2b".into()), ..replid("e3", "r3") };
        assert_eq!(replids.assess(&third, None, at(3)), follows(&new));
        replids.connected();
        for left in ["e1", "e2", "e2b"] {
            assert_eq!(replids.assess(&replid(left, "r"), None, at(4)), Assessment::Left, "{left}");
        }
    }

    #[test]
    fn an_old_primary_whose_handshake_ends_last_does_not_follow_its_successor() {
        the_replid_that_a_node_has_followed_was_left();
    }

    #[test]
    fn an_old_primary_that_follows_its_successor_is_noticed() {
        use crate::mutant::{Mutant, assert_noticed};
        assert_noticed(Mutant::OldPrimaryFollows, the_replid_that_a_node_has_followed_was_left);
    }
}
