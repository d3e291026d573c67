//! Waiting for something to become true, on machines that have better things to do.

use std::time::{Duration, Instant};

/// How long anything may take before a test is given up.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What a machine may add to a bound that is promised. It is small, or the promise would hide in it.
pub const TOLERANCE: Duration = Duration::from_millis(150);

/// In which what somebody gave up, or is to be told to every server, has left and reached them.
pub const PROMPTLY: Duration = Duration::from_secs(1);

/// How long clients of a test wait for an answer, a connection or the like where that isn't what the test is about.
pub const LENIENT: Duration = Duration::from_secs(5);

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
