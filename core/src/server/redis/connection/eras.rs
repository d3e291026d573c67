//! Eras: the stretches of a server's history without loss, and which of them is the present one. Pure.
//!
//! A promoted replica may lack the latest locks, and so may a server that was restarted. Either begins an era. A node shows its era
//! as `master_replid`. All connections to a server are in one era: otherwise one process would renew on the old primary, and
//! acquire on the new one.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::mutant::mutant;
use crate::server::redis::commands::greeting::Era;

/// The time for which an era that was left does not come back. An old primary that is isolated, or was started again, still calls
/// itself a primary.
const LEFT: Duration = Duration::from_secs(60);

/// The time after which an era that was left may come back, because no connection to a later one is up.
const ALONE: Duration = Duration::from_secs(3);

/// How many of the eras that were left are remembered.
const REMEMBERED: usize = 16;

/// The meaning of an era that a node shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It is the present era, or the first that was seen.
    Present,
    /// It is a new era, which follows this one.
    Follows(Era),
    /// It was left a moment ago, for a later one.
    Left,
}

/// The eras of one server, as its connections have seen them.
#[derive(Debug, Default)]
pub(crate) struct Eras {
    present: Option<Era>,
    /// The number of the present era: each new one has a larger number.
    number: u64,
    /// The connections that are up in the present era, and the time since which there is none.
    up: usize,
    alone_since: Tick,
    /// The eras that were left, and when. The last one comes last.
    left: Vec<(Arc<str>, Tick)>,
    /// Until then the present era has no votes: it was left before, and may lack locks of the era that came between.
    votes_from: Tick,
}

impl Eras {
    /// The number of the present era.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The present era, if a node has shown one.
    pub(crate) fn present(&self) -> Option<&Arc<str>> {
        self.present.as_ref().map(|present| &present.id)
    }

    /// The time from which on the present era has votes.
    pub(crate) fn votes_from(&self) -> Tick {
        self.votes_from
    }

    /// Judges the era that a node shows in a greeting. With `max_ttl` an era that was left and comes back has no votes for that time:
    /// the era that came between may have holds that it doesn't know.
    pub(crate) fn greeted(&mut self, shown: &Era, max_ttl: Option<Duration>, now: Tick) -> Judgement {
        let Some(present) = &mut self.present else {
            self.present = Some(shown.clone());
            self.leave_earlier(shown, now);
            return Judgement::Present;
        };
        // A primary lets its backlog go an hour after its last replica left. It then calls its era by another name.
        let is_renamed = present.run_id.is_some() && present.run_id == shown.run_id && shown.is_first;
        if present.id == shown.id || is_renamed {
            *present = shown.clone();
            return Judgement::Present;
        }
        let span = LEFT.max(max_ttl.unwrap_or_default());
        let left_at = self.left.iter().find(|(id, _)| *id == shown.id).map(|(_, at)| *at);
        let is_alone = self.up == 0 && now >= self.alone_since.after(ALONE);
        if left_at.is_some_and(|at| now < at.after(span)) && !is_alone && !mutant!(LeftEraReturns) {
            return Judgement::Left;
        }
        let comes_back = left_at.is_some() && !mutant!(LeftEraVotes);
        self.votes_from = max_ttl.filter(|_| comes_back).map_or(Tick::default(), |max_ttl| now.after(max_ttl));
        let before = std::mem::replace(present, shown.clone());
        self.left.retain(|(id, _)| *id != shown.id);
        self.left.push((Arc::clone(&before.id), now));
        self.leave_earlier(shown, now);
        self.left.drain(..self.left.len().saturating_sub(REMEMBERED));
        self.number += 1;
        (self.up, self.alone_since) = (0, now);
        Judgement::Follows(before)
    }

    /// Leaves the era that this one has followed, by what its node shows. The old primary may be greeted only now, or its greeting may
    /// have begun before that of its successor.
    fn leave_earlier(&mut self, shown: &Era, now: Tick) {
        let is_known = |id: &Arc<str>| self.left.iter().any(|(left, _)| left == id);
        let before = shown.before.as_ref().filter(|id| !is_known(id) && **id != shown.id && !mutant!(OldPrimaryFollows));
        self.left.extend(before.map(|id| (Arc::clone(id), now)));
    }

    /// A connection is up in the present era.
    pub(crate) fn connected(&mut self) {
        self.up += 1;
    }

    /// A connection of the era with this number is gone.
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

    fn era(id: &str, run_id: &str) -> Era {
        Era { id: id.into(), run_id: Some(run_id.into()), is_first: false, before: None }
    }

    fn at(seconds: u64) -> Tick {
        Tick::from_micros(seconds * 1_000_000)
    }

    fn follows(before: &Era) -> Judgement {
        Judgement::Follows(before.clone())
    }

    #[test]
    fn a_promotion_a_restart_and_a_demotion_in_one_run_each_begin_an_era() {
        let (first, promoted, restarted, again) = (era("e1", "r1"), era("e2", "r2"), era("e3", "r2b"), era("e4", "r2b"));
        let mut eras = Eras::default();
        for (number, shown, expected) in [
            (0, &first, Judgement::Present),
            (0, &first, Judgement::Present),
            (1, &promoted, follows(&first)),
            (1, &promoted, Judgement::Present),
            (2, &restarted, follows(&promoted)),
            (3, &again, follows(&restarted)),
        ] {
            assert_eq!((eras.greeted(shown, None, at(1)), eras.number()), (expected, number), "{shown:?}");
        }
    }

    #[test]
    fn a_primary_without_replicas_for_an_hour_is_in_the_same_era() {
        let (first, renamed) = (era("e1", "r1"), Era { is_first: true, ..era("e2", "r1") });
        let mut eras = Eras::default();
        eras.greeted(&first, None, at(1));
        assert_eq!((eras.greeted(&renamed, None, at(2)), eras.number()), (Judgement::Present, 0));
        assert_eq!(eras.greeted(&renamed, None, at(3)), Judgement::Present);
        let restarted = Era { is_first: true, ..era("e3", "r2") };
        assert_eq!(eras.greeted(&restarted, None, at(4)), follows(&renamed), "another process has no era before either");
        let nameless = Era { run_id: None, is_first: true, ..era("e4", "") };
        assert_eq!(eras.greeted(&nameless, None, at(5)), follows(&restarted));
        assert_eq!(eras.greeted(&Era { id: "e5".into(), ..nameless.clone() }, None, at(6)), follows(&nameless));
    }

    fn an_era_that_was_left_stays_left() {
        let (first, second) = (era("e1", "r1"), era("e2", "r2"));
        let left_for_second = |connections: usize| {
            let mut eras = Eras::default();
            eras.greeted(&first, None, at(1));
            eras.connected();
            eras.greeted(&second, None, at(100));
            // A connection of the old era that breaks now says nothing of the new one.
            eras.disconnected(0, at(100));
            (0..connections).for_each(|_| eras.connected());
            eras
        };
        // The last column is the second from which on the era has votes, if it comes back.
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
            let mut eras = left_for_second(connections);
            (0..ended).for_each(|_| eras.disconnected(1, at(120)));
            let expected = if votes_from.is_some() { follows(&second) } else { Judgement::Left };
            let case = (connections, ended, max_ttl, when);
            assert_eq!(eras.greeted(&first, max_ttl.map(Duration::from_secs), at(when)), expected, "{case:?}");
            assert_eq!(eras.number(), if votes_from.is_some() { 2 } else { 1 }, "{case:?}");
            assert_eq!(eras.votes_from(), at(votes_from.unwrap_or(0)), "{case:?}");
        }
    }

    #[test]
    fn an_era_that_follows_another_one_for_the_first_time_has_the_quarantine_of_its_server_alone() {
        let (first, second, third) = (era("e1", "r1"), era("e2", "r2"), era("e3", "r3"));
        let mut eras = Eras::default();
        let mut greets = |shown: &Era, second: u64| {
            eras.greeted(shown, Some(Duration::from_secs(5)), at(second));
            (eras.votes_from(), eras.left.len())
        };
        assert_eq!([greets(&first, 1), greets(&second, 2)], [(at(0), 0), (at(0), 1)]);
        assert_eq!(greets(&first, 90), (at(95), 1), "it is left no more, and the second one is");
        assert_eq!(greets(&third, 91), (at(0), 2), "a new primary after that");
        for number in 4..40 {
            assert!(greets(&era(&format!("e{number}"), "r"), 91 + number).1 <= REMEMBERED);
        }
    }

    #[test]
    fn an_era_that_was_left_comes_back_after_a_minute_or_where_nothing_else_is_there() {
        an_era_that_was_left_stays_left();
    }

    #[test]
    fn an_era_that_comes_back_at_once_or_without_quarantine_is_noticed() {
        use crate::mutant::{Mutant, assert_noticed};
        for mutant in [Mutant::LeftEraReturns, Mutant::LeftEraVotes] {
            assert_noticed(mutant, an_era_that_was_left_stays_left);
        }
    }

    #[test]
    fn the_era_that_gave_way_is_left_in_its_turn() {
        let (first, second) = (era("e1", "r1"), era("e2", "r2"));
        let mut eras = Eras::default();
        eras.greeted(&first, None, at(1));
        eras.greeted(&second, None, at(2));
        assert_eq!(eras.greeted(&first, None, at(62)), follows(&second));
        eras.connected();
        assert_eq!(eras.greeted(&second, None, at(63)), Judgement::Left);
        assert_eq!(eras.greeted(&first, None, at(63)), Judgement::Present);
    }

    fn the_era_that_a_node_has_followed_was_left() {
        let (old, new) = (era("e1", "r1"), Era { before: Some("e1".into()), ..era("e2", "r2") });
        let mut eras = Eras::default();
        assert_eq!(eras.greeted(&new, None, at(1)), Judgement::Present);
        eras.connected();
        // The greeting of the old primary began first, and ends last.
        assert_eq!(eras.greeted(&old, None, at(2)), Judgement::Left);
        let third = Era { before: Some("e2b".into()), ..era("e3", "r3") };
        assert_eq!(eras.greeted(&third, None, at(3)), follows(&new));
        eras.connected();
        for left in ["e1", "e2", "e2b"] {
            assert_eq!(eras.greeted(&era(left, "r"), None, at(4)), Judgement::Left, "{left}");
        }
    }

    #[test]
    fn an_old_primary_whose_greeting_ends_last_does_not_follow_its_successor() {
        the_era_that_a_node_has_followed_was_left();
    }

    #[test]
    fn an_old_primary_that_follows_its_successor_is_noticed() {
        use crate::mutant::{Mutant, assert_noticed};
        assert_noticed(Mutant::OldPrimaryFollows, the_era_that_a_node_has_followed_was_left);
    }
}
