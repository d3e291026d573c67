//! Backoff: when to try to connect again.

use std::time::Duration;

use crate::clock::Tick;
use crate::mutant::mutant;
use crate::server::redis::pauses::Pauses;

/// The pauses after failures. A server that came back is noticed within the longest one and one connect.
const PAUSES: Pauses = Pauses { first: Duration::from_millis(50), longest: Duration::from_millis(500) };

/// The number of failures in a row, and the time of the next attempt.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    since: Tick,
    until: Tick,
}

impl Backoff {
    /// The time before which no attempt is made. `connected_at` is the time at which the server answered last, to any connection:
    /// after that nothing is gained by waiting.
    pub(crate) fn until(&self, connected_at: Tick) -> Tick {
        if connected_at > self.since && !mutant!(BackoffOutlastsHandshake) { self.since } else { self.until }
    }

    /// An attempt failed at `now`. `chance` (0 to 1) spreads the clients of a server that comes back.
    pub(crate) fn failed(&mut self, now: Tick, chance: f64) {
        self.failures = self.failures.saturating_add(1);
        (self.since, self.until) = (now, now.after(PAUSES.spread(self.failures, chance)));
    }

    /// A connection broke at `now`. One that had answered may be replaced at once. One that never answered is a failed attempt, but
    /// the first in a row is forgiven. A server that is cut off right after accepting must not cause a storm.
    pub(crate) fn broke(&mut self, now: Tick, answered: bool, chance: f64) {
        if answered {
            self.failures = 0;
        }
        (self.since, self.until) = (now, now.after(PAUSES.spread(self.failures, chance)));
        self.failures = self.failures.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_answered_is_replaced_at_once_and_a_useless_one_only_once() {
        let now = Tick::from_micros(1_000);
        let mut backoff = Backoff::default();
        backoff.failed(now, 1.0);
        backoff.broke(now, true, 1.0);
        assert_eq!(backoff.until(Tick::default()), now);
        backoff.broke(now, false, 1.0);
        assert_eq!(backoff.until(Tick::default()), now.after(PAUSES.first));
        backoff.broke(now, false, 1.0);
        assert_eq!(backoff.until(Tick::default()), now.after(PAUSES.first * 2));
    }

    fn a_server_that_another_connection_has_reached_is_tried_at_once() {
        let (failed, connected) = (Tick::from_micros(1_000), Tick::from_micros(1_001));
        let mut backoff = Backoff::default();
        backoff.failed(failed, 1.0);
        assert_eq!(backoff.until(failed), failed.after(PAUSES.first), "it answered before, and then it didn't");
        assert!(backoff.until(connected) <= connected);
        backoff.failed(connected, 1.0);
        assert_eq!(backoff.until(connected), connected.after(PAUSES.first * 2), "one attempt for one connection");
    }

    #[test]
    fn an_attempt_does_not_wait_where_another_connection_was_made_meanwhile() {
        a_server_that_another_connection_has_reached_is_tried_at_once();
    }

    #[test]
    fn a_backoff_that_outlasts_a_handshake_is_noticed() {
        use crate::mutant::{Mutant, assert_noticed};
        assert_noticed(Mutant::BackoffOutlastsHandshake, a_server_that_another_connection_has_reached_is_tried_at_once);
    }
}
