//! The fences of one server of a quorum.

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
