use std::sync::Arc;
use std::time::Duration;

use crate::error::Remaining;
use crate::machine::{Env, FENCE_KEPT_MS, State, Value, apply};
use crate::name::{Keys, Kind};
use crate::op::{Adoption, LockOp, Op, QuorumConfig, Reply, Verb, Verdict};

const T: u64 = 1_800_000_000_000_000;
const TTL: u64 = 10_000;

/// One server with one lock, and a clock that only the test moves.
struct Bench {
    state: State,
    keys: Arc<Keys>,
    now_us: u64,
}

impl Bench {
    fn new() -> Self {
        Self { state: State::new(), keys: Arc::new(Keys::new(Kind::Quorum, "", "orders:42", false).unwrap()), now_us: T }
    }

    fn apply(&mut self, op: &Op) -> Reply {
        apply(&mut self.state, op, &Env { now_us: self.now_us, replid: "run", known_as: "run", is_renamed: false })
    }

    fn acquire(&mut self, owner: &str, proposal: u64) -> Reply {
        self.acquire_as(owner, proposal, None)
    }

    fn acquire_adopting(&mut self, owner: &str, proposal: u64, adopt: &str, or_acquire: bool) -> Reply {
        self.acquire_as(owner, proposal, Some(Adoption { owner: adopt.into(), or_acquire, beside: false }))
    }

    fn acquire_as(&mut self, owner: &str, proposal: u64, adopt: Option<Adoption>) -> Reply {
        self.apply(&Op::Lock(LockOp {
            keys: self.keys.clone(),
            by: owner.into(),
            verb: Verb::Acquire { ttl_ms: TTL, proposal, adopt, fair: false, place: None, quorum_config: None, job: None },
        }))
    }

    fn confirm(&mut self, owner: &str, fence: u64) -> Reply {
        self.apply(&Op::Lock(LockOp { keys: self.keys.clone(), by: owner.into(), verb: Verb::Confirm { fence } }))
    }

    fn extend(&mut self, owner: &str, ttl_ms: u64, fence: u64) -> Reply {
        self.apply(&Op::Lock(LockOp { keys: self.keys.clone(), by: owner.into(), verb: Verb::Extend { ttl_ms, fence } }))
    }

    /// An extension of a client of one server.
    fn renew(&mut self, owner: &str, ttl_ms: u64, fence: u64) -> Reply {
        self.apply(&Op::Lock(LockOp { keys: self.keys.clone(), by: owner.into(), verb: Verb::Extend { ttl_ms, fence } }))
    }

    fn heal(&mut self, owner: &str, ttl_ms: u64, fence: u64) -> Reply {
        self.apply(&Op::Lock(LockOp { keys: self.keys.clone(), by: owner.into(), verb: Verb::Heal { ttl_ms, fence } }))
    }

    fn release(&mut self, owner: &str) -> Reply {
        self.apply(&Op::Lock(LockOp {
            keys: self.keys.clone(),
            by: owner.into(),
            verb: Verb::Release { leave: None, kept_ms: 0 },
        }))
    }

    fn release_and_keep(&mut self, owner: &str, kept_ms: u64) -> Reply {
        let verb = Verb::Release { leave: None, kept_ms };
        self.apply(&Op::Lock(LockOp { keys: self.keys.clone(), by: owner.into(), verb }))
    }

    fn inspect(&mut self) -> Reply {
        self.apply(&Op::inspect(self.keys.clone()))
    }

    fn put_lock(&mut self, value: Value, ttl_ms: Option<u64>) {
        self.state.put(self.keys.lock(), value, self.now_us, ttl_ms);
    }

    fn put_fence(&mut self, text: &str) {
        self.state.put(self.keys.fence(), Value::Text(text.into()), self.now_us, None);
    }

    fn pass(&mut self, ms: u64) {
        self.now_us += ms * 1_000;
    }

    /// The holder of the lock, and the milliseconds that remain.
    fn holder(&self) -> (Option<&str>, Option<u64>) {
        let entry = self.state.get(self.keys.lock(), self.now_us);
        (entry.and_then(|entry| entry.text()), entry.and_then(|entry| entry.left_ms(self.now_us)))
    }

    fn keys_now(&self) -> Vec<(String, Option<u64>)> {
        self.state.iter(self.now_us).map(|(key, entry)| (key.to_owned(), entry.left_ms(self.now_us))).collect()
    }
}

fn ms(left: u64) -> Remaining {
    Remaining::For(Duration::from_millis(left))
}

fn text(value: &str) -> Value {
    Value::Text(value.into())
}

#[test]
fn a_free_lock_is_granted_with_the_proposal_as_its_fence() {
    let mut bench = Bench::new();
    assert_eq!(bench.acquire("a", T + 5), Reply::new(Verdict::Vote, T, T + 5));
    assert_eq!(bench.keys_now(), [("orders:42".into(), Some(TTL)), ("{orders:42}:~lt:fence".into(), Some(TTL + FENCE_KEPT_MS))]);
}

#[test]
fn a_held_lock_teaches_the_fence_the_holder_and_what_remains() {
    let mut bench = Bench::new();
    bench.acquire("a", T);
    bench.pass(4_000);
    let before = bench.keys_now();
    assert_eq!(bench.acquire("b", T), Reply::new(Verdict::Held { holder: "a".into(), remaining: ms(6_000) }, bench.now_us, T));
    assert_eq!(bench.keys_now(), before);
}

fn a_lock_that_is_kept_after_its_release_is_nobodys_until_then() {
    let mut bench = Bench::new();
    let fence = bench.acquire("a", T).fence;
    let kept = |left| Verdict::Held { holder: "kept a".into(), remaining: ms(left) };
    let no = Verdict::No { holder: Some("kept a".into()), remaining: ms(30_000) };
    assert_eq!(bench.release_and_keep("b", 30_000).verdict, Verdict::No { holder: Some("a".into()), remaining: ms(TTL) });
    assert_eq!(bench.release_and_keep("a", 30_000), Reply::new(Verdict::Ok, T, 0));
    // A late renewal of its owner doesn't find it, nor does anybody else.
    assert_eq!(bench.renew("a", TTL, fence).verdict, no);
    assert_eq!(bench.release("a").verdict, no);
    assert_eq!(bench.acquire("b", T).verdict, kept(30_000));
    assert_eq!(bench.acquire("a", T).verdict, kept(30_000));
    bench.pass(29_999);
    assert_eq!(bench.acquire("b", T).verdict, kept(1));
    bench.pass(2);
    assert!(bench.acquire("b", bench.now_us).fence > fence);
}

#[test]
fn a_kept_lock() {
    a_lock_that_is_kept_after_its_release_is_nobodys_until_then();
}

#[test]
fn a_lock_that_is_kept_for_its_owner_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::KeptForItsOwner, a_lock_that_is_kept_after_its_release_is_nobodys_until_then);
}

#[test]
fn a_repeated_acquire_votes_again_and_never_returns_the_old_fence() {
    let mut bench = Bench::new();
    bench.acquire("a", T);
    bench.pass(9_000);
    assert_eq!(bench.acquire("a", T), Reply::new(Verdict::Vote, bench.now_us, bench.now_us));
    assert_eq!(bench.holder(), (Some("a"), Some(TTL)));
}

#[test]
fn a_repeated_acquire_never_shortens_what_an_extension_left() {
    let mut bench = Bench::new();
    let fence = bench.acquire("a", T).fence;
    bench.extend("a", 6 * TTL, fence);
    bench.pass(1_000);
    assert_eq!(bench.acquire("a", T).verdict, Verdict::Vote);
    assert_eq!(bench.holder(), (Some("a"), Some(6 * TTL - 1_000)));
    bench.acquire_adopting("b", T, "a", true);
    assert_eq!(bench.holder(), (Some("b"), Some(TTL)), "an adopted hold has a ttl of its own");
}

#[test]
fn only_the_adopted_owner_counts_as_free() {
    let mut bench = Bench::new();
    bench.acquire("a", T);
    assert_eq!(bench.acquire_adopting("b", T, "c", true).holder(), Some("a"));
    let adopted = bench.acquire_adopting("b", T, "a", true);
    assert_eq!((adopted.verdict, adopted.fence, bench.holder().0), (Verdict::Vote, T + 1, Some("b")));
    assert_eq!(bench.release("a").holder(), Some("b"));
    bench.put_lock(text(""), None);
    assert_eq!(bench.acquire_adopting("b", T, "", true).holder(), Some(""), "nobody hands over an empty owner");
}

#[test]
fn an_adoption_that_takes_a_free_lock_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::AdoptsAnything, only_what_was_handed_over_is_taken_unless_more_is_asked_for);
}

#[test]
fn only_what_was_handed_over_is_taken_unless_more_is_asked_for() {
    let mut bench = Bench::new();
    let no = |bench: &Bench, fence, holder: Option<&str>, remaining| {
        Reply::new(Verdict::No { holder: holder.map(str::to_owned), remaining }, bench.now_us, fence)
    };
    assert_eq!(bench.acquire_adopting("b", T, "a", false), no(&bench, 0, None, Remaining::Gone), "a free lock stays free");
    bench.acquire("a", T);
    assert_eq!(bench.acquire_adopting("b", T, "c", false), no(&bench, T, Some("a"), ms(TTL)));
    let adopted = bench.acquire_adopting("b", T, "a", false);
    assert_eq!((adopted.verdict, adopted.fence, bench.holder().0), (Verdict::Vote, T + 1, Some("b")));
    assert_eq!(bench.acquire_adopting("b", T, "a", false).verdict, Verdict::Vote, "a resend finds its own value");
    assert!(matches!(bench.acquire_adopting("c", T, "a", false).verdict, Verdict::No { .. }), "a text adopts once");
    bench.release("b");
    assert!(matches!(bench.acquire_adopting("c", T, "a", false).verdict, Verdict::No { .. }));
    bench.put_lock(text(""), None);
    let fence = bench.inspect().fence;
    let forever = no(&bench, fence, Some(""), Remaining::Forever);
    assert_eq!(bench.acquire_adopting("b", T, "", false), forever, "nobody hands over an empty owner");
}

#[test]
fn a_lock_of_another_library_without_expiry_is_a_holder_like_any_other() {
    let mut bench = Bench::new();
    bench.put_lock(text("redis-py"), None);
    let reply = bench.acquire("a", T);
    let (holder, remaining) = ("redis-py".to_owned(), Remaining::Forever);
    assert_eq!(reply, Reply::new(Verdict::Held { holder: holder.clone(), remaining }, T, 0));
    for reply in [bench.confirm("a", T), bench.extend("a", TTL, T), bench.heal("a", TTL, T), bench.release("a")] {
        assert_eq!(reply.verdict, Verdict::No { holder: Some(holder.clone()), remaining });
    }
    assert_eq!(bench.keys_now(), [("orders:42".into(), None)]);
}

#[test]
fn what_is_no_lock_is_a_conflict_and_stays_as_it_is() {
    let mut bench = Bench::new();
    bench.put_lock(Value::Foreign("list".into()), None);
    bench.put_fence("7");
    let before = bench.keys_now();
    for reply in [
        bench.acquire("a", T),
        bench.confirm("a", T),
        bench.extend("a", TTL, T),
        bench.heal("a", TTL, T),
        bench.release("a"),
        bench.inspect(),
    ] {
        assert_eq!(reply, Reply::new(Verdict::Conflict { found: "list".into() }, T, 7));
    }
    assert_eq!(bench.keys_now(), before);
}

#[test]
fn what_is_no_fence_is_a_conflict_but_never_keeps_a_lock_from_being_released() {
    let mut bench = Bench::new();
    for garbage in ["garbage", "-1", "9007199254740992"] {
        bench.put_lock(text("a"), Some(TTL));
        bench.put_fence(garbage);
        for reply in
            [bench.acquire("a", T), bench.confirm("a", T), bench.extend("a", TTL, T), bench.heal("a", TTL, T), bench.inspect()]
        {
            let found = "string at {orders:42}:~lt:fence".to_owned();
            assert_eq!(reply, Reply::new(Verdict::Conflict { found }, T, 0), "{garbage}");
        }
        assert_eq!(bench.release("a"), Reply::new(Verdict::Ok, T, 0));
        assert_eq!(bench.keys_now(), [("{orders:42}:~lt:fence".into(), None)]);
    }
}

#[test]
fn confirm_raises_the_fence_unless_a_newer_vote_was_cast() {
    let mut bench = Bench::new();
    bench.acquire("a", T);
    assert_eq!(bench.confirm("a", T - 1).holder(), Some("a"));
    assert_eq!(bench.confirm("b", T + 9).holder(), Some("a"));
    bench.pass(1_000);
    assert_eq!(bench.confirm("a", T + 9), Reply::new(Verdict::Ok, bench.now_us, T + 9));
    assert_eq!(bench.holder(), (Some("a"), Some(9_000)));
    assert_eq!(bench.inspect().fence, T + 9);
}

#[test]
fn an_extension_never_shortens() {
    let mut bench = Bench::new();
    bench.acquire("a", T);
    bench.extend("a", 60_000, T);
    assert_eq!(bench.holder(), (Some("a"), Some(60_000)));
    bench.extend("a", TTL, T);
    assert_eq!(bench.holder(), (Some("a"), Some(60_000)));
    bench.heal("a", TTL, T);
    assert_eq!(bench.holder(), (Some("a"), Some(60_000)));
    bench.pass(55_000);
    bench.extend("a", TTL, T);
    assert_eq!(bench.holder(), (Some("a"), Some(TTL)));
}

#[test]
fn an_extension_is_refused_to_a_stranger_on_a_missing_key_and_under_a_newer_fence() {
    let mut bench = Bench::new();
    assert_eq!(bench.extend("a", TTL, T), Reply::new(Verdict::No { holder: None, remaining: Remaining::Gone }, T, 0));
    bench.acquire("a", T);
    assert_eq!(bench.extend("b", TTL, T).holder(), Some("a"));
    let before = bench.keys_now();
    assert_eq!(bench.extend("a", 60_000, T - 1), Reply::new(Verdict::No { holder: Some("a".into()), remaining: ms(TTL) }, T, T));
    assert_eq!(bench.keys_now(), before);
}

#[test]
fn an_extension_repairs_a_lock_without_expiry_and_a_lost_fence() {
    let mut bench = Bench::new();
    bench.put_lock(text("a"), None);
    assert_eq!(bench.extend("a", TTL, T), Reply::new(Verdict::Ok, T, T));
    assert_eq!(bench.keys_now(), [("orders:42".into(), Some(TTL)), ("{orders:42}:~lt:fence".into(), Some(TTL + FENCE_KEPT_MS))]);
}

#[test]
fn heal_writes_a_lost_key_again_but_over_nobody() {
    let mut bench = Bench::new();
    assert_eq!(bench.heal("a", TTL, T), Reply::new(Verdict::Ok, T, T));
    assert_eq!(bench.heal("b", TTL, T + 1).holder(), Some("a"));
    bench.release("a");
    assert_eq!(bench.heal("a", TTL, T - 1), Reply::new(Verdict::No { holder: None, remaining: Remaining::Gone }, T, T));
    assert_eq!(bench.inspect().holder(), None);
}

fn heal_takes_a_lock_that_is_kept_for_a_waiter() {
    // What remains of the claim may be more or less than the hold needs.
    for claimed_for in [TTL / 50, TTL * 2] {
        let mut bench = Bench::new();
        bench.put_lock(text("claim f:one:1 pid=1"), Some(claimed_for));
        assert_eq!(bench.heal("a", TTL, T), Reply::new(Verdict::Ok, T, T));
        let fence_ends = Some(TTL + FENCE_KEPT_MS);
        assert_eq!(bench.keys_now(), [("orders:42".into(), Some(TTL)), ("{orders:42}:~lt:fence".into(), fence_ends)]);
        assert_eq!(bench.inspect().holder(), Some("a"));
    }
}

#[test]
fn a_claim_on_a_server_that_lost_the_hold_gives_way_to_the_hold() {
    heal_takes_a_lock_that_is_kept_for_a_waiter();
}

#[test]
fn a_claim_that_stops_a_heal_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::ClaimStopsHeal, heal_takes_a_lock_that_is_kept_for_a_waiter);
}

#[test]
fn heal_works_in_quarantine_and_is_no_vote() {
    let mut bench = Bench::new();
    bench.keys = Arc::new(Keys::new(Kind::Exclusive, "", "orders:42", false).unwrap());
    let quorum_config = Some(QuorumConfig { servers: 3, max_ttl_ms: 60_000 });
    let acquire = Op::Lock(LockOp {
        keys: bench.keys.clone(),
        by: "b".into(),
        verb: Verb::Acquire { ttl_ms: TTL, proposal: T, adopt: None, fair: false, place: None, quorum_config, job: None },
    });
    let quarantine = Verdict::Quarantine { left: Duration::from_secs(60) };
    assert_eq!(bench.apply(&acquire).verdict, quarantine);
    assert_eq!(bench.heal("a", TTL, T).verdict, Verdict::Ok);
    assert_eq!(bench.apply(&acquire).verdict, quarantine);
    bench.pass(60_000);
    assert_eq!(bench.apply(&acquire).verdict, Verdict::Vote);
}

#[test]
fn a_release_deletes_its_own_lock_only_and_the_fence_stays_for_a_day_after_the_locks_expiry() {
    let mut bench = Bench::new();
    bench.acquire("a", T);
    assert_eq!(bench.release("b"), Reply::new(Verdict::No { holder: Some("a".into()), remaining: ms(TTL) }, T, T));
    bench.pass(5_000);
    assert_eq!(bench.release("a"), Reply::new(Verdict::Ok, bench.now_us, 0));
    assert_eq!(bench.keys_now(), [("{orders:42}:~lt:fence".into(), Some(TTL - 5_000 + FENCE_KEPT_MS))]);
    assert_eq!(bench.release("a"), Reply::new(Verdict::No { holder: None, remaining: Remaining::Gone }, bench.now_us, T));
}

#[test]
fn a_later_holder_has_a_larger_fence_whatever_its_clock_says() {
    let mut bench = Bench::new();
    let mut last = 0;
    for proposal in [T, 0, T - 500_000, T + 3_000_000_000, u64::MAX, T, 1] {
        let fence = bench.acquire("a", proposal).fence;
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        bench.release("a");
    }
}

#[path = "quorum_fence_tests.rs"]
mod fence;
