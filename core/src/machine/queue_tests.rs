//! The queue on one server: places, notifications, claims and dead waiters.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Remaining;
use crate::machine::{CLAIM_MS, Env, Message, State, Value, apply, channel, claim};
use crate::name::{Keys, Kind};
use crate::op::holder::named::{in_short, named, plain};
use crate::op::holder::owner_of;
use crate::op::{LockOp, Op, QueuePlace, Queued, QuorumConfig, Reply, Verb, Verdict};

const T: u64 = 1_800_000_000_000_000;
const TTL: u64 = 10_000;

/// Waiters: a fair one and barging ones of three clients.
const FAIR: &str = "f:one:1 pid=1";
const ONE: &str = "b:one:2 pid=1";
const TWO: &str = "b:two:1 pid=2";
const THREE: &str = "b:three:1 pid=3";

/// One server with one lock, and a clock that only the test moves.
struct Bench {
    state: State,
    keys: Arc<Keys>,
    now_us: u64,
    /// The quorum, if the server is one of several.
    quorum_config: Option<QuorumConfig>,
}

impl Bench {
    fn new() -> Self {
        Self {
            state: State::new(),
            keys: Arc::new(Keys::new(Kind::Exclusive, "", "a", true).unwrap()),
            now_us: T,
            quorum_config: None,
        }
    }

    fn of_quorum() -> Self {
        let quorum_config = QuorumConfig { servers: 3, max_ttl_ms: 60_000 };
        let keys = Arc::new(Keys::new(Kind::Quorum, "", "a", false).unwrap());
        let mut bench = Self { quorum_config: Some(quorum_config), keys, ..Self::new() };
        assert_eq!(bench.apply(&Op::Trust { quorum_config }).verdict, Verdict::Ok);
        bench
    }

    /// A lock whose holder waited in no queue.
    fn held() -> Self {
        let mut bench = Self::new();
        assert_eq!(bench.attempt("holder", false).verdict, Verdict::Vote);
        bench
    }

    /// A held lock, and waiters that came in this order.
    fn with_waiters(entries: &[&str]) -> Self {
        let mut bench = Self::held();
        entries.iter().for_each(|entry| drop(bench.wait(entry)));
        bench
    }

    fn apply(&mut self, op: &Op) -> Reply {
        in_short(apply(&mut self.state, op, &Env { now_us: self.now_us, replid: "run", known_as: "run", is_renamed: false }))
    }

    fn acquire(&mut self, owner: &str, fair: bool, place: Option<QueuePlace>) -> Reply {
        let (keys, quorum_config) = (self.keys.clone(), self.quorum_config);
        self.apply(&Op::Lock(LockOp {
            keys,
            by: named(owner).into(),
            verb: Verb::Acquire { ttl_ms: TTL, proposal: T, adopt: None, fair, place, quorum_config, job: None },
        }))
    }

    /// An acquire with one attempt.
    fn attempt(&mut self, owner: &str, fair: bool) -> Reply {
        self.acquire(owner, fair, None)
    }

    /// An acquire that waits: gives its place in the queue, or its vote.
    fn wait(&mut self, entry: &str) -> Reply {
        self.wait_again(entry, 0)
    }

    fn wait_again(&mut self, entry: &str, arrival: u64) -> Reply {
        self.wait_for(entry, arrival, false)
    }

    fn wait_for(&mut self, entry: &str, arrival: u64, stays: bool) -> Reply {
        let place = QueuePlace { entry: entry.into(), arrival, stays };
        self.acquire(&format!("owner of {}", entry.replace([':', '='], ".")), entry.starts_with('f'), Some(place))
    }

    fn release(&mut self, owner: &str) -> Reply {
        self.apply(&Op::Lock(LockOp {
            keys: self.keys.clone(),
            by: named(owner).into(),
            verb: Verb::Release { leave: None, kept_ms: 0 },
        }))
    }

    fn leave(&mut self, entry: &str) -> Reply {
        let keys = self.keys.clone();
        self.apply(&Op::Lock(LockOp { keys, by: entry.into(), verb: Verb::Leave }))
    }

    fn queue(&mut self) -> Vec<String> {
        match self.apply(&Op::inspect(self.keys.clone())).queued {
            Queued::Waiters { first, .. } => first,
            _ => Vec::new(),
        }
    }

    fn holder(&self) -> Option<String> {
        let entry = self.state.get(self.keys.lock(), self.now_us);
        entry.and_then(|entry| entry.text()).map(|value| plain(owner_of(value)))
    }

    /// The messages since the last call: the client, and the text.
    fn published(&mut self) -> Vec<(String, String)> {
        let parts = |Message { channel, payload }| (channel, payload);
        self.state.take_published().into_iter().map(parts).collect()
    }

    fn pass(&mut self, ms: u64) {
        self.now_us += ms * 1_000;
    }

    fn has_queue(&self) -> bool {
        self.state.get(self.keys.queue(), self.now_us).is_some()
    }
}

fn at(rank: u64, arrival: u64) -> Queued {
    Queued::At { rank, arrival }
}

fn message(client: &str, kind: &str, waiter: &str) -> (String, String) {
    (channel(client), format!("{kind} 200 {waiter} a"))
}

#[test]
fn waiters_are_queued_in_the_order_in_which_they_come_also_in_one_microsecond() {
    let mut bench = Bench::held();
    for (rank, entry) in [TWO, THREE, FAIR, ONE].into_iter().enumerate() {
        let reply = bench.wait(entry);
        assert_eq!((reply.holder(), &reply.queued), (Some("holder"), &at(rank as u64, T + rank as u64)));
    }
    assert_eq!(bench.queue(), [TWO, THREE, FAIR, ONE]);
}

#[test]
fn a_waiter_that_queues_again_keeps_its_place() {
    let mut bench = Bench::held();
    for entry in [TWO, THREE] {
        bench.wait(entry);
        bench.pass(10);
    }
    assert_eq!(bench.wait(TWO).queued, at(0, T), "it is in the queue");
    bench.leave(TWO);
    assert_eq!(bench.wait_again(TWO, T).queued, at(0, T), "it was notified, came too late, and names its arrival");
    bench.leave(TWO);
    let last = bench.now_us;
    assert_eq!(bench.wait_again(TWO, u64::MAX).queued, at(1, last), "no arrival of the future");
}

#[test]
fn an_attempt_does_not_enqueue() {
    let mut bench = Bench::held();
    for fair in [false, true] {
        assert_eq!(bench.attempt("another", fair).queued, Queued::Nothing);
    }
    assert!(!bench.has_queue());
}

#[test]
fn a_release_notifies_the_first_that_it_is_free_and_the_second_when_to_look() {
    let mut bench = Bench::with_waiters(&[TWO, THREE, ONE]);
    assert_eq!(bench.release("holder").verdict, Verdict::Ok);
    assert_eq!(bench.published(), [message("two", "free", "b1"), message("three", "next", "b1")]);
    assert_eq!((bench.queue(), bench.holder()), (vec![THREE.to_owned(), ONE.to_owned()], None));
}

#[test]
fn a_free_lock_may_be_had_by_the_fastest_waiter_but_by_no_fair_one() {
    for fair in [false, true] {
        let mut bench = Bench::with_waiters(&[TWO, THREE]);
        bench.release("holder");
        assert_eq!(bench.attempt("newcomer", fair).verdict == Verdict::Vote, !fair);
    }
}

#[test]
fn a_waiter_of_a_second_is_granted_the_lock_directly() {
    for (waited_ms, kind) in [(999, "free"), (1_000, "claim"), (2_000, "claim")] {
        let mut bench = Bench::with_waiters(&[TWO]);
        bench.pass(waited_ms);
        bench.release("holder");
        assert_eq!(bench.published(), [message("two", kind, "b1")], "{waited_ms} ms");
        assert_eq!(bench.attempt("newcomer", false).verdict == Verdict::Vote, kind == "free", "{waited_ms} ms");
    }
}

#[test]
fn the_lock_is_kept_for_a_fair_waiter_and_only_that_one_turns_the_claim_into_its_hold() {
    let mut bench = Bench::with_waiters(&[FAIR]);
    bench.release("holder");
    assert_eq!((bench.published(), bench.holder()), (vec![message("one", "claim", "f1")], Some(claim(FAIR))));
    let refused = bench.attempt("newcomer", false);
    let remaining = Remaining::For(Duration::from_millis(CLAIM_MS));
    assert_eq!(refused.verdict, Verdict::Held { holder: claim(FAIR), remaining });
    assert_eq!(bench.wait("f:one:3 pid=1").holder(), Some(&*claim(FAIR)), "another waiter of the same client");
    assert_eq!(bench.wait(FAIR).verdict, Verdict::Vote);
    let lock = bench.state.get(bench.keys.lock(), bench.now_us);
    assert_eq!(lock.and_then(|lock| lock.left_ms(bench.now_us)), Some(TTL));
    assert_eq!(bench.queue(), ["f:one:3 pid=1"]);
}

#[test]
fn a_claim_that_nobody_takes_goes_to_the_next_at_the_next_request() {
    let mut bench = Bench::with_waiters(&[FAIR, "f:two:1 pid=2", "f:three:1 pid=3"]);
    bench.release("holder");
    bench.pass(CLAIM_MS + 1);
    bench.published();
    let reply = bench.wait("f:three:1 pid=3");
    assert_eq!((reply.holder(), &reply.queued), (Some(&*claim("f:two:1 pid=2")), &at(0, T + 2)));
    assert_eq!(bench.published(), [message("two", "claim", "f1"), message("three", "next", "f1")]);
    bench.pass(CLAIM_MS + 1);
    assert_eq!(bench.wait("f:three:1 pid=3").verdict, Verdict::Vote, "nobody is left before it");
}

#[test]
fn a_notified_waiter_is_not_passed_by_those_behind_it() {
    for (first, late_ms) in [(TWO, 0), (TWO, CLAIM_MS + 1), ("f:two:1 pid=2", CLAIM_MS + 1)] {
        let mut bench = Bench::with_waiters(&[first, FAIR]);
        bench.release("holder");
        bench.pass(late_ms);
        assert_eq!(bench.wait_again(first, T).verdict, Verdict::Vote, "{first} {late_ms}");
        assert_eq!(bench.queue(), [FAIR]);
    }
    let mut bench = Bench::with_waiters(&[FAIR]);
    bench.release("holder");
    bench.pass(CLAIM_MS + 1);
    assert_eq!(bench.wait_again("f:one:3 pid=1", T + 1).verdict, Verdict::Vote, "nobody waits");
    let mut bench = Bench::with_waiters(&[TWO, FAIR]);
    bench.release("holder");
    for arrival in [0, T + 1, T + 2] {
        assert_ne!(bench.wait_again(THREE, arrival).verdict, Verdict::Vote, "it came later, or nobody knows when: {arrival}");
    }
}

#[test]
fn the_first_in_the_queue_takes_a_free_lock_without_being_notified() {
    for entry in [FAIR, TWO] {
        let mut bench = Bench::with_waiters(&[entry, THREE]);
        bench.pass(TTL + 1); // expired, and nothing is published; the waiters have tried meanwhile
        let life = i64::try_from(bench.now_us + 1).unwrap();
        for client in ["one", "two", "three"] {
            let keys = bench.keys.clone();
            bench.state.put_member(keys.queue(), client, -life, bench.now_us);
        }
        assert_eq!(bench.wait(entry).verdict, Verdict::Vote, "{entry}");
        assert_eq!(bench.queue(), [THREE]);
    }
}

#[test]
fn a_waiter_that_leaves_passes_on_the_hint_that_it_may_have_got() {
    for (first, claimed) in [(TWO, false), ("f:two:1 pid=2", true)] {
        let mut bench = Bench::with_waiters(&[first, THREE]);
        assert!(matches!(bench.leave(first).verdict, Verdict::No { .. }));
        assert_eq!((bench.published(), bench.queue()), (vec![], vec![THREE.to_owned()]), "the lock is held: nobody is notified");
        bench.wait_again(first, T);
        bench.release("holder");
        bench.published();
        assert_eq!(bench.holder().is_some(), claimed);
        bench.leave(first);
        assert_eq!((bench.published(), bench.holder()), (vec![message("three", "free", "b1")], None), "{first}");
    }
}

#[test]
fn a_claim_of_another_is_not_cancelled_by_a_waiter_that_leaves() {
    let mut bench = Bench::with_waiters(&[FAIR, TWO]);
    bench.release("holder");
    bench.published();
    bench.leave(TWO);
    assert_eq!((bench.published(), bench.holder()), (vec![], Some(claim(FAIR))));
}

#[test]
fn a_client_that_is_silent_for_three_seconds_is_dead_with_all_its_waiters() {
    let mut bench = Bench::with_waiters(&[FAIR, ONE, TWO]);
    bench.pass(3_000);
    assert_eq!(bench.queue(), [FAIR, ONE, TWO], "to the end of its life");
    bench.pass(1);
    assert_eq!(bench.queue(), [] as [&str; 0]);
    assert_eq!(bench.wait(TWO).queued, at(2, T + 2), "who looks is alive again; nobody has dropped the others yet");
    assert_eq!(bench.queue(), [TWO]);
    bench.release("holder");
    assert_eq!(bench.published(), [message("two", "claim", "b1")]);
}

#[test]
fn one_waiter_that_looks_keeps_the_others_of_its_client_in_the_queue() {
    let mut bench = Bench::with_waiters(&[FAIR, ONE]);
    for _ in 0..5 {
        bench.pass(1_000);
        bench.wait(ONE);
    }
    assert_eq!(bench.queue(), [FAIR, ONE]);
}

#[test]
fn a_queue_without_living_waiters_is_no_key_once_it_was_looked_at() {
    let mut bench = Bench::with_waiters(&[TWO]);
    bench.leave(TWO);
    assert_eq!(bench.queue(), [] as [&str; 0]);
    bench.release("holder");
    assert!(!bench.has_queue());

    let mut bench = Bench::with_waiters(&[TWO]);
    bench.pass(TTL + 1);
    bench.attempt("newcomer", false);
    assert!(!bench.has_queue(), "all of them are dead");

    let mut bench = Bench::with_waiters(&[TWO]);
    bench.pass(60_001);
    assert!(!bench.has_queue(), "and nobody has to look at all");
}

#[test]
fn a_waiter_that_shares_its_place_goes_to_the_tail_with_its_grant() {
    let mut bench = Bench::with_waiters(&[TWO, THREE]);
    bench.release("holder");
    bench.pass(5);
    let granted = bench.wait_for(TWO, T, true);
    assert_eq!((granted.verdict, granted.queued), (Verdict::Vote, at(1, T + 5_000)));
    assert_eq!(bench.queue(), [THREE, TWO]);
}

#[test]
fn on_a_quorum_the_queue_is_a_hint_and_bars_nobody() {
    let mut bench = Bench::of_quorum();
    assert_eq!(bench.attempt("holder", false).verdict, Verdict::Vote);
    bench.wait(TWO);
    bench.wait(THREE);
    bench.pass(2_000);
    bench.release("holder");
    assert_eq!(
        bench.published(),
        [message("two", "free", "b1"), message("three", "next", "b1")],
        "no claim, however long it waited"
    );
    assert_eq!(bench.attempt("newcomer", false).verdict, Verdict::Vote);
}

#[test]
fn a_key_that_is_no_queue_stays_and_is_in_nobodys_way() {
    let mut bench = Bench::new();
    let keys = bench.keys.clone();
    bench.state.put(keys.queue(), Value::Text("mine".into()), T, None);
    assert_eq!(bench.attempt("holder", true).verdict, Verdict::Vote);
    assert_eq!(bench.wait(TWO).queued, Queued::Nothing);
    bench.leave(TWO);
    assert_eq!(bench.release("holder").verdict, Verdict::Ok);
    assert_eq!(bench.state.get(keys.queue(), T).and_then(|entry| entry.text()), Some("mine"));
}

#[test]
fn an_entry_that_cannot_be_read_is_no_waiter() {
    for entry in ["", "f", "f:client", "5:client:1 pid=1", "fb:client:1 pid=1"] {
        let mut bench = Bench::held();
        assert_eq!(bench.wait(entry).queued, Queued::Nothing, "{entry:?}");
        assert!(!bench.has_queue(), "{entry:?}");
    }
}

#[test]
fn an_inspection_counts_all_and_names_the_first_hundred() {
    let mut bench = Bench::held();
    for number in 0..150 {
        bench.wait(&format!("b:two:{number} pid=2"));
    }
    bench.wait(THREE);
    let before = bench.state.clone();
    let Queued::Waiters { count, first } = bench.apply(&Op::inspect(bench.keys.clone())).queued else {
        panic!("waiters are shown")
    };
    assert_eq!((count, first.len(), &*first[99]), (151, 100, "b:two:99 pid=2"));
    assert!(before.iter(T).eq(bench.state.iter(T)), "nothing is changed");
}
