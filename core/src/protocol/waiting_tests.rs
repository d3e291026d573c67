//! A waiter in virtual time: when it tries again, and when it does not.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::error::Remaining;
use crate::name::{Keys, Kind};
use crate::op::{QuorumConfig, Verdict};
use crate::options::LockOptions;
use crate::owner::Signature;
use crate::wait::LocalQueues;

pub(in crate::protocol) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(in crate::protocol) const fn at(n: u64) -> Tick {
    Tick::from_micros(n * 1_000)
}

pub(in crate::protocol) fn recipe(servers: usize) -> Recipe {
    recipe_of(Kind::Exclusive, servers)
}

/// The same for a lock of this kind.
pub(in crate::protocol) fn recipe_of(kind: Kind, servers: usize) -> Recipe {
    Recipe {
        keys: Arc::new(Keys::new(kind, "", "l", servers == 1).unwrap()),
        servers: (0..servers).map(|server| format!("s{server}")).collect(),
        quorum_config: (servers > 1).then(|| QuorumConfig { servers: u32::try_from(servers).unwrap(), max_ttl_ms: 60_000 }),
        options: LockOptions { ttl: ms(10_000), ..LockOptions::default() },
        ask_all_first: false,
        busy_is_none: false,
        adopt: None,
        job: None,
        history: true,
        signature: Arc::new(Signature::new(None, "h", 1)),
        response_timeout: ms(1_000),
        unavailable_after: ms(5_000),
    }
}

/// The answer of a server that has no holder.
pub(in crate::protocol) fn gone() -> Verdict {
    Verdict::No { holder: None, remaining: Remaining::Gone }
}

/// The answer of a server to an acquire, where another program holds the lock.
pub(in crate::protocol) fn held() -> Verdict {
    Verdict::Held { holder: "id=x".into(), remaining: Remaining::For(ms(60_000)) }
}

/// A waiter in a local queue of its own.
struct Bench {
    recipe: Recipe,
    queues: LocalQueues,
    waiting: Waiting,
    rng: fastrand::Rng,
}

impl Bench {
    fn new(servers: usize, role: Role) -> Self {
        let recipe = recipe(servers);
        let mut queues = LocalQueues::new("c", "", servers);
        let waiter = Waiter { role, ..queues.join("l", 1, false) };
        Self { waiting: Waiting::new(&recipe, Some(waiter), at(0)), recipe, queues, rng: fastrand::Rng::with_seed(7) }
    }

    /// Takes a round that found the lock held for `remaining`, and `rank` waiters before us. Gives the next try.
    fn busy(&mut self, now: Tick, remaining: Remaining, rank: Option<u64>) -> Tick {
        self.busy_with("host=h pid=2 id=x", now, remaining, rank)
    }

    fn busy_with(&mut self, owner: &str, now: Tick, remaining: Remaining, rank: Option<u64>) -> Tick {
        let holder = Holder { owner: owner.to_owned(), remaining };
        self.waiting.after_busy(
            &self.recipe,
            Found { holder: &holder, by_majority: true, shows_foreign: false, rank },
            now,
            &mut self.rng,
        )
    }

    fn long_busy(&mut self, now: Tick) -> Tick {
        self.busy(now, Remaining::For(ms(60_000)), Some(0))
    }

    fn hint(&mut self, server: usize, hint: Hint, now: Tick) -> Tick {
        self.waiting.hint(&self.recipe, (server, hint), now, &mut self.rng)
    }
}

/// Whether `tick` is `low` to `high` milliseconds after `from`.
fn is_within(tick: Tick, from: Tick, low: u64, high: u64) -> bool {
    tick >= from.after(ms(low)) && tick <= from.after(ms(high))
}

#[test]
fn the_first_of_a_queue_looks_within_a_second_and_when_the_holder_expires() {
    use Remaining::{For, Forever};
    for (remaining, rank, low, high) in [
        (For(ms(60_000)), 0, 750, 1_000),
        (Forever, 0, 750, 1_000),
        (For(ms(100)), 0, 101, 102),
        (For(ms(100)), 3, 116, 117),
        (For(ms(100)), 1_000, 301, 302),
        (For(ms(0)), 0, 1, 2),
    ] {
        let mut bench = Bench::new(1, Role::First);
        let again = bench.busy(at(5), remaining, Some(rank));
        assert!(is_within(again, at(5), low, high), "{remaining:?} {rank}: {again:?}");
    }
}

#[test]
fn a_holder_of_another_library_is_looked_after_by_the_first_of_the_queue() {
    use Remaining::{For, Forever};
    let ours = "app=billing host=h pid=2 id=01a1fbe9-40cb-7c52-9d0e-1f6d2c3b4a59";
    for (servers, owner, role, remaining, low, high) in [
        (1, "0123456789abcdef0123456789abcdef", Role::First, For(ms(60_000)), 75, 125),
        (3, "0123456789abcdef0123456789abcdef", Role::First, For(ms(60_000)), 75, 125),
        (1, "0123456789abcdef0123456789abcdef", Role::First, Forever, 75, 125),
        (1, "0123456789abcdef0123456789abcdef", Role::First, For(ms(20)), 21, 22),
        (1, "claim f:c:7 host=h pid=2", Role::First, For(ms(60_000)), 750, 1_000),
        (1, &format!("kept {ours}"), Role::First, For(ms(60_000)), 750, 1_000),
        (1, ours, Role::First, For(ms(60_000)), 750, 1_000),
    ] {
        let mut bench = Bench::new(servers, role);
        // However often the waiter has found the same.
        for now in [at(5), at(7_000), at(900_000)] {
            let again = bench.busy_with(owner, now, remaining, Some(0));
            assert!(is_within(again, now, low, high), "{servers} {owner} {role:?} {remaining:?}: {again:?}");
        }
    }
    for role in [Role::OneTry, Role::Parked] {
        assert_eq!(
            Bench::new(1, role).busy_with("x", at(0), For(ms(60_000)), Some(0)),
            Tick::NEVER,
            "{role:?}: one looks for all"
        );
    }
    let mut bench = Bench::new(1, Role::First);
    bench.busy_with("x", at(0), For(ms(60_000)), Some(0));
    let again = bench.busy_with(ours, at(100), For(ms(60_000)), Some(0));
    assert!(is_within(again, at(100), 750, 1_000), "it is one of ours now: {again:?}");
}

#[test]
fn a_waiter_without_hints_polls() {
    for (rank, listens) in [(None, true), (Some(0), false)] {
        let mut bench = Bench::new(1, Role::First);
        bench.queues.set_listening(0, listens, None);
        for low in [8, 12, 18] {
            let again = bench.busy(at(0), Remaining::For(ms(60_000)), rank);
            assert!(is_within(again, at(0), low, 2 * low), "{rank:?} {listens}: {again:?}");
        }
        let last = (0..20).map(|_| bench.busy(at(0), Remaining::Forever, rank)).last();
        assert!(last.is_some_and(|last| is_within(last, at(0), 75, 150)), "never slower than a claim");
    }
}

#[test]
fn a_parked_waiter_never_tries_by_itself() {
    for role in [Role::OneTry, Role::Parked] {
        let mut bench = Bench::new(1, role);
        assert_eq!(bench.busy(at(0), Remaining::For(ms(5)), Some(0)), Tick::NEVER, "{role:?}");
        assert_eq!(bench.busy(at(9), Remaining::For(ms(5)), None), Tick::NEVER, "{role:?}, nor when nobody notifies");
        assert!(!bench.waiting.listens(0), "{role:?}: the first of the queue looks");
    }
    let first_try = |role| Bench::new(1, role).waiting.first_try(at(3), at(99));
    assert_eq!([Role::First, Role::OneTry, Role::Parked].map(first_try), [at(3), at(3), at(99)]);
}

#[test]
fn a_hint_makes_a_parked_waiter_try_once() {
    let mut bench = Bench::new(1, Role::Parked);
    for hint in [Hint::Free, Hint::Claim] {
        assert_eq!(bench.hint(0, hint, at(10)), at(10));
        assert_eq!(bench.waiting.notified_at, Some(at(10)));
        bench.waiting.round_begins();
        assert_eq!(bench.long_busy(at(11)), Tick::NEVER);
        assert_eq!(bench.waiting.notified_at, None, "the reason of its notification is over");
    }
}

#[test]
fn the_second_looks_after_the_first_when_its_time_is_over() {
    for role in [Role::First, Role::Parked] {
        let mut bench = Bench::new(1, role);
        let look = bench.hint(0, Hint::Next(ms(200)), at(0));
        assert!(is_within(look, at(0), 201, 202), "{look:?}");
        assert_eq!(bench.waiting.notified_at, None, "it wasn't its role");
    }
}

#[test]
fn a_hint_that_comes_while_a_round_is_under_way_is_not_lost() {
    for role in [Role::First, Role::OneTry, Role::Parked] {
        let mut bench = Bench::new(1, role);
        bench.waiting.round_begins();
        bench.hint(0, Hint::Free, at(1));
        assert_eq!(bench.long_busy(at(2)), at(2), "{role:?}: at once");
        bench.waiting.round_begins();
        assert!(bench.long_busy(at(3)) > at(700), "{role:?}: but once");

        let look = bench.hint(0, Hint::Next(ms(200)), at(3));
        assert_eq!(bench.long_busy(at(4)), look, "{role:?}");
    }
}

#[test]
fn what_was_said_before_a_round_is_used_up_by_it() {
    let mut bench = Bench::new(1, Role::Parked);
    bench.hint(0, Hint::Next(ms(200)), at(0));
    bench.hint(0, Hint::Free, at(0));
    bench.waiting.round_begins();
    assert_eq!(bench.long_busy(at(1)), Tick::NEVER);
}

#[test]
fn on_a_quorum_a_majority_calls_at_once_and_a_minority_after_a_pause() {
    let mut bench = Bench::new(3, Role::Parked);
    let first = bench.hint(2, Hint::Free, at(0));
    assert!(first > at(0) && first <= at(5), "{first:?}");
    assert!(bench.hint(2, Hint::Free, at(1)) > at(1), "the same server, once more");
    assert_eq!(bench.hint(0, Hint::Free, at(2)), at(2), "two of three");
    assert_eq!(bench.waiting.notified_at, Some(at(0)), "counted from the first word of it");
}

#[test]
fn on_a_quorum_a_minority_that_answers_during_a_round_counts_after_it() {
    let mut bench = Bench::new(3, Role::Parked);
    bench.waiting.round_begins();
    let soon = bench.hint(1, Hint::Free, at(7));
    assert_eq!(bench.long_busy(at(8)), soon);
    bench.waiting.round_begins();
    bench.hint(1, Hint::Free, at(9));
    bench.hint(2, Hint::Free, at(9));
    assert_eq!(bench.long_busy(at(10)), at(10));
}

#[test]
fn a_vote_that_was_split_is_tried_again_soon_in_every_role() {
    for role in [Role::First, Role::OneTry, Role::Parked] {
        let mut bench = Bench::new(3, role);
        let holder = Holder { owner: "x".to_owned(), remaining: Remaining::For(ms(9_000)) };
        let found = Found { holder: &holder, by_majority: false, shows_foreign: false, rank: Some(0) };
        let again = bench.waiting.after_busy(&bench.recipe, found, at(0), &mut bench.rng);
        assert!(is_within(again, at(0), 10, 20), "{role:?}: {again:?}");
        let hints = (0..3).map(|server| bench.hint(server, Hint::Free, at(1))).min();
        assert_eq!((hints, bench.waiting.listens(0)), (Some(Tick::NEVER), false), "{role:?}: they come from undoing such rounds");
    }
}

#[test]
fn behind_answers_that_differ_another_librarys_holder_is_looked_after_as_soon_as_behind_a_majoritys() {
    for role in [Role::First, Role::OneTry, Role::Parked] {
        let mut bench = Bench::new(3, role);
        let holder = Holder { owner: "x".to_owned(), remaining: Remaining::For(ms(9_000)) };
        let found = Found { holder: &holder, by_majority: false, shows_foreign: true, rank: Some(0) };
        for _ in 0..100 {
            let again = bench.waiting.after_busy(&bench.recipe, found, at(0), &mut bench.rng);
            assert!(is_within(again, at(0), 0, 125), "{role:?}: {again:?}");
        }
    }
}

#[test]
fn a_server_that_begins_or_ceases_to_notify_makes_the_front_look() {
    let mut bench = Bench::new(1, Role::First);
    bench.waiting.round_begins();
    assert!(bench.waiting.listens(0));
    assert_eq!(bench.long_busy(at(1)), at(1), "also after the round under way, which may have been too early");
}

#[test]
fn the_first_of_a_queue_stays_first_until_it_leaves() {
    for later in [Role::OneTry, Role::Parked, Role::First] {
        let mut bench = Bench::new(1, Role::First);
        bench.waiting.take_role(later);
        assert!(bench.long_busy(at(0)) <= at(1_000), "{later:?}");
    }
    for (role, looks) in [(Role::First, true), (Role::OneTry, false), (Role::Parked, false)] {
        let mut bench = Bench::new(1, Role::Parked);
        bench.waiting.take_role(role);
        assert_eq!(bench.long_busy(at(0)) <= at(1_000), looks, "{role:?}");
    }
}

#[test]
fn a_rank_comes_from_a_server_that_put_the_waiter_in_its_queue() {
    let bench = Bench::new(3, Role::First);
    assert_eq!(bench.waiting.rank(&Queued::At { rank: 4, arrival: 17 }), Some(4));
    for other in [Queued::Nothing, Queued::NotNotified("why".to_owned()), Queued::Waiters { count: 1, first: vec![] }] {
        assert_eq!(bench.waiting.rank(&other), None);
    }
    let alone = Waiting::new(&bench.recipe, None, at(0));
    assert!(alone.place(0).is_none() && alone.rank(&Queued::At { rank: 0, arrival: 1 }).is_none());
}

#[test]
fn a_server_that_voted_in_vain_makes_nobody_try_again_until_the_next_round_unless_it_has_a_majority_with_it() {
    let mut bench = Bench::new(3, Role::First);
    bench.waiting.round_begins();
    bench.waiting.round_failed([true, true, false].into_iter());
    assert_eq!(bench.hint(0, Hint::Free, at(1)), Tick::NEVER, "it is notified of what we undo, or another that tried as we did");
    assert_eq!(bench.waiting.notified_at, None);
    assert_eq!(bench.hint(1, Hint::Free, at(2)), at(2), "two of three");

    let mut bench = Bench::new(3, Role::First);
    bench.waiting.round_failed([true, true, false].into_iter());
    bench.waiting.late_refusal(1);
    assert!(bench.hint(1, Hint::Free, at(3)) <= at(8), "it refused us in the end: there the lock was another client's");

    let mut bench = Bench::new(3, Role::First);
    bench.waiting.round_failed([true, true, true].into_iter());
    bench.waiting.round_begins();
    assert!(bench.hint(0, Hint::Free, at(4)) <= at(9), "what was true for the last round");
}

#[test]
fn bugs_planted_in_a_waiter_are_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::FirstRoleTaken, the_first_of_a_queue_stays_first_until_it_leaves);
    assert_noticed(Mutant::SplitWakes, a_vote_that_was_split_is_tried_again_soon_in_every_role);
    assert_noticed(Mutant::ListeningIgnored, a_server_that_begins_or_ceases_to_notify_makes_the_front_look);
    assert_noticed(Mutant::MinorityIgnored, on_a_quorum_a_majority_calls_at_once_and_a_minority_after_a_pause);
}
