//! Clocks: their rates differ slightly.

use std::time::Duration;

/// Microseconds of true time since the run began.
pub(super) type Instant = u64;

/// A clock that started at `base` and gains `ppm` microseconds in every second of true time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    base: u64,
    ppm: i64,
}

const MILLION: u64 = 1_000_000;

impl Clock {
    pub(super) const fn new(base: u64, ppm: i64) -> Self {
        Self { base, ppm }
    }

    /// A clock that shows `reading` at `now`.
    pub(super) fn showing(reading: u64, now: Instant, ppm: i64) -> Self {
        let clock = Self { base: 0, ppm };
        Self { base: reading.saturating_sub(clock.at(now)), ppm }
    }

    /// Stops the clock for `span`; the process doesn't read it meanwhile.
    pub(super) fn stop(&mut self, span: u64) {
        self.base = self.base.saturating_sub(span);
    }

    /// The reading of the clock at `now`.
    pub(super) fn at(self, now: Instant) -> u64 {
        let rate = MILLION.saturating_add_signed(self.ppm);
        self.base + scaled(now, rate, MILLION, 0)
    }

    /// The first instant at which the clock shows `reading` or more.
    pub(super) fn when(self, reading: u64) -> Instant {
        let Some(goes) = reading.checked_sub(self.base) else { return 0 };
        let rate = MILLION.saturating_add_signed(self.ppm);
        scaled(goes, MILLION, rate, rate - 1)
    }
}

/// `(value * by + up) / of`, by a division of 128 bits only where the numbers need it.
fn scaled(value: u64, by: u64, of: u64, up: u64) -> u64 {
    match value.checked_mul(by).and_then(|product| product.checked_add(up)) {
        Some(product) => product / of,
        None => u64::try_from((u128::from(value) * u128::from(by) + u128::from(up)) / u128::from(of)).unwrap_or(u64::MAX),
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
