//! Foreign holders: they use another library, and announce no release.

use crate::op::holder::{gate_of, is_claim, is_kept};
use crate::owner::Fields;

/// Whether the holder with this value uses another library, which announces no release. An owner value of this library ends in
/// `id=…`. A lock that is kept for a waiter, or after a release, had a holder of this library, and so has one that several hold.
pub(crate) fn is_foreign(holder: &str) -> bool {
    !is_claim(holder) && !is_kept(holder) && gate_of(holder).is_none() && Fields::parse(holder).get("id").is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::Signature;

    #[test]
    fn a_holder_is_known_by_its_value() {
        let ours = Signature::new(Some("a b=c"), "web-3", 4711).owner(1_800_000_000_000_000, 7);
        for ours in [
            &*ours,
            &format!("kept {ours}"),
            "claim f:0123456789abcdef:7 host=web-3 pid=1",
            "read 1800000000000000",
            "permits 5",
            "id=1",
            "host=x id=1 later=2",
        ] {
            assert!(!is_foreign(ours), "{ours}");
        }
        // redis-py and redlock, redsync and python-redis-lock, redis-semaphore, rslock, and values that people write by hand.
        for theirs in [
            "0123456789abcdef0123456789abcdef",
            "c29tZSBieXRlcyBpbiBoZXJl",
            "01a1fbe9-40cb-7c52-9d0e-1f6d2c3b4a59",
            "\u{fffd}\u{fffd}id=\u{fffd}",
            "",
            "host=web-3 pid=1",
            "valid=1",
            "claims nothing",
        ] {
            assert!(is_foreign(theirs), "{theirs}");
        }
    }
}
