//! Patience: how long tests wait for a condition, also on a busy machine.

use std::time::{Duration, Instant};

/// The time limit of any wait, after which the test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The time that a machine may add to a promised bound. It is small, because a large one would hide a broken promise.
pub const TOLERANCE: Duration = Duration::from_millis(150);

/// The time in which a cancelled operation, or a message to every server, has arrived.
pub const PROMPTLY: Duration = Duration::from_secs(1);

/// The time limit of a test's client for an answer, a connection or the like, if the test isn't about this limit.
pub const LENIENT: Duration = Duration::from_secs(5);

/// A hold's ttl: long enough for renewals in time on a busy machine, short enough for a test to see several renewals.
pub const TTL: Duration = Duration::from_millis(4_500);

/// Waits until `is_so` is true, checking every few milliseconds.
///
/// # Panics
/// If it is still false after `patience`: the test has failed.
pub fn eventually(what: &str, patience: Duration, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + patience;
    while !is_so() {
        assert!(Instant::now() < until, "not within {patience:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
