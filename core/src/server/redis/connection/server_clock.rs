//! Server clock: a server's wall clock, as far as its answers have shown it. The clock that counts suspended time carries it on.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::clock::Tick;

/// The mark of a clock that was never read.
const UNKNOWN: i64 = i64::MIN;

/// The clock, as its distance from this machine's boot clock in microseconds. It is never shown ahead of the server's own.
#[derive(Debug)]
pub(crate) struct ServerClock(AtomicI64);

impl Default for ServerClock {
    fn default() -> Self {
        Self(AtomicI64::new(UNKNOWN))
    }
}

impl ServerClock {
    /// The server's clock was `server_us` at some time after `sent`, and not after `received`.
    pub(crate) fn learn(&self, server_us: u64, sent: Tick, received: Tick) {
        let before = self.0.load(Ordering::Relaxed);
        // Of two readings that arrive at the same time either is a right one.
        self.0.store(distance(before, server_us, sent, received), Ordering::Relaxed);
    }

    /// Another node answers for the server, with another clock.
    pub(crate) fn forget(&self) {
        self.0.store(UNKNOWN, Ordering::Relaxed);
    }

    /// The server's clock at `now`, in microseconds since the epoch.
    pub(crate) fn at(&self, now: Tick) -> Option<u64> {
        let distance = Some(self.0.load(Ordering::Relaxed)).filter(|distance| *distance != UNKNOWN)?;
        now.as_micros().checked_add_signed(distance)
    }
}

/// The distance after a reading. A reading shows a range, which is as wide as its round trip. The distance before stands if it is in
/// that range: then an earlier reading was a better one.
fn distance(before: i64, server_us: u64, sent: Tick, received: Tick) -> i64 {
    let from = |at: Tick| i64::try_from(i128::from(server_us) - i128::from(at.as_micros())).unwrap_or(0);
    let (least, most) = (from(received.max(sent)), from(sent));
    if before == UNKNOWN { least } else { before.clamp(least, most) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Tick {
        Tick::from_micros(ms * 1_000)
    }

    #[test]
    fn a_clock_is_carried_on_and_corrected_by_each_reading() {
        let clock = ServerClock::default();
        assert_eq!(clock.at(at(1_000)), None);
        for (server_ms, sent, received, asked, expected, why) in [
            (5_000, 900, 1_000, 1_500, 5_500, "counted from its arrival: never ahead"),
            (6_050, 2_000, 2_100, 2_100, 6_100, "within what the first one allows"),
            (6_100, 2_100, 2_100, 2_100, 6_100, "as expected"),
            (7_120, 3_095, 3_105, 3_105, 7_120, "it was ahead of what was known by the time on the way"),
            (60_000, 4_000, 4_001, 4_001, 60_000, "set forward"),
            (8_000, 5_000, 5_010, 5_010, 8_010, "set back"),
        ] {
            clock.learn(server_ms * 1_000, at(sent), at(received));
            assert_eq!(clock.at(at(asked)), Some(expected * 1_000), "{why}");
        }
        clock.forget();
        assert_eq!(clock.at(at(6_000)), None);
    }

    #[test]
    fn a_clock_behind_the_time_since_the_start_of_this_machine_is_one_too() {
        let clock = ServerClock::default();
        clock.learn(1_000, at(50), at(60));
        assert_eq!((clock.at(at(70)), clock.at(at(58))), (Some(11_000), None));
    }
}
