//! Validity: how long a holder may believe in its lock, given how long the servers keep the key.

use std::time::Duration;

use crate::clock::{Tick, micros};
use crate::mutant::mutant;

/// The possible cost of servers' expiry in whole milliseconds.
const SETTLED: Duration = Duration::from_millis(2);

/// The drift allowance: a part of the ttl for clocks that run at slightly different rates. It is a hundredth, and 2 ms for the
/// servers' millisecond expiry. The bound is the one of the Redlock description at redis.io.
#[must_use]
pub fn drift(ttl: Duration) -> Duration {
    ttl / 100 + SETTLED
}

/// The end of validity of a key that was asked for at `sent` with `ttl`. It is counted from the *request*, because the server may
/// have applied the request at any time since.
#[must_use]
pub fn end(sent: Tick, ttl: Duration) -> Tick {
    let allowance = if mutant!(NoDrift) { Duration::ZERO } else { drift(ttl) };
    sent.after(ttl.saturating_sub(allowance))
}

/// The shortest ttl to ask for so that `span` remains: [`end`] subtracts the drift allowance, so this is added, in whole
/// microseconds.
#[must_use]
pub fn asking_for(span: Duration) -> Duration {
    if mutant!(DriftTwice) {
        return span;
    }
    let raised = micros(span.saturating_add(SETTLED)).saturating_mul(100).div_ceil(99);
    Duration::from_micros(raised)
}

/// A server's clock as one reply showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The time at which the request was sent.
    pub sent: Tick,
    /// The server's clock in the reply, microseconds; 0 if the reply doesn't show it.
    pub server_us: u64,
}

/// Whether the server's clock jumped forward between two of its replies to one hold.
///
/// Between the server's two readings at most `received − earlier.sent` of real time passed. If the server's clock advanced
/// further than that, by more than the drift allowance, it jumped. Then keys expire earlier than their holder believes.
#[must_use]
pub fn jumped(earlier: Reading, later_us: u64, received: Tick) -> bool {
    jump(earlier, later_us, received).is_some()
}

/// The smallest possible jump forward of the server's clock between the two replies; `None` if it did not jump.
#[must_use]
pub fn jump(earlier: Reading, later_us: u64, received: Tick) -> Option<Duration> {
    let elapsed = received.since(earlier.sent);
    let went = Duration::from_micros(later_us.saturating_sub(earlier.server_us));
    Some(went.saturating_sub(elapsed)).filter(|by| earlier.server_us > 0 && *by > drift(elapsed))
}

/// The time of the next renewal: when two thirds of `ttl` remain. So the first one is a third of the ttl after the grant, and
/// later if the hold was extended further. The renewals of one process are aligned to a grid of a sixtieth of the ttl. So
/// thousands of renewals are sent in a few writes.
#[must_use]
pub fn next_renewal(validity_end: Tick, ttl: Duration) -> Tick {
    let due = validity_end.as_micros().saturating_sub(micros(ttl.saturating_sub(drift(ttl)) / 3 * 2));
    let grid = (micros(ttl) / 60).max(1);
    Tick::from_micros(due - due % grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(n: u64) -> Tick {
        Tick::from_micros(n * 1_000)
    }

    #[test]
    fn validity_is_counted_from_the_request_less_the_drift() {
        assert_eq!(end(at(1_000), ms(10_000)), at(1_000 + 10_000 - 102));
        assert_eq!(end(at(0), ms(1)), at(0), "a ttl below the drift is never valid");
    }

    #[test]
    fn what_is_asked_for_leaves_exactly_what_shall_remain() {
        for span in [0, 1, 99, 1_000, 123_457, 10_000_000, 86_399_999_999] {
            let span = Duration::from_micros(span);
            let ttl = asking_for(span);
            assert_eq!(end(at(7), ttl), at(7).after(span), "{span:?}");
            let less = end(at(7), ttl - Duration::from_micros(2));
            assert!(span.is_zero() || less < at(7).after(span), "{span:?}: more than it takes");
        }
        assert!(asking_for(Duration::MAX) > Duration::from_secs(86_400), "too long, and no overflow");
    }

    #[test]
    fn only_a_forward_jump_beyond_the_allowance_is_one() {
        let earlier = Reading { sent: at(0), server_us: 5_000_000 };
        for (server_ms, received_ms, expected) in [
            (6_000, 1_000, false), // as expected
            (6_011, 1_000, false), // 1 % + 2 ms is allowed
            (6_013, 1_000, true),
            (5_500, 1_000, false), // a slow reply
            (4_000, 1_000, false), // backward: keys live longer, which harms nobody's validity
            (65_000, 1_000, true),
            (0, 1_000, false), // a reply without a time
        ] {
            assert_eq!(jumped(earlier, server_ms * 1_000, at(received_ms)), expected, "{server_ms}");
        }
        assert!(!jumped(Reading { sent: at(0), server_us: 0 }, 65_000_000, at(1)), "there was no time to compare with");
    }

    #[test]
    fn beats_come_at_a_third_of_the_ttl_and_wait_out_a_long_extension() {
        let ttl = ms(9_000);
        let first = next_renewal(end(at(0), ttl), ttl);
        assert!(first <= at(3_000) && first >= at(2_700), "{first:?}");
        let extended = next_renewal(end(at(0), ms(60_000)), ttl);
        assert!(extended > at(53_000) && extended < at(54_000), "{extended:?}");
    }
}
