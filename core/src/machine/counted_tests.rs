//! A fence that a single server counts up, and extensions that leave it alone.

use super::*;

fn a_fence_is_counted_up_for_a_second() {
    let mut bench = Bench::new();
    bench.acquire("a", T);
    bench.release("a");
    let ends = bench.now_us / 1_000 + TTL + FENCE_KEPT_MS;
    let left = |bench: &Bench| bench.state.get(bench.keys.fence(), bench.now_us).and_then(|fence| fence.expires_ms);
    bench.pass(1_000);
    let clock = bench.now_us;
    assert_eq!((bench.acquire("b", clock).fence, left(&bench)), (T + 1, Some(ends)), "the end stays");
    bench.release("b");
    bench.pass(1);
    let clock = bench.now_us;
    assert_eq!(bench.acquire("c", clock).fence, clock, "an old fence becomes the time");
    assert_eq!(left(&bench), Some(clock / 1_000 + TTL + FENCE_KEPT_MS));
}

#[test]
fn a_fence_is_counted_up_for_a_second_and_then_it_is_the_time() {
    a_fence_is_counted_up_for_a_second();
}

#[cfg(feature = "mutants")]
#[test]
fn a_fence_that_is_counted_up_for_ever_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::OldFenceCounted, a_fence_is_counted_up_for_a_second);
}

#[test]
fn a_client_whose_clock_is_wrong_gets_the_time_of_the_server() {
    for (proposal, expected) in [
        (T - 1_000_000, T + 5_000),
        (T - 999_999, T + 1),
        (T + 1_000_001, T + 1),
        (T + 1_000_002, T + 5_000),
        (1, T + 5_000),
        (u64::MAX >> 11, T + 5_000),
    ] {
        let mut bench = Bench::new();
        bench.acquire("a", T);
        bench.release("a");
        bench.pass(5);
        assert_eq!(bench.acquire("b", proposal).fence, expected, "{proposal}");
    }
}

#[test]
fn a_fence_that_is_no_time_or_is_marked_or_belongs_to_a_long_lock_becomes_the_time() {
    let mut bench = Bench::new();
    for (fence, ttl_ms, expected) in [
        ("7", TTL, T),
        ("999999999999998", TTL, T),
        ("1000000000000000", TTL, T),
        ("1799999999999999", TTL, T),
        ("1799999999999998", TTL, T - 1),
        ("1799999999999998q", TTL, T),
        ("1799999999999998", 999_999, T - 1),
        ("1799999999999998", 1_000_000, T),
        ("1900000000000000", TTL, 1_900_000_000_000_001),
        ("9007199254740989", TTL, 9_007_199_254_740_990),
        ("9007199254740990", TTL, 9_007_199_254_740_991),
    ] {
        bench.put_fence(fence);
        let op = Op::Acquire {
            keys: bench.keys.clone(),
            owner: "a".into(),
            ttl_ms,
            proposal: T,
            adopt: None,
            fair: false,
            place: None,
            quorum_config: None,
        };
        assert_eq!(bench.apply(&op).fence, expected, "{fence}");
        assert_eq!(bench.release("a").verdict, Verdict::Ok);
    }
}

#[test]
fn an_extension_of_the_lock_alone_leaves_the_fence_and_tells_why_it_is_refused() {
    let mut bench = Bench::new();
    bench.acquire("a", T);
    bench.pass(5_000);
    assert_eq!(bench.renew("a", TTL, T), Reply::new(Verdict::Ok, bench.now_us, T));
    assert_eq!(
        bench.keys_now(),
        [("orders:42".into(), Some(TTL)), ("{orders:42}:~lt:fence".into(), Some(TTL + FENCE_KEPT_MS - 5_000))]
    );
    bench.renew("a", 60_000, T);
    bench.renew("a", TTL, T);
    assert_eq!(bench.holder(), (Some("a"), Some(60_000)), "what remains is never shortened");
    bench.put_fence("garbage");
    assert_eq!(bench.renew("a", TTL, T).verdict, Verdict::Ok, "the fence isn't looked at");
    bench.put_fence("9");
    bench.put_lock(text("a"), None);
    assert_eq!((bench.renew("a", TTL, T).verdict, bench.holder().1), (Verdict::Ok, Some(TTL)), "a lock without expiry gets one");
    let no = Verdict::No { holder: Some("a".into()), remaining: ms(TTL) };
    assert_eq!(bench.renew("b", TTL, T), Reply::new(no, bench.now_us, 9));
}
