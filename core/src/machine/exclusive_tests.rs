//! The exclusive lock on one server: fences of the clock, and what stands behind the owner.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Remaining;
use crate::machine::{CLAIM_MS, Env, State, Value, apply, claim};
use crate::mutant::{Mutant, assert_noticed};
use crate::name::{Keys, Kind};
use crate::op::holder::named::{in_short, named};
use crate::op::{Adoption, LockOp, Op, QueuePlace, Reply, Verb, Verdict};

const T: u64 = 1_800_000_000_000_000;
const TTL: u64 = 10_000;
const WAITER: &str = "b:one:1 pid=1";

/// One server with one lock, and a clock that only the test moves.
struct Bench {
    state: State,
    keys: Arc<Keys>,
    now_us: u64,
}

impl Bench {
    fn new() -> Self {
        Self { state: State::new(), keys: Arc::new(Keys::new(Kind::Exclusive, "", "a", true).unwrap()), now_us: T }
    }

    fn apply(&mut self, by: &str, verb: Verb) -> Reply {
        let op = Op::Lock(LockOp { keys: self.keys.clone(), by: named(by).into(), verb });
        in_short(apply(&mut self.state, &op, &Env { now_us: self.now_us, replid: "run", known_as: "run", is_renamed: false }))
    }

    fn acquire_as(&mut self, owner: &str, floor: u64, adopt: Option<Adoption>, waits: bool) -> Reply {
        let place = waits.then(|| QueuePlace { entry: WAITER.into(), arrival: 0, stays: false });
        self.apply(
            owner,
            Verb::Acquire { ttl_ms: TTL, proposal: floor, adopt, fair: false, place, quorum_config: None, job: None },
        )
    }

    fn acquire(&mut self, owner: &str) -> Reply {
        self.acquire_as(owner, 0, None, false)
    }

    fn adopt(&mut self, owner: &str, old: &str, or_acquire: bool) -> Reply {
        self.acquire_as(owner, 0, Some(Adoption { owner: named(old).into(), or_acquire, beside: false }), false)
    }

    fn wait(&mut self, owner: &str) -> Reply {
        self.acquire_as(owner, 0, None, true)
    }

    fn extend(&mut self, owner: &str, ttl_ms: u64, fence: u64) -> Verdict {
        self.apply(owner, Verb::Extend { ttl_ms, fence }).verdict
    }

    fn release(&mut self, owner: &str) -> Verdict {
        self.apply(owner, Verb::Release { leave: None, kept_ms: 0 }).verdict
    }

    fn put(&mut self, value: &str, ttl_ms: Option<u64>) {
        self.state.put(self.keys.lock(), Value::Text(value.into()), self.now_us, ttl_ms);
    }

    /// The value of the lock's key, and what remains.
    fn value(&self) -> (Option<String>, Option<u64>) {
        let entry = self.state.get(self.keys.lock(), self.now_us);
        (entry.and_then(|entry| entry.text()).map(str::to_owned), entry.and_then(|entry| entry.left_ms(self.now_us)))
    }

    /// What stands behind the owner.
    fn notes(&self) -> String {
        let value = self.value().0.unwrap_or_default();
        value.split_once("1a2b").map_or(value.as_str(), |(_, notes)| notes).to_owned()
    }

    fn pass(&mut self, ms: u64) {
        self.now_us += ms * 1_000;
    }
}

fn ms(left: u64) -> Remaining {
    Remaining::For(Duration::from_millis(left))
}

#[test]
fn a_grant_has_the_next_fence_of_the_clock_and_shows_it() {
    let mut bench = Bench::new();
    assert_eq!(bench.acquire("a"), Reply::new(Verdict::Vote, T, T));
    assert_eq!((bench.notes(), bench.value().1), (format!(" fence={T}"), Some(TTL)));
    assert_eq!(bench.acquire("b").verdict, Verdict::Held { holder: "a".into(), remaining: ms(TTL) });
    assert_eq!(bench.release("a"), Verdict::Ok);
    assert_eq!(bench.state.iter(T).map(|(key, _)| key).collect::<Vec<_>>(), ["{20200}:~lt:clock"], "nothing is left of the name");
    assert_eq!(bench.acquire("b").fence, T + 1);
    assert_eq!(bench.acquire_as("b", T + 5_000, None, false).fence, T + 5_001, "above what the client has seen");
}

#[test]
fn an_acquire_that_comes_twice_gets_another_fence_and_shortens_nothing() {
    let mut bench = Bench::new();
    bench.acquire("a");
    bench.extend("a", 60_000, T);
    assert_eq!(bench.acquire("a").fence, T + 1);
    assert_eq!((bench.notes(), bench.value().1), (format!(" fence={}", T + 1), Some(60_000)));
}

#[test]
fn a_hold_that_was_handed_over_is_taken_by_its_owner_whatever_stands_behind_it() {
    let mut bench = Bench::new();
    assert_eq!(bench.adopt("b", "a", false).verdict, Verdict::No { holder: None, remaining: Remaining::Gone });
    bench.acquire("a");
    bench.wait("w");
    assert_eq!(bench.adopt("b", "a", false).verdict, Verdict::Vote);
    assert_eq!(bench.notes(), format!(" fence={} waiters=1", T + 1));
    assert_eq!(bench.adopt("c", "a", false).verdict, Verdict::No { holder: Some("b".into()), remaining: ms(TTL) });
}

fn every_waiter_is_noted() {
    let mut bench = Bench::new();
    bench.acquire("a");
    bench.wait("w");
    assert_eq!((bench.notes(), bench.value().1), (format!(" fence={T} waiters=1"), Some(TTL)));
    bench.wait("w");
    assert_eq!(bench.notes(), format!(" fence={T} waiters=1"), "once");
    // Another value, of a client of ours that doesn't know of the queue, as after a slot has moved.
    bench.put(&named("a"), Some(TTL));
    bench.wait("w");
    assert_eq!(bench.notes(), " waiters=1", "who stands in the queue already notes it, too");
    bench.extend("a", TTL, T);
    assert_eq!(bench.notes(), format!(" waiters=1 fence={T}"), "a renewal appends, and rewrites nothing");
    assert_eq!(bench.release("a"), Verdict::Ok);
    assert_eq!(bench.state.take_published().len(), 1);
}

#[test]
fn a_waiter_is_noted_behind_the_owner_by_each_of_its_looks() {
    every_waiter_is_noted();
}

#[test]
fn a_waiter_that_is_not_noted_is_noticed() {
    assert_noticed(Mutant::KnownWaiterNotMarked, every_waiter_is_noted);
}

fn a_value_that_is_written_again_keeps_the_waiters() {
    let mut bench = Bench::new();
    bench.acquire("a");
    bench.wait("w");
    bench.acquire("a");
    assert_eq!(bench.notes(), format!(" fence={} waiters=1", T + 1));
    bench.put(&claim("b:two:1 x"), Some(CLAIM_MS));
    assert_eq!(bench.apply("a", Verb::Heal { ttl_ms: TTL, fence: T + 7 }).verdict, Verdict::Ok);
    assert_eq!(bench.notes(), format!(" fence={} waiters=1", T + 7));
}

#[test]
fn writing_the_value_again_keeps_the_note_of_waiters() {
    a_value_that_is_written_again_keeps_the_waiters();
    assert_noticed(Mutant::WaitersForgotten, a_value_that_is_written_again_keeps_the_waiters);
}

fn the_value_of_another_library_stays_as_it_is() {
    for value in ["4f6c", "host=short id=7", &*format!("{}x", named("a")), &*format!("foreign{}", named("a"))] {
        let mut bench = Bench::new();
        bench.put(value, Some(TTL));
        bench.wait("w");
        assert_eq!(bench.value(), (Some(value.to_owned()), Some(TTL)));
    }
}

#[test]
fn nothing_is_written_behind_the_value_of_another_library() {
    the_value_of_another_library_stays_as_it_is();
    assert_noticed(Mutant::ForeignAnnotated, the_value_of_another_library_stays_as_it_is);
}

fn a_confirmation_raises_the_clock() {
    let mut bench = Bench::new();
    let no = Verdict::No { holder: None, remaining: Remaining::Gone };
    assert_eq!(bench.apply("a", Verb::Confirm { fence: T + 9_000 }).verdict, no);
    assert_eq!(bench.acquire("b").fence, T + 9_001, "also where the hold is gone");
    assert_eq!(bench.apply("b", Verb::Confirm { fence: T + 9_001 }), Reply::new(Verdict::Ok, T, T + 9_001));
}

#[test]
fn behind_a_failover_the_clock_is_raised_to_the_fence_of_each_hold() {
    a_confirmation_raises_the_clock();
    assert_noticed(Mutant::ConfirmRaisesNothing, a_confirmation_raises_the_clock);
}

#[test]
fn an_extension_lengthens_and_says_who_holds_the_lock() {
    let mut bench = Bench::new();
    let fence = bench.acquire("a").fence;
    assert_eq!((bench.extend("a", 60_000, fence), bench.value().1), (Verdict::Ok, Some(60_000)));
    assert_eq!((bench.extend("a", TTL, fence), bench.value().1), (Verdict::Ok, Some(60_000)), "what remains is never shortened");
    assert_eq!(bench.extend("b", TTL, fence + 1), Verdict::No { holder: Some("a".into()), remaining: ms(60_000) });
    bench.pass(60_001);
    assert_eq!(bench.extend("a", TTL, fence), Verdict::No { holder: None, remaining: Remaining::Gone });
    assert_eq!(bench.value(), (None, None), "a missing key is not written again");
}

#[test]
fn what_is_no_lock_and_what_is_no_clock_is_left_alone() {
    let mut bench = Bench::new();
    bench.state.put(bench.keys.clock(), Value::Foreign("list".into()), T, None);
    let conflict = Verdict::Conflict { found: "list at {20200}:~lt:clock".into() };
    assert_eq!(bench.acquire("a").verdict, conflict);
    assert_eq!(bench.value(), (None, None));
    bench.state.put(bench.keys.lock(), Value::Foreign("list".into()), T, None);
    for verdict in [bench.acquire("a").verdict, bench.extend("a", TTL, T), bench.release("a")] {
        assert_eq!(verdict, Verdict::Conflict { found: "list".into() });
    }
}
