//! A single server: it writes the fence of a free lock before it has seen the one that is there, and extends the lock alone.

use super::*;

impl Bench {
    fn fence_left(&self) -> Option<u64> {
        self.state.get(self.keys.fence(), self.now_us)?.left_ms(self.now_us)
    }
}

#[test]
fn the_fence_is_the_clients_clock_if_that_is_at_most_a_second_off() {
    for (proposal, expected) in [
        (T, T + 1),
        (T + 5_000, T + 5_000),
        (T + 1_000_000, T + 1_000_000),
        (T + 1_005_000, T + 1_005_000),
        (T + 1_005_001, T + 5_000),
        (T - 2_000_000, T + 5_000),
        (1, T + 5_000),
        (u64::MAX, T + 5_000),
    ] {
        let mut bench = Bench::new();
        bench.acquire("a", T);
        bench.release("a");
        bench.pass(5);
        assert_eq!(bench.acquire("b", proposal).fence, expected, "{proposal}");
        assert_eq!(bench.fence_left(), Some(TTL + FENCE_KEPT_MS), "{proposal}");
    }
}

#[test]
fn a_fence_of_any_form_gives_way_to_the_clock_or_is_counted_up() {
    let mut bench = Bench::new();
    for (fence, proposal, expected) in [
        ("7", T, T),
        ("999999999999999", T, T),
        ("1799999999999999", T, T),
        ("1799999999999999q", T, T),
        ("1900000000000000", T, 1_900_000_000_000_001),
        ("1900000000000000", 1_900_000_001_000_000, 1_900_000_001_000_000),
        ("1900000000000000", 1_900_000_001_000_001, 1_900_000_000_000_001),
        ("9007199254740989", T, 9_007_199_254_740_990),
        ("9007199254740989", 9_007_199_254_740_991, 9_007_199_254_740_990),
        ("9007199254740990", T, 9_007_199_254_740_991),
    ] {
        bench.put_fence(fence);
        assert_eq!(bench.acquire("a", proposal).fence, expected, "{fence} {proposal}");
        assert_eq!(bench.release("a").verdict, Verdict::Ok);
    }
}

#[test]
fn what_is_no_fence_is_put_back_and_gets_an_expiry() {
    for (fence, proposal, left) in [("garbage", T, Some(TTL + FENCE_KEPT_MS)), ("garbage", 1, None)] {
        let mut bench = Bench::new();
        bench.put_fence(fence);
        let found = Verdict::Conflict { found: "string at {orders:42}:~lt:fence".into() };
        assert_eq!(bench.acquire("a", proposal).verdict, found);
        assert_eq!(bench.state.get(bench.keys.fence(), T).and_then(|entry| entry.text()), Some(fence));
        assert_eq!(bench.fence_left(), left, "a proposal that is no time is not written");
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
