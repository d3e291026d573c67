//! Clock: the only file that reads the machine's clocks.
//!
//! A lease continues on the server while this machine is suspended. So elapsed time is measured on a clock that counts suspended
//! time (`CLOCK_BOOTTIME` on Linux, `CLOCK_MONOTONIC` on Apple's systems). The wall clock is used for the readable `at=` of
//! an owner value alone, which tolerates a wrong clock.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::mutant::mutant;

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

/// The time as an input of a decision: the boot clock to measure with, the servers' clock to propose fences by, and the wall clock
/// for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Boot clock.
    pub tick: Tick,
    /// Wall clock, microseconds since the Unix epoch. It may be wrong and may jump.
    pub wall_us: u64,
    /// The servers' clock, microseconds since the Unix epoch, as far as this client knows it; 0 if it doesn't.
    pub servers_us: u64,
}

impl Now {
    /// Reads this machine's clocks.
    #[must_use]
    pub fn read() -> Self {
        Self { tick: Tick::now(), wall_us: wall_micros(), servers_us: 0 }
    }

    /// The same with the servers' clock: of the clocks that the servers show, the one that a majority of all `servers` has reached,
    /// and no more than a majority. So most servers take the same proposal.
    #[must_use]
    pub fn with_servers(self, servers: usize, clocks: impl Iterator<Item = u64>) -> Self {
        if servers == 1 {
            return Self { servers_us: clocks.max().unwrap_or(0), ..self };
        }
        let mut clocks: Vec<u64> = clocks.collect();
        clocks.sort_unstable();
        let is_majority = clocks.len() > servers / 2;
        let servers_us = if is_majority { clocks[(clocks.len() - 1) / 2] } else { 0 };
        Self { servers_us, ..self }
    }

    /// The fence to propose: the servers' clock. As long as it isn't known, several servers get the wall clock, for they need one
    /// proposal for all: different votes cost a round, and a server. A single server needs none.
    pub(crate) fn proposal(self, servers: usize) -> u64 {
        if self.servers_us == 0 && servers > 1 || mutant!(WallClockProposed) { self.wall_us } else { self.servers_us }
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
    fn the_servers_clock_is_one_that_most_of_them_have_reached() {
        for (servers, clocks, expected) in [
            (1, &[7][..], 7),
            (1, &[], 0),
            (3, &[5, 900, 6], 6),
            (3, &[1, 6, 5], 5),
            (3, &[6, 5], 5),
            (3, &[6], 0),
            (4, &[8, 7, 6, 5], 6),
            (5, &[9, 8, 7], 8),
        ] {
            assert_eq!(Now::read().with_servers(servers, clocks.iter().copied()).servers_us, expected, "{clocks:?}");
        }
    }

    fn a_fence_is_proposed_by_the_servers_clock_alone() {
        for (servers, clocks, expected) in [(1, &[7][..], 7), (1, &[], 0), (3, &[6, 5], 5), (3, &[6], 99)] {
            let now = Now { tick: Tick::default(), wall_us: 99, servers_us: 0 };
            assert_eq!(now.with_servers(servers, clocks.iter().copied()).proposal(servers), expected, "{clocks:?}");
        }
    }

    #[test]
    fn the_wall_clock_is_proposed_only_to_several_servers_whose_clocks_are_unknown() {
        a_fence_is_proposed_by_the_servers_clock_alone();
    }

    #[test]
    fn a_proposal_by_the_wall_clock_is_noticed() {
        use crate::mutant::{Mutant, assert_noticed};
        assert_noticed(Mutant::WallClockProposed, a_fence_is_proposed_by_the_servers_clock_alone);
    }

    #[test]
    fn the_boot_clock_moves_forward() {
        let first = Tick::now();
        assert!(Tick::now() >= first);
        assert!(first.as_micros() > 0 || cfg!(not(target_os = "linux")));
    }
}
