//! Several locks at once: all or none, and what a waiter leaves behind at the others.

use std::sync::Arc;

use crate::machine::{CLAIM_MS, Env, State, Value, apply, claim};
use crate::mutant::{Mutant, assert_noticed};
use crate::name::{Keys, Kind};
use crate::op::holder::named::{in_short, named};
use crate::op::{LockOp, Op, QueuePlace, Queued, Reply, Verb, Verdict};

const T: u64 = 1_800_000_000_000_000;
const TTL: u64 = 10_000;
const WIDE: &str = "b:wide:1 pid=1";
const NARROW: &str = "b:narrow:2 pid=2";

/// One server with the locks `a` and `b`, and a clock that only the test moves.
struct Bench {
    state: State,
    now_us: u64,
}

fn one(name: &str) -> Keys {
    Keys::new(Kind::Exclusive, "", name, true).unwrap()
}

fn both() -> Arc<Keys> {
    Arc::new(Keys::of_several(vec![one("a"), one("b")]).unwrap())
}

impl Bench {
    fn new() -> Self {
        Self { state: State::new(), now_us: T }
    }

    fn apply(&mut self, keys: Arc<Keys>, by: &str, verb: Verb) -> Reply {
        let op = Op::Lock(LockOp { keys, by: by.into(), verb });
        in_short(apply(&mut self.state, &op, &Env { now_us: self.now_us, replid: "run", known_as: "run", is_renamed: false }))
    }

    /// Acquires the locks of these keys, as a waiter that first came at `arrival` if it has an entry.
    fn acquire(&mut self, keys: Arc<Keys>, owner: &str, waiter: Option<(&str, u64)>) -> Reply {
        let place = waiter.map(|(entry, arrival)| QueuePlace { entry: entry.into(), arrival, stays: false });
        let verb = Verb::Acquire { ttl_ms: TTL, proposal: 0, adopt: None, fair: false, place, quorum_config: None, job: None };
        self.apply(keys, &named(owner), verb)
    }

    fn release(&mut self, keys: Arc<Keys>, owner: &str) -> Verdict {
        self.apply(keys, &named(owner), Verb::Release { leave: None, kept_ms: 0 }).verdict
    }

    fn value(&self, name: &str) -> Option<String> {
        self.state.get(one(name).lock(), self.now_us).and_then(|entry| entry.text()).map(str::to_owned)
    }

    fn queued(&self, name: &str) -> Vec<String> {
        let queue = self.state.members(one(name).queue(), self.now_us);
        queue.into_iter().flat_map(|queue| queue.from(0)).map(|(_, entry)| entry.to_string()).collect()
    }

    /// Who was notified since the last look.
    fn notified(&mut self) -> Vec<String> {
        let words = |payload: String| payload.split(' ').take(3).filter(|word| *word != "200").collect::<Vec<_>>().join(" ");
        self.state.take_published().into_iter().map(|message| words(message.payload)).collect()
    }
}

fn arrival(reply: &Reply) -> u64 {
    match reply.queued {
        Queued::At { arrival, .. } => arrival,
        _ => 0,
    }
}

#[test]
fn all_are_taken_each_with_a_fence_of_its_own_and_released() {
    let mut bench = Bench::new();
    let before = bench.acquire(Arc::new(one("b")), "earlier", None).fence;
    bench.release(Arc::new(one("b")), "earlier");
    let granted = bench.acquire(both(), "us", None);
    assert_eq!(granted.verdict, Verdict::Vote);
    assert_eq!(granted.fences.len(), 2);
    assert!(granted.fences[1] > before);
    for (name, fence) in ["a", "b"].iter().zip(&*granted.fences) {
        assert_eq!(bench.value(name), Some(format!("{} fence={fence}", named("us"))));
    }
    assert_eq!(bench.release(both(), "us"), Verdict::Ok);
    assert_eq!((bench.value("a"), bench.value("b")), (None, None));
}

#[test]
fn none_is_taken_while_one_is_busy_and_the_refusal_says_which() {
    for (at, busy) in ["a", "b"].iter().enumerate() {
        let mut bench = Bench::new();
        bench.acquire(Arc::new(one(busy)), "them", None);
        let refused = bench.acquire(both(), "us", None);
        assert!(matches!(&refused.verdict, Verdict::Held { holder, .. } if holder.contains("them")), "{refused:?}");
        assert_eq!((refused.at, refused.fences.len()), (at, 0));
        assert_eq!(["a", "b"].iter().filter(|name| bench.value(name).is_some()).count(), 1);
    }
}

#[test]
fn a_waiter_stands_in_one_queue_and_keeps_its_arrival_where_it_goes_to_another() {
    let mut bench = Bench::new();
    bench.acquire(Arc::new(one("b")), "them", None);
    let first = bench.acquire(both(), "us", Some((WIDE, 0)));
    assert_eq!((bench.queued("a"), bench.queued("b")), (vec![], vec![WIDE.to_owned()]));
    bench.now_us += 5_000;
    bench.acquire(Arc::new(one("a")), "others", None);
    bench.acquire(Arc::new(one("a")), "narrow", Some((NARROW, 0)));
    let second = bench.acquire(both(), "us", Some((WIDE, arrival(&first))));
    assert_eq!((second.at, arrival(&second)), (0, arrival(&first)));
    assert_eq!((bench.queued("a"), bench.queued("b")), (vec![WIDE.to_owned(), NARROW.to_owned()], vec![]));
}

fn what_is_kept_at_a_lock_that_is_not_taken_is_the_next_waiters() {
    let mut bench = Bench::new();
    bench.acquire(Arc::new(one("b")), "them", None);
    let came = arrival(&bench.acquire(both(), "us", Some((WIDE, 0))));
    bench.now_us += 1_500_000;
    bench.acquire(Arc::new(one("b")), "narrow", Some((NARROW, 0)));
    bench.acquire(Arc::new(one("a")), "others", None);
    bench.notified();
    bench.release(Arc::new(one("b")), "them");
    assert_eq!(bench.value("b"), Some(claim(WIDE)), "it has waited for a second");
    assert_eq!(bench.notified(), ["claim b1", "next b2"]);
    bench.acquire(both(), "us", Some((WIDE, came)));
    assert_eq!((bench.queued("a"), bench.queued("b"), bench.value("b")), (vec![WIDE.to_owned()], vec![], None));
    assert_eq!(bench.notified(), ["free b2"]);
}

fn what_a_waiter_was_notified_of_and_cannot_use_the_next_one_is_notified_of() {
    let mut bench = Bench::new();
    bench.acquire(Arc::new(one("b")), "them", None);
    let came = arrival(&bench.acquire(both(), "us", Some((WIDE, 0))));
    bench.acquire(Arc::new(one("b")), "narrow", Some((NARROW, 0)));
    bench.acquire(Arc::new(one("a")), "others", None);
    bench.notified();
    bench.release(Arc::new(one("b")), "them");
    assert_eq!((bench.value("b"), bench.notified()), (None, vec!["free b1".to_owned(), "next b2".to_owned()]));
    bench.acquire(both(), "us", Some((WIDE, came)));
    assert_eq!(bench.notified(), ["free b2"]);
    // Who stands in a queue was notified of nothing.
    bench.now_us += CLAIM_MS * 1_000;
    bench.acquire(Arc::new(one("b")), "narrow", Some((NARROW, 0)));
    bench.acquire(both(), "us", Some((WIDE, came)));
    assert_eq!(bench.notified(), Vec::<String>::new());
}

fn who_stands_behind_a_waiter_that_goes_to_another_queue_is_notified() {
    let mut bench = Bench::new();
    bench.acquire(Arc::new(one("b")), "them", None);
    let came = arrival(&bench.acquire(both(), "us", Some((WIDE, 0))));
    bench.acquire(Arc::new(one("b")), "narrow", Some((NARROW, 0)));
    bench.now_us += TTL * 1_000 + 1_000;
    bench.state.put_member(one("b").queue(), "narrow", -i64::try_from(bench.now_us + 9_000_000).unwrap(), bench.now_us);
    bench.state.put_member(one("b").queue(), "wide", -i64::try_from(bench.now_us + 9_000_000).unwrap(), bench.now_us);
    bench.acquire(Arc::new(one("a")), "others", None);
    bench.notified();
    assert_eq!((bench.value("b"), bench.queued("b").len()), (None, 2), "its holder has died");
    bench.acquire(both(), "us", Some((WIDE, came)));
    assert_eq!((bench.queued("a"), bench.notified()), (vec![WIDE.to_owned()], vec!["claim b2".to_owned()]));
}

fn who_stands_behind_a_waiter_that_counts_as_dead_and_asks_is_notified() {
    let mut bench = Bench::new();
    bench.acquire(Arc::new(one("a")), "them", None);
    let came = arrival(&bench.acquire(both(), "us", Some((WIDE, 0))));
    bench.now_us += TTL * 1_000 - 1_000_000;
    bench.acquire(Arc::new(one("a")), "narrow", Some((NARROW, 0)));
    bench.acquire(Arc::new(one("b")), "others", None);
    bench.now_us += 1_001_000;
    bench.notified();
    assert_eq!((bench.value("a"), bench.queued("a").len()), (None, 2), "its holder has died, and the first waiter seems to have");
    assert_eq!(bench.acquire(both(), "us", Some((WIDE, came))).at, 1);
    assert_eq!((bench.queued("a"), bench.queued("b")), (vec![], vec![WIDE.to_owned()]));
    assert_eq!(bench.notified(), ["claim b2"]);
}

fn who_asks_for_several_locks_keeps_its_clients_waiters_alive_at_each() {
    const SECOND: &str = "b:wide:3 pid=1";
    let mut bench = Bench::new();
    bench.acquire(Arc::new(one("b")), "them", None);
    bench.acquire(both(), "second", Some((SECOND, 0)));
    bench.acquire(Arc::new(one("a")), "others", None);
    let mut came = 0;
    for _ in 0..3 {
        came = arrival(&bench.acquire(both(), "us", Some((WIDE, came))));
        bench.now_us += 2_000_000;
    }
    assert_eq!((bench.queued("a"), bench.queued("b")), (vec![WIDE.to_owned()], vec![SECOND.to_owned()]));
    bench.notified();
    bench.release(Arc::new(one("b")), "them");
    assert_eq!((bench.notified(), bench.value("b")), (vec!["claim b3".to_owned()], Some(claim(SECOND))));
    // Nobody is put where no waiter of its client is.
    bench.acquire(both(), "us", Some((WIDE, came)));
    assert!(bench.state.members(one("b").queue(), bench.now_us).is_none());
}

fn waiters_for_each_of_which_one_lock_is_kept_do_not_give_them_to_each_other_without_end() {
    let mut bench = Bench::new();
    for (name, owner) in [("a", "one"), ("b", "two")] {
        bench.acquire(Arc::new(one(name)), owner, None);
    }
    let first = arrival(&bench.acquire(both(), "us", Some((WIDE, 0))));
    bench.release(Arc::new(one("a")), "one");
    bench.state.put(one("a").lock(), Value::Text(claim(WIDE).into()), bench.now_us, Some(CLAIM_MS));
    bench.state.put(one("b").lock(), Value::Text(claim(NARROW).into()), bench.now_us, Some(CLAIM_MS));
    // `a` is kept for one, and `b` for the other one.
    assert_eq!(bench.acquire(both(), "us", Some((WIDE, first))).at, 1);
    assert_eq!((bench.value("a"), bench.queued("b")), (Some(claim(WIDE)), vec![WIDE.to_owned()]));
    bench.notified();
    assert_eq!(bench.acquire(both(), "them", Some((NARROW, first + 1))).at, 0);
    assert_eq!(bench.notified(), ["free b1"], "the later one gives up");
    assert_eq!(bench.acquire(both(), "us", Some((WIDE, first))).verdict, Verdict::Vote);
}

fn none_stays_taken_if_the_clock_of_one_is_none() {
    let mut bench = Bench::new();
    let [a, b] = ["a", "b"].map(|name| one(name).clock().to_owned());
    assert_ne!(a, b);
    bench.state.put(&b, Value::Text("no stream".into()), T, None);
    let broken = bench.acquire(both(), "us", None);
    assert!(matches!(&broken.verdict, Verdict::Conflict { found } if found.contains(&b)), "{broken:?}");
    assert_eq!((broken.at, bench.value("a"), bench.value("b")), (1, None, None));
}

#[test]
fn what_a_waiter_leaves_behind() {
    what_is_kept_at_a_lock_that_is_not_taken_is_the_next_waiters();
    what_a_waiter_was_notified_of_and_cannot_use_the_next_one_is_notified_of();
    who_stands_behind_a_waiter_that_goes_to_another_queue_is_notified();
    who_stands_behind_a_waiter_that_counts_as_dead_and_asks_is_notified();
    who_asks_for_several_locks_keeps_its_clients_waiters_alive_at_each();
    waiters_for_each_of_which_one_lock_is_kept_do_not_give_them_to_each_other_without_end();
    none_stays_taken_if_the_clock_of_one_is_none();
}

#[test]
fn the_table_notices_what_is_left_out() {
    assert_noticed(Mutant::SeveralHintKept, what_is_kept_at_a_lock_that_is_not_taken_is_the_next_waiters);
    assert_noticed(Mutant::SeveralHintKept, what_a_waiter_was_notified_of_and_cannot_use_the_next_one_is_notified_of);
    assert_noticed(Mutant::SeveralDeadNotPassedOn, who_stands_behind_a_waiter_that_counts_as_dead_and_asks_is_notified);
    assert_noticed(Mutant::SeveralLeftToDie, who_asks_for_several_locks_keeps_its_clients_waiters_alive_at_each);
    let cycle = waiters_for_each_of_which_one_lock_is_kept_do_not_give_them_to_each_other_without_end;
    assert_noticed(Mutant::SeveralClaimsGivenUp, cycle);
    assert_noticed(Mutant::SeveralTakenKept, none_stays_taken_if_the_clock_of_one_is_none);
}
