//! Clock: the only file that reads the machine's clocks.
//!
//! A lease continues on the server while this machine is suspended. So elapsed time is measured on a clock that counts suspended
//! time (`CLOCK_BOOTTIME` on Linux, `CLOCK_MONOTONIC` on Apple's systems). The wall clock is used for two purposes that tolerate
//! a wrong clock: ballot proposals, and the readable `at=` of an owner value.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An instant of this machine's boot clock, in microseconds. The clock counts suspended time and never goes back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(u64);

impl Tick {
    /// An instant that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The present instant.
    #[must_use]
    pub fn now() -> Self {
        Self(boot_micros().saturating_add(moved()))
    }

    /// The present instant by the machine's own clock, which no test moves.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn by_the_machine(self) -> Self {
        if self == Self::NEVER { self } else { Self(self.0.saturating_sub(moved())) }
    }

    /// The instant `micros` microseconds after the clock's origin.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the clock's origin.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// This instant plus `span`, or [`Tick::NEVER`] if that is beyond the clock.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// The time from `earlier` to this instant, zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tick({}us)", self.0)
    }
}

/// The time as an input of a decision: the boot clock to measure with, the wall clock to propose ballots with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Boot clock.
    pub tick: Tick,
    /// Wall clock, microseconds since the Unix epoch. It may be wrong and may jump.
    pub wall_us: u64,
}

impl Now {
    /// Reads both clocks.
    #[must_use]
    pub fn read() -> Self {
        Self { tick: Tick::now(), wall_us: wall_micros() }
    }
}

/// The whole microseconds of a duration, capped at the largest value that fits.
pub(crate) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// The whole milliseconds of a duration, capped at the largest value that fits.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn wall_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros).saturating_add(moved())
}

/// The time by which a test has moved the clock forward, in microseconds.
#[cfg(feature = "testing")]
static MOVED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

#[cfg(feature = "testing")]
fn moved() -> u64 {
    MOVED.load(std::sync::atomic::Ordering::Relaxed)
}

#[cfg(not(feature = "testing"))]
const fn moved() -> u64 {
    0
}

/// Moves the clock forward.
#[cfg(feature = "testing")]
pub(crate) fn advance(span: Duration) {
    MOVED.fetch_add(micros(span), std::sync::atomic::Ordering::Relaxed);
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const BOOT_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;

/// Here this clock counts suspended time, which POSIX leaves open. `Instant` reads another clock, which stops.
#[cfg(target_vendor = "apple")]
const BOOT_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn boot_micros() -> u64 {
    let at = rustix::time::clock_gettime(BOOT_CLOCK);
    let seconds = u64::try_from(at.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(at.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000)
}

/// On other systems `Instant` is the best clock of the standard library (on Windows it counts suspended time).
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn boot_micros() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    micros(ORIGIN.get_or_init(Instant::now).elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let tick = Tick::from_micros(5);
        assert_eq!(tick.after(Duration::MAX), Tick::NEVER);
        assert_eq!(tick.since(Tick::from_micros(9)), Duration::ZERO);
        assert_eq!(tick.after(Duration::from_micros(4)).since(tick), Duration::from_micros(4));
    }

    #[test]
    fn the_boot_clock_moves_forward() {
        let first = Tick::now();
        assert!(Tick::now() >= first);
        assert!(first.as_micros() > 0 || cfg!(not(target_os = "linux")));
    }
}
