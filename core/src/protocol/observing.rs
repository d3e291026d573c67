//! Observing: who leads, by what the servers show, and when to look again.

use std::time::{Duration, SystemTime};

use crate::clock::Tick;
use crate::error::{Code, Error, Remaining};
use crate::mutant::mutant;
use crate::op::holder::is_kept;
use crate::op::{Answer, Reply, Verdict};
use crate::owner::OwnerFields;
use crate::protocol::{Quorum, inspect};

/// The longest pause between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// The pause after a look that did not show who leads: a new leader is about to be confirmed, or servers can't be reached.
const UNSURE: Duration = Duration::from_millis(200);

/// The pause between an announcement and the look for it: each server of a quorum announces the same.
pub(crate) const GATHERS: Duration = Duration::from_millis(5);

/// The leader that an observer saw.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The owner value. A person can read in it which program leads; see [`OwnerFields`](crate::OwnerFields).
    pub owner: String,
    /// The term: its fence.
    pub term: u64,
    /// The time at which the leader asked for its term, by its own clock.
    pub since: Option<SystemTime>,
    /// How long its term remained on the servers at the look, if nothing renews it.
    pub remaining: Remaining,
}

/// What an observer saw.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Observation {
    /// The leader; `None` if nobody leads, or if that is unknown.
    pub leader: Option<Leader>,
    /// Whether the servers didn't show who leads: no majority of them agrees, or too few can be reached. The last leader may still
    /// lead.
    pub unknown: bool,
}

impl Observation {
    const NOBODY: Self = Self { leader: None, unknown: false };
    const UNKNOWN: Self = Self { leader: None, unknown: true };

    fn shows_the_same_as(&self, other: &Self) -> bool {
        let leader = |seen: &Self| seen.leader.as_ref().map(|leader| (leader.term, leader.owner.clone()));
        self.unknown == other.unknown && leader(self) == leader(other)
    }
}

/// What the servers show; `None` while a majority could still answer. A leader is one that a majority shows with one term: before
/// its confirmation the servers' votes differ.
pub fn observe(name: &str, servers: &[String], answers: &[Option<Answer>]) -> Option<Result<Observation, Error>> {
    let quorum = Quorum::of(answers.len());
    let shown: Vec<_> = answers.iter().filter_map(|answer| shown(answer.as_ref()?.as_ref().ok()?)).collect();
    let count = |leader: Option<(&str, u64)>| {
        shown.iter().filter(|other| other.as_ref().map(|leader| (&*leader.owner, leader.term)) == leader).count()
    };
    let majority = shown.iter().flatten().filter(|leader| count(Some((&leader.owner, leader.term))) >= quorum.needed());
    if let Some(leader) = majority.max_by_key(|leader| leader.remaining) {
        return Some(Ok(Observation { leader: Some(leader.clone()), unknown: false }));
    }
    if count(None) >= quorum.needed() {
        return Some(Ok(Observation::NOBODY));
    }
    if answers.iter().any(Option::is_none) {
        return None;
    }
    match inspect(name, servers, answers) {
        Some(Err(error)) if error.code() != Code::Unavailable => Some(Err(error)),
        _ => Some(Ok(Observation::UNKNOWN)),
    }
}

/// The leader that a server shows, or none; `None` if its answer shows neither. What another library holds is no leader.
fn shown(reply: &Reply) -> Option<Option<Leader>> {
    let Verdict::Seen { holder, remaining, inside } = &reply.verdict else { return None };
    // A lock that is kept after a release has no holder, and those who share one don't lead.
    let leader = holder.as_deref().filter(|owner| !is_kept(owner) && inside.is_none()).and_then(|owner| {
        let since = OwnerFields::parse(owner)?.at;
        Some(Leader { owner: owner.to_owned(), term: reply.fence, since, remaining: *remaining })
    });
    // Who takes a lock in parts, as its slot moves, notes its term last.
    let is_unnoted = leader.as_ref().is_some_and(|leader| leader.term == 0);
    (!is_unnoted).then_some(leader)
}

/// An observer's memory.
#[derive(Debug, Default)]
pub struct Observing {
    last: Option<Observation>,
    /// What was given before that, as long as nobody may have got the last one.
    before: Option<Option<Observation>>,
    /// The largest term so far.
    term: u64,
    next_look: Tick,
    /// The time at which an announcement wants a look, since the last look began.
    announced: Option<Tick>,
    /// The numbers of the last look that began, and of the last one that was taken.
    pub(crate) looks: u64,
    taken: u64,
}

impl Observing {
    /// The time of the next look.
    #[must_use]
    pub fn next_look(&self) -> Tick {
        self.next_look
    }

    /// Takes note of an announcement, and gives the time of the look for it.
    pub fn announce(&mut self, now: Tick) -> Tick {
        let at = now.after(GATHERS);
        self.announced.get_or_insert(at);
        self.next_look = self.next_look.min(at);
        at
    }

    /// Begins a look, which shows what was announced before, and gives its number.
    pub fn begin_look(&mut self) -> u64 {
        (self.announced, self.before) = (None, None);
        self.looks += 1;
        self.looks
    }

    /// Takes what the look with this number showed, and gives it if that is news. It is none if a later look was answered before: on another
    /// connection, or by other servers.
    pub fn take(&mut self, look: u64, seen: Observation, now: Tick) -> Option<Observation> {
        if look < self.taken && !mutant!(EarlierLookBelieved) {
            return None;
        }
        self.taken = look;
        // The server rounds to whole milliseconds: one more, and the key is surely gone.
        let pause = match seen.leader.as_ref().map(|leader| leader.remaining) {
            _ if seen.unknown => UNSURE,
            Some(Remaining::For(left)) => LOOK.min(left + Duration::from_millis(1)),
            _ => LOOK,
        };
        self.next_look = now.after(pause);
        let mut seen = seen;
        if let Some(leader) = &seen.leader {
            if leader.term < self.term && !mutant!(ObserverGoesBack) {
                // A server whose clock is behind, after a failover or without its data: a candidate may lead, in an unknown order.
                seen = Observation::UNKNOWN;
                self.next_look = now.after(UNSURE);
            } else {
                self.term = leader.term;
            }
        }
        // What was announced meanwhile may be newer than what was seen.
        self.next_look = self.announced.map_or(self.next_look, |at| self.next_look.min(at));
        if self.last.as_ref().is_some_and(|last| last.shows_the_same_as(&seen)) {
            return None;
        }
        self.before = Some(self.last.replace(seen.clone()));
        Some(seen)
    }

    /// Takes back the news that nobody got.
    pub fn take_back(&mut self) {
        if let Some(before) = self.before.take() {
            (self.last, self.next_look) = (before, Tick::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Failure, FailureKind};

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn owner(id: &str) -> String {
        format!("host=h pid=1 at=2026-11-25T12:00:00Z id={id}")
    }

    fn reply(holder: Option<String>, fence: u64) -> Option<Answer> {
        let remaining = if holder.is_some() { Remaining::For(ms(300)) } else { Remaining::Gone };
        Some(Ok(Reply::new(Verdict::Seen { holder, remaining, inside: None }, 0, fence)))
    }

    fn leads(id: &str, term: u64) -> Option<Answer> {
        reply(Some(owner(id)), term)
    }

    fn failed(kind: FailureKind) -> Option<Answer> {
        Some(Err(Failure::unknown(kind, "no")))
    }

    fn seen(leader: Option<(&str, u64)>, unknown: bool) -> Observation {
        let leader = leader.map(|(id, term)| Leader {
            owner: owner(id),
            term,
            since: humantime::parse_rfc3339("2026-11-25T12:00:00Z").ok(),
            remaining: Remaining::For(ms(300)),
        });
        Observation { leader, unknown }
    }

    #[test]
    fn a_leader_is_one_that_a_majority_shows_in_one_term() {
        let nobody = || reply(None, 5);
        let foreign = || reply(Some("somebody".into()), 5);
        let claim = || reply(Some("claim b:1:1 x".into()), 5);
        let down = || failed(FailureKind::Timeout);
        for (answers, expected) in [
            (vec![leads("a", 7)], Some(seen(Some(("a", 7)), false))),
            (vec![nobody()], Some(seen(None, false))),
            (vec![foreign()], Some(seen(None, false))),
            (vec![claim()], Some(seen(None, false))),
            (vec![reply(Some(format!("kept {}", owner("a"))), 7)], Some(seen(None, false))),
            (vec![down()], Some(seen(None, true))),
            // Its slot moves to another node, and its term isn't noted yet.
            (vec![leads("a", 0)], Some(seen(None, true))),
            (vec![leads("a", 7), None, None], None),
            (vec![leads("a", 7), leads("a", 7), None], Some(seen(Some(("a", 7)), false))),
            (vec![leads("a", 7), down(), leads("a", 7)], Some(seen(Some(("a", 7)), false))),
            // Not confirmed yet: the votes differ.
            (vec![leads("a", 7), leads("a", 6), None], None),
            (vec![leads("a", 7), leads("a", 6), leads("b", 7)], Some(seen(None, true))),
            (vec![leads("a", 7), leads("b", 8), nobody()], Some(seen(None, true))),
            (vec![leads("a", 7), nobody(), nobody()], Some(seen(None, false))),
            (vec![leads("a", 7), nobody(), None], None),
            (vec![leads("a", 7), down(), down()], Some(seen(None, true))),
        ] {
            let servers = vec![String::new(); answers.len()];
            assert_eq!(observe("x", &servers, &answers).map(Result::unwrap), expected, "{answers:?}");
        }
    }

    #[test]
    fn what_no_look_can_change_is_an_error() {
        let conflict = Some(Ok(Reply::new(Verdict::Conflict { found: "list".into() }, 0, 0)));
        for (answer, code) in [(failed(FailureKind::Denied), Code::Denied), (conflict, Code::KeyConflict)] {
            assert_eq!(observe("x", &["s".to_owned()], &[answer]).unwrap().unwrap_err().code(), code);
        }
    }

    #[test]
    fn only_news_is_reported_and_terms_never_go_back() {
        let mut observing = Observing::default();
        let (leads, nobody, unknown) = (|id, term| seen(Some((id, term)), false), || seen(None, false), || seen(None, true));
        for (shown, news) in [
            (leads("a", 7), Some(leads("a", 7))),
            (leads("a", 7), None),
            (unknown(), Some(unknown())),
            (unknown(), None),
            (leads("a", 7), Some(leads("a", 7))),
            (nobody(), Some(nobody())),
            (leads("b", 9), Some(leads("b", 9))),
            // A server whose clock is behind: a candidate leads, in a term that is no news.
            (leads("c", 8), Some(unknown())),
            (leads("c", 8), None),
            (leads("b", 9), Some(leads("b", 9))),
        ] {
            assert_eq!(observing.take(0, shown, Tick::default()), news);
        }
    }

    #[test]
    fn news_that_nobody_got_are_news_at_the_next_look() {
        let (mut observing, now) = (Observing::default(), Tick::default().after(ms(5)));
        let (leads, nobody) = (|| seen(Some(("a", 7)), false), || seen(None, false));
        for (shown, news, is_got) in [
            (nobody(), Some(nobody()), false),
            (nobody(), Some(nobody()), true),
            (leads(), Some(leads()), false),
            (leads(), Some(leads()), false),
            (nobody(), None, true),
        ] {
            let look = observing.begin_look();
            observing.take_back();
            assert_eq!(observing.take(look, shown, now), news);
            if !is_got {
                observing.take_back();
                assert_eq!(observing.next_look(), Tick::default(), "it looks at once");
            }
        }
    }

    #[test]
    fn the_next_look_is_at_the_end_of_the_term_and_within_a_second() {
        let (mut observing, now) = (Observing::default(), Tick::default());
        assert_eq!(observing.next_look(), now);
        let mut long = seen(Some(("a", 7)), false);
        long.leader.as_mut().unwrap().remaining = Remaining::For(ms(9_000));
        for (seen, pause) in
            [(seen(Some(("a", 7)), false), 301), (long, 1_000), (seen(None, false), 1_000), (seen(None, true), 200)]
        {
            observing.take(0, seen, now);
            assert_eq!(observing.next_look(), now.after(ms(pause)));
        }
    }

    #[test]
    fn an_announcement_brings_the_next_look_forward_and_never_back() {
        let (mut observing, now) = (Observing::default(), Tick::default());
        observing.take(0, seen(None, false), now);
        for (at, next) in [(1_200, 1_000), (10, 15), (13, 15)] {
            assert_eq!(observing.announce(now.after(ms(at))), now.after(ms(at + 5)));
            assert_eq!(observing.next_look(), now.after(ms(next)));
        }
    }

    #[test]
    fn what_is_announced_during_a_look_is_looked_for_and_what_was_announced_before_is_not() {
        let (mut observing, now) = (Observing::default(), Tick::default());
        for (announced, next) in [([Some(10), None], 1_050), ([None, Some(20)], 25), ([Some(10), Some(30)], 35)] {
            let [before, during] = announced.map(|at| at.map(|at| now.after(ms(at))));
            before.map(|at| observing.announce(at));
            let look = observing.begin_look();
            during.map(|at| observing.announce(at));
            observing.take(look, seen(None, false), now.after(ms(50)));
            assert_eq!(observing.next_look(), now.after(ms(next)), "{announced:?}");
        }
    }

    #[test]
    fn a_look_that_is_answered_behind_a_later_one_is_no_news() {
        let (mut observing, now) = (Observing::default(), Tick::default());
        let (first, second) = (observing.begin_look(), observing.begin_look());
        assert!(observing.take(second, seen(None, false), now).is_some());
        assert_eq!(observing.take(first, seen(Some(("a", 7)), false), now), None);
        assert_eq!(observing.next_look(), now.after(ms(1_000)));
        let third = observing.begin_look();
        assert!(observing.take(third, seen(Some(("b", 8)), false), now).is_some());
    }

    #[test]
    fn the_planted_bug_is_noticed() {
        use crate::mutant::{Mutant, assert_noticed};
        assert_noticed(Mutant::ObserverGoesBack, only_news_is_reported_and_terms_never_go_back);
    }
}
