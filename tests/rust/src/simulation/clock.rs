//! Clocks that run at slightly different rates.

use std::time::Duration;

/// Microseconds of true time since the run began.
pub(super) type Instant = u64;

/// A clock that started at `base` and gains `ppm` microseconds in every second of true time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    base: u64,
    ppm: i64,
}

const MILLION: i128 = 1_000_000;

impl Clock {
    pub(super) const fn new(base: u64, ppm: i64) -> Self {
        Self { base, ppm }
    }

    /// What the clock shows.
    pub(super) fn at(self, now: Instant) -> u64 {
        let went = i128::from(now) * (MILLION + i128::from(self.ppm)) / MILLION;
        self.base + u64::try_from(went).unwrap_or(0)
    }

    /// The first instant at which the clock shows `reading` or more.
    pub(super) fn when(self, reading: u64) -> Instant {
        let Some(goes) = reading.checked_sub(self.base) else { return 0 };
        let rate = MILLION + i128::from(self.ppm);
        let when = (i128::from(goes) * MILLION + rate - 1) / rate;
        u64::try_from(when).unwrap_or(u64::MAX)
    }
}

pub(super) const fn micros(span: Duration) -> u64 {
    span.as_micros() as u64
}

pub(super) const fn ms(millis: u64) -> u64 {
    millis * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_a_reading_first_when_it_says_so() {
        for ppm in [-4_000, -1, 0, 3, 4_000] {
            let clock = Clock::new(77, ppm);
            for reading in [77, 78, 1_000, 123_456_789] {
                let when = clock.when(reading);
                assert!(clock.at(when) >= reading, "{ppm} {reading}");
                assert!(when == 0 || clock.at(when - 1) < reading, "{ppm} {reading}");
            }
        }
    }
}
