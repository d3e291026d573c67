//! Seconds: times as Python counts them.

use std::time::Duration;

/// A time in seconds, of whole milliseconds: as a float of its parts 2.78 would be 2.7800000000000002.
pub(crate) fn in_seconds(span: Duration) -> f64 {
    span.as_millis() as f64 / 1e3
}

/// A measured time in seconds, which may be shorter than a millisecond.
pub(crate) fn measured(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e6
}
