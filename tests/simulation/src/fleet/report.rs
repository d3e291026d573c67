//! Report: what a fleet has shown.

use super::SECOND;
use super::users::WARM_UP;
use crate::clock::Instant;

/// After the takeover, until the shard that failed works as before.
const RECOVERS: Instant = 3 * SECOND;

/// How some times, in microseconds, are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Spread {
    pub count: usize,
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

impl Spread {
    fn of(times: &mut [u64]) -> Self {
        times.sort_unstable();
        let at =
            |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied().unwrap_or(0);
        Self { count: times.len(), p50: at(50), p99: at(99), max: times.last().copied().unwrap_or(0) }
    }
}

/// What a run has shown. The first shard is the one that fails.
#[derive(Clone, Debug)]
pub struct Report {
    /// The whole seconds before the failure, in which all users are there.
    pub before: std::ops::Range<usize>,
    /// The whole seconds from the failure to the end of the recovery.
    pub during: std::ops::Range<usize>,
    /// The time from the failure to the takeover, microseconds.
    pub takeover_us: u64,
    /// The commands that each shard has done in each second.
    pub rates: Vec<Vec<u32>>,
    /// The time from the call of a release to the grant to a waiter, of each shard, for grants before the failure.
    pub hand_overs_before: Vec<Spread>,
    /// The same, for grants from the failure to the end of the recovery.
    pub hand_overs_during: Vec<Spread>,
    /// From the failure until a lock that was held on the shard was renewed on the new primary, or acquired again.
    pub recovery: Spread,
    /// How many of these locks were lost, and acquired again.
    pub lost: usize,
    /// How many acquires ended without a server.
    pub unavailable: usize,
    /// How many releases did not find the lock, or no server.
    pub not_released: usize,
    /// The virtual time of the whole run, microseconds.
    pub ran_us: u64,
}

impl Report {
    /// The commands a second of a shard, on average over some seconds.
    #[must_use]
    pub fn rate(&self, shard: usize, seconds: &std::ops::Range<usize>) -> f64 {
        let rates = &self.rates[shard][seconds.clone()];
        f64::from(rates.iter().sum::<u32>()) / rates.len() as f64
    }
}

/// What is seen during a run.
pub(super) struct Seen {
    pub(super) fails_at: Instant,
    pub(super) takes_over_at: Instant,
    before: Vec<Vec<u64>>,
    during: Vec<Vec<u64>>,
    /// The locks that are held on the shard that fails.
    pub(super) held_there: usize,
    pub(super) settled: Vec<u64>,
    pub(super) lost: usize,
    pub(super) unavailable: usize,
    pub(super) not_released: usize,
}

impl Seen {
    pub(super) fn new(shards: usize, fails_at: Instant, takes_over_at: Instant) -> Self {
        let none = || vec![Vec::new(); shards];
        let (before, during) = (none(), none());
        let (held_there, lost, unavailable, not_released) = (0, 0, 0, 0);
        Self { fails_at, takes_over_at, before, during, held_there, settled: Vec::new(), lost, unavailable, not_released }
    }

    pub(super) fn hand_over(&mut self, shard: usize, released: Instant, granted: Instant) {
        let took = granted - released;
        if granted < self.fails_at {
            self.before[shard].push(took);
        } else if granted < self.takes_over_at + RECOVERS {
            self.during[shard].push(took);
        }
    }

    pub(super) fn report(mut self, rates: Vec<Vec<u32>>, ran_us: u64) -> Report {
        assert_eq!(self.settled.len(), self.held_there, "every lock that was held there is held again");
        let second = |at: Instant| at.div_ceil(SECOND) as usize;
        let spreads = |times: &mut Vec<Vec<u64>>| times.iter_mut().map(|times| Spread::of(times)).collect();
        Report {
            before: second(WARM_UP)..(self.fails_at / SECOND) as usize,
            during: second(self.fails_at)..((self.takes_over_at + RECOVERS) / SECOND) as usize,
            takeover_us: self.takes_over_at - self.fails_at,
            rates,
            hand_overs_before: spreads(&mut self.before),
            hand_overs_during: spreads(&mut self.during),
            recovery: Spread::of(&mut self.settled),
            lost: self.lost,
            unavailable: self.unavailable,
            not_released: self.not_released,
            ran_us,
        }
    }
}
