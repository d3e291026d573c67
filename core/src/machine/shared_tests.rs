//! Readers and permits: tables, and every sequence of steps up to a depth.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Remaining;
use crate::machine::{CLAIM_MS, Env, State, Value, apply, claim};
use crate::mutant::{Mutant, assert_each_noticed, assert_noticed};
use crate::name::{Keys, Kind};
use crate::op::holder::named::{in_short, named};
use crate::op::{Adoption, Inside, LockOp, Op, QueuePlace, Queued, QuorumConfig, Reply, Verb, Verdict};

const T: u64 = 1_800_000_000_000_000;
const TTL: u64 = 10_000;

/// One server with one lock, whose clock only the test moves.
#[derive(Clone)]
pub(super) struct Bench {
    pub(super) state: State,
    pub(super) now_us: u64,
}

fn keys(kind: Kind) -> Arc<Keys> {
    Arc::new(Keys::new(kind, "", "a", true).unwrap())
}

fn acquire(ttl_ms: u64, waiter: &str) -> Verb {
    let fair = waiter.starts_with(['f', 's', 'q']);
    let place = (waiter.len() > 1).then(|| QueuePlace { entry: waiter.into(), arrival: 0, stays: false });
    Verb::Acquire { ttl_ms, proposal: 0, adopt: None, fair, place, quorum_config: None, job: None }
}

impl Bench {
    pub(super) fn new() -> Self {
        Self { state: State::new(), now_us: T }
    }

    pub(super) fn apply(&mut self, kind: Kind, by: &str, verb: Verb) -> Reply {
        let op = Op::Lock(LockOp { keys: keys(kind), by: named(by).into(), verb });
        in_short(apply(&mut self.state, &op, &Env { now_us: self.now_us, replid: "run", known_as: "run", is_renamed: false }))
    }

    /// Acquires; gives the fence, and 0 if others are in the way.
    pub(super) fn enter(&mut self, kind: Kind, by: &str, ttl_ms: u64) -> u64 {
        self.wait(kind, by, ttl_ms, "")
    }

    pub(super) fn wait(&mut self, kind: Kind, by: &str, ttl_ms: u64, waiter: &str) -> u64 {
        let reply = self.apply(kind, by, acquire(ttl_ms, waiter));
        if reply.verdict == Verdict::Vote { reply.fence } else { 0 }
    }

    pub(super) fn renew(&mut self, kind: Kind, by: &str, ttl_ms: u64, fence: u64) -> bool {
        self.apply(kind, by, Verb::Extend { ttl_ms, fence }).verdict == Verdict::Ok
    }

    pub(super) fn release(&mut self, kind: Kind, by: &str) -> bool {
        self.apply(kind, by, Verb::Release { leave: None, kept_ms: 0 }).verdict == Verdict::Ok
    }

    pub(super) fn leave(&mut self, kind: Kind, waiter: &str) {
        self.apply(kind, waiter, Verb::Leave);
    }

    pub(super) fn pass(&mut self, ms: u64) {
        self.now_us += ms * 1_000;
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.now_us / 1_000
    }

    /// The lock's key: its text, and the millisecond of its end.
    pub(super) fn gate(&self) -> Option<(String, u64)> {
        let entry = self.state.get("a", self.now_us)?;
        Some((entry.text()?.to_owned(), entry.expires_ms?))
    }

    /// The end of the last mark that lives.
    pub(super) fn last_mark(&self) -> Option<u64> {
        let (end, _) = self.state.members(keys(Kind::Read).marks(), self.now_us)?.last()?;
        Some(end.unsigned_abs()).filter(|end| *end >= self.now_ms())
    }

    /// Who was notified since the last call, and how.
    pub(super) fn notified(&mut self) -> Vec<String> {
        let short = |payload: String| payload.trim_end_matches(" a").to_owned();
        self.state.take_published().into_iter().map(|message| short(message.payload)).collect()
    }

    pub(super) fn put(&mut self, value: &str, ttl_ms: u64) {
        self.state.put("a", Value::Text(value.into()), self.now_us, Some(ttl_ms));
    }
}

fn left(ms: u64) -> Remaining {
    Remaining::For(Duration::from_millis(ms))
}

const TWO: Kind = Kind::Semaphore(2);
const ONE: Kind = Kind::Semaphore(1);

#[test]
fn readers_share_a_period_and_a_writer_waits_for_the_last_of_them() {
    a_writer_waits_for_the_last_reader();
    assert_noticed(Mutant::JoinerHasOwnFence, a_writer_waits_for_the_last_reader);
}

fn a_writer_waits_for_the_last_reader() {
    let mut bench = Bench::new();
    assert_eq!(bench.enter(Kind::Read, "r", TTL), T);
    bench.pass(1_000);
    assert_eq!(bench.enter(Kind::Read, "s", 2 * TTL), T, "the fence of the period");
    assert_eq!(bench.gate(), Some((format!("read {T}"), bench.now_ms() + 2 * TTL)));
    let refused = bench.apply(Kind::Semaphore(3), "p", acquire(TTL, "")).verdict;
    assert_eq!(refused, Verdict::Held { holder: "s".into(), remaining: left(2 * TTL) }, "it ends last");
    assert_eq!(bench.enter(Kind::Exclusive, "w", TTL), 0);
    assert!(bench.release(Kind::Read, "s"));
    assert_eq!(bench.gate().map(|(_, end)| end), bench.last_mark(), "the gate ends with the reader that is left");
    assert!(bench.release(Kind::Read, "r") && bench.gate().is_none());
    assert_eq!(bench.state.iter(bench.now_us).count(), 1, "nothing but the clock is left");
    assert!(bench.enter(Kind::Exclusive, "w", TTL) > T);
    assert_eq!(bench.enter(Kind::Read, "r", TTL), 0);
}

#[test]
fn as_many_hold_permits_as_their_limit_says_and_a_crashed_one_costs_its_own_ttl() {
    let mut bench = Bench::new();
    let fences: Vec<u64> = ["p", "q"].map(|by| bench.enter(TWO, by, TTL)).into();
    assert!(fences[0] == T && fences[1] > T);
    assert_eq!(bench.gate(), Some(("permits 2".into(), bench.now_ms() + TTL)));
    bench.pass(10);
    let held = |holder: &str, ms| Verdict::Held { holder: holder.into(), remaining: left(ms) };
    assert_eq!(bench.apply(TWO, "o", acquire(TTL, "")).verdict, held("p", TTL - 10), "it ends first");
    assert!(bench.renew(TWO, "q", 2 * TTL, fences[1]));
    assert!(!bench.renew(TWO, "o", TTL, fences[1]));
    assert!(bench.enter(Kind::Semaphore(3), "o", TTL) > fences[1], "each names its own limit");
    assert_eq!(bench.gate().unwrap().0, "permits 3");
    bench.pass(TTL + 1);
    assert_eq!(bench.gate().map(|(_, end)| end), bench.last_mark());
    assert!(bench.enter(TWO, "p2", TTL) > 0, "q is left");
    assert_eq!(bench.enter(TWO, "o2", TTL), 0);
}

#[test]
fn a_gate_without_a_living_mark_is_a_holder_that_nobody_knows() {
    a_gate_that_nobody_knows_is_waited_for();
    assert_noticed(Mutant::EmptyGateJoined, a_gate_that_nobody_knows_is_waited_for);
}

fn a_gate_that_nobody_knows_is_waited_for() {
    for (value, kind) in [("read 42", Kind::Read), ("permits 2", TWO)] {
        let mut bench = Bench::new();
        bench.put(value, 700);
        assert_eq!(
            bench.apply(kind, "r", acquire(TTL, "")).verdict,
            Verdict::Held { holder: value.into(), remaining: left(700) }
        );
        assert!(!bench.renew(kind, "r", TTL, 42) && !bench.release(kind, "r"));
        assert_eq!(bench.gate(), Some((value.into(), bench.now_ms() + 700)), "it is left alone");
    }
    // The marks are lost: those inside are lost, too, and nobody else enters before the gate ends.
    let mut bench = Bench::new();
    let fence = bench.enter(Kind::Read, "r", TTL);
    bench.state.remove(keys(Kind::Read).marks());
    assert!(!bench.renew(Kind::Read, "r", TTL, fence));
    assert_eq!((bench.enter(Kind::Read, "s", TTL), bench.enter(Kind::Exclusive, "w", TTL)), (0, 0));
    bench.pass(TTL + 1);
    assert!(bench.enter(Kind::Read, "s", TTL) > 0);
}

#[test]
fn marks_without_a_gate_are_those_of_an_earlier_period() {
    marks_of_an_earlier_period_count_no_more();
    assert_noticed(Mutant::OldMarksKept, marks_of_an_earlier_period_count_no_more);
}

fn marks_of_an_earlier_period_count_no_more() {
    let mut bench = Bench::new();
    let lost = bench.enter(ONE, "p", 2 * TTL);
    bench.state.remove("a");
    let fence = bench.enter(ONE, "q", TTL);
    assert!(fence > lost && !bench.renew(ONE, "p", TTL, lost) && bench.renew(ONE, "q", TTL, fence));
    assert_eq!(bench.gate().map(|(_, end)| end), bench.last_mark());
}

#[test]
fn a_key_of_another_type_is_a_conflict_where_it_would_be_written() {
    let mut bench = Bench::new();
    bench.state.put(keys(Kind::Read).marks(), Value::Foreign("list".into()), T, None);
    let found = Verdict::Conflict { found: "list at {a}:~lt:shared".into() };
    assert_eq!(bench.apply(Kind::Read, "r", acquire(TTL, "")).verdict, found);
    assert!(!bench.release(Kind::Read, "r"));
    assert_eq!(bench.state.iter(T).count(), 1);
}

#[test]
fn a_first_waiter_of_another_kind_stops_newcomers_and_readers_enter_together() {
    newcomers_stop_behind_a_writer();
    assert_noticed(Mutant::NewcomerJoinsPastWriter, newcomers_stop_behind_a_writer);
    assert_noticed(Mutant::ReadersNotLetIn, newcomers_stop_behind_a_writer);
}

fn newcomers_stop_behind_a_writer() {
    let mut bench = Bench::new();
    bench.enter(Kind::Read, "r", TTL);
    assert_eq!(bench.wait(Kind::Exclusive, "w", TTL, "b:one:1 w"), 0);
    for number in 1..=10 {
        assert_eq!(bench.wait(Kind::Read, "s", TTL, &format!("r:two:{number} s")), 0, "behind the writer");
    }
    assert!(bench.release(Kind::Read, "r"));
    assert_eq!(bench.notified(), ["free 200 b1", "next 200 r1"]);
    assert!(bench.wait(Kind::Exclusive, "w", TTL, "b:one:1 w") > 0);
    assert!(bench.release(Kind::Exclusive, "w"));
    assert_eq!(bench.notified(), ["free 200 r1", "next 200 r2"]);
    let period = bench.wait(Kind::Read, "s1", TTL, "r:two:1 s");
    assert_eq!(bench.notified(), (2..=9).map(|number| format!("free 200 r{number}")).collect::<Vec<_>>());
    assert_eq!(bench.wait(Kind::Read, "s2", TTL, "r:two:2 s"), period);
    assert_eq!(bench.notified(), ["free 200 r10"], "and so on");
}

#[test]
fn a_writer_that_gives_up_lets_those_in_that_it_has_stopped() {
    a_writer_gives_up();
    assert_noticed(Mutant::LeaverStopsReaders, a_writer_gives_up);
}

fn a_writer_gives_up() {
    let writer = "b:one:1 w";
    let leaves = || Verb::Release { leave: Some(writer.into()), kept_ms: 0 };
    let [gives_up, begins_no_more] = [(Kind::Exclusive, writer, Verb::Leave), (Kind::Job, "w", leaves())];
    for (kind, by, verb) in [gives_up, (Kind::Exclusive, "w", leaves()), begins_no_more] {
        let mut bench = Bench::new();
        bench.enter(Kind::Read, "r", TTL);
        assert_eq!(bench.wait(Kind::Exclusive, "w", TTL, writer), 0);
        assert_eq!(bench.wait(Kind::Read, "s", TTL, "r:two:1 s"), 0);
        let refused = bench.apply(kind, by, verb).verdict;
        assert_eq!(refused, Verdict::No { holder: Some("r".into()), remaining: left(TTL) });
        assert_eq!(bench.notified(), ["free 200 r1"]);
    }
}

#[test]
fn a_look_shows_those_inside_and_no_claim() {
    let mut bench = Bench::new();
    let look = |bench: &mut Bench| match bench.apply(Kind::Exclusive, "", Verb::Inspect) {
        Reply { verdict: Verdict::Seen { holder, inside, .. }, fence, .. } => (holder, inside.map(|inside| *inside), fence),
        other => panic!("{other:?}"),
    };
    let inside = |holders, owners: &[&str], available| {
        Some(Inside { holders, owners: owners.iter().map(|owner| (*owner).to_owned()).collect(), available })
    };
    bench.put("read 42", 10);
    assert_eq!(look(&mut bench), (Some("read 42".into()), None, 42), "another program's");
    bench.pass(20);
    let period = bench.enter(Kind::Read, "r", 2 * TTL);
    bench.enter(Kind::Read, "s", TTL);
    assert_eq!(look(&mut bench), (Some("r".into()), inside(2, &["s", "r"], None), period), "in the order of their ends");
    for reader in ["r", "s"] {
        bench.release(Kind::Read, reader);
    }
    bench.enter(Kind::Semaphore(4), "p", TTL);
    let end = i64::try_from(bench.now_ms() + CLAIM_MS).unwrap();
    bench.state.put_member(keys(TWO).marks(), "claim q:one:1 permits=4 x", end, bench.now_us);
    assert_eq!(look(&mut bench), (Some("p".into()), inside(1, &["p"], Some(2)), 0), "what is kept for a waiter is not available");
}

#[test]
fn a_patient_waiter_for_a_permit_has_one_kept_for_it() {
    permits_are_kept_for_patient_waiters();
    assert_each_noticed(
        [Mutant::ClaimTakesPermit, Mutant::LeaverKeepsPermit, Mutant::GateOutlivesMarks],
        permits_are_kept_for_patient_waiters,
    );
}

fn permits_are_kept_for_patient_waiters() {
    let (one, two) = ("q:one:1 permits=1 x", "q:two:2 permits=1 y");
    let mut bench = Bench::new();
    bench.enter(ONE, "p", TTL);
    let at = |reply: Reply| matches!(reply.queued, Queued::At { .. });
    assert!(at(bench.apply(ONE, "q", acquire(TTL, one))) && at(bench.apply(ONE, "o", acquire(TTL, two))));
    assert!(bench.release(ONE, "p"));
    assert_eq!(bench.notified(), ["claim 200 q1/1", "next 200 q2/1"], "the lock is free, and kept as any other");
    assert!(bench.wait(ONE, "q", TTL, one) > 0);
    // A second permit, and who waits for it is kept one beside the first.
    assert_eq!(bench.wait(TWO, "late", TTL, "p:three:3 permits=2 z"), 0, "not past the first waiter");
    bench.leave(ONE, two);
    assert_eq!(bench.notified(), ["free 200 p3/2"]);
    bench.wait(TWO, "late", TTL, "p:three:3 permits=2 z");
    assert_eq!(bench.wait(TWO, "f", TTL, "q:four:4 permits=2 f"), 0);
    assert!(bench.release(TWO, "late"));
    assert_eq!(bench.notified(), ["claim 200 q4/2"]);
    assert_eq!(bench.enter(TWO, "newcomer", TTL), 0, "the claim counts");
    assert!(bench.wait(TWO, "f", TTL, "q:four:4 permits=2 f") > 0);
    // A claim that its waiter can't use any more.
    assert_eq!(bench.wait(TWO, "g", TTL, "q:five:5 permits=2 g"), 0);
    assert!(bench.release(TWO, "f"));
    assert_eq!(bench.notified(), ["claim 200 q5/2"]);
    assert!(bench.release(ONE, "q"));
    assert_eq!(bench.gate().map(|(_, end)| end), Some(bench.now_ms() + CLAIM_MS), "the gate ends with the claim");
    bench.leave(TWO, "q:five:5 permits=2 g");
    assert_eq!(bench.gate(), None);
}

#[test]
fn a_claim_that_a_smaller_limit_makes_useless_is_given_to_the_next() {
    let mut bench = Bench::new();
    for by in ["a", "b", "c"] {
        bench.enter(Kind::Semaphore(3), by, TTL);
    }
    bench.wait(Kind::Semaphore(3), "d", TTL, "q:one:1 permits=3 d");
    bench.wait(Kind::Semaphore(3), "e", TTL, "q:two:2 permits=3 e");
    bench.release(Kind::Semaphore(3), "a");
    assert_eq!(bench.notified(), ["claim 200 q1/3", "next 200 q2/3"]);
    // Its program has another limit by now.
    assert_eq!(bench.wait(TWO, "d", TTL, "q:one:1 permits=3 d"), 0);
    assert_eq!(bench.notified(), ["claim 200 q2/3"]);
    assert!(bench.wait(Kind::Semaphore(3), "e", TTL, "q:two:2 permits=3 e") > 0);
    let score = |entry: &str| bench.state.members(keys(TWO).marks(), bench.now_us).unwrap().score(&claim(entry));
    assert_eq!([score("q:one:1 permits=3 d"), score("q:two:2 permits=3 e")], [None, None]);
}

#[test]
fn who_waits_behind_a_kept_permit_looks_when_its_time_is_over() {
    the_next_waits_for_the_end_of_a_claim();
    assert_noticed(Mutant::LapsedClaimNotNotified, the_next_waits_for_the_end_of_a_claim);
}

fn the_next_waits_for_the_end_of_a_claim() {
    let mut bench = Bench::new();
    let holds = ["a", "b"].map(|by| bench.enter(TWO, by, TTL));
    assert!(holds.iter().all(|fence| *fence > 0));
    for (by, waiter) in [("c", "q:one:1 permits=2 c"), ("d", "q:two:2 permits=2 d"), ("e", "q:three:3 permits=2 e")] {
        assert_eq!(bench.wait(TWO, by, TTL, waiter), 0);
    }
    bench.release(TWO, "a");
    assert_eq!(bench.notified(), ["claim 200 q1/2", "next 200 q2/2"]);
    bench.release(TWO, "b");
    assert_eq!(bench.notified(), ["claim 200 q2/2", "next 200 q3/2"]);
}

#[test]
fn the_last_mark_ends_with_its_gate_in_the_same_millisecond() {
    let mut bench = Bench::new();
    let (dead, fence) = (bench.enter(TWO, "dead", 1_000), bench.enter(TWO, "b", 2_000));
    assert_eq!(bench.wait(ONE, "c", TTL, "q:one:1 permits=1 c"), 0);
    bench.pass(1_000);
    assert!(!bench.renew(TWO, "dead", TTL, dead) && bench.renew(TWO, "b", TTL, fence));
    assert!(bench.release(TWO, "b"));
    assert_eq!(bench.gate().map(|(value, _)| value), Some("claim q:one:1 permits=1 c".into()), "the lock was free, and is kept");
    assert!(bench.state.get(keys(TWO).marks(), bench.now_us).is_none());
}

#[test]
fn a_reader_that_was_handed_over_is_adopted_in_its_period_and_in_quarantine() {
    let mut bench = Bench::new();
    let period = bench.enter(Kind::Read, "r", 2 * TTL);
    bench.wait(Kind::Exclusive, "w", TTL, "f:one:1 w");
    let adopt = |by: &str, owner: &str, or_acquire| {
        let adopt = Some(Adoption { owner: named(owner).into(), or_acquire, beside: false });
        let quorum_config = Some(QuorumConfig { servers: 1, max_ttl_ms: 60_000 });
        let verb = Verb::Acquire { ttl_ms: TTL, proposal: 0, adopt, fair: false, place: None, quorum_config, job: None };
        (by.to_owned(), verb)
    };
    let mut take = |(by, verb): (String, Verb)| bench.apply(Kind::Read, &by, verb);
    assert_eq!(take(adopt("s", "r", false)), Reply::new(Verdict::Vote, T, period), "past the writer that waits");
    assert_eq!(take(adopt("s", "r", false)).fence, period, "asked again");
    assert_eq!(take(adopt("t", "r", false)).verdict, Verdict::No { holder: None, remaining: left(TTL) }, "it is gone");
    assert!(matches!(take(adopt("t", "r", true)).verdict, Verdict::Quarantine { .. }), "nobody else enters");
    assert_eq!(bench.gate().map(|(_, end)| end), Some(T / 1_000 + TTL), "with the ttl of its new holder");
    assert!(bench.renew(Kind::Read, "s", TTL, period) && !bench.renew(Kind::Read, "r", TTL, period));
}

#[test]
fn a_confirmation_raises_the_clock_and_writes_no_mark() {
    let mut bench = Bench::new();
    let fence = bench.enter(Kind::Read, "r", TTL) + 7_000;
    let no = bench.apply(Kind::Read, "r", Verb::Confirm { fence }).verdict;
    assert_eq!(no, Verdict::No { holder: None, remaining: left(TTL) }, "of another period");
    assert!(bench.release(Kind::Read, "r"));
    assert!(bench.enter(Kind::Exclusive, "w", TTL) > fence);
}

#[test]
fn a_reader_whose_acquire_comes_twice_has_no_hold_in_the_later_period() {
    a_second_acquire_begins_another_period();
    assert_noticed(Mutant::AnyPeriodConfirms, a_second_acquire_begins_another_period);
}

fn a_second_acquire_begins_another_period() {
    let mut bench = Bench::new();
    let period = bench.enter(Kind::Read, "r", TTL);
    bench.state.remove("a");
    assert!(bench.enter(Kind::Exclusive, "w", TTL) > period && bench.release(Kind::Exclusive, "w"));
    // The server reads the acquire once more, and its reply is lost.
    let later = bench.enter(Kind::Read, "r", TTL);
    assert!(later > period && bench.renew(Kind::Read, "r", TTL, later));
    assert!(!bench.renew(Kind::Read, "r", TTL, period), "a writer was there meanwhile");
}
