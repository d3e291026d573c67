//! Waiting for something to become true.

use std::time::{Duration, Instant};

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
