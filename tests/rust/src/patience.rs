//! Waiting for something to become true, on machines that have better things to do.

use std::time::{Duration, Instant};

/// How long anything may take before a test is given up.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What a busy machine may add to whatever is to be over by a certain time. What a test shows must not hide in it: what it
/// rules out takes longer, or is counted.
pub const TOLERANCE: Duration = Duration::from_secs(5);

/// A hold's ttl: long enough for a busy machine to be in time with a beat, short enough for a test to see several.
pub const TTL: Duration = Duration::from_millis(4_500);

/// Waits until `is_so`, looking every few milliseconds.
///
/// # Panics
/// If it isn't so after `patience`: the test has failed.
pub fn eventually(what: &str, patience: Duration, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + patience;
    while !is_so() {
        assert!(Instant::now() < until, "not within {patience:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
