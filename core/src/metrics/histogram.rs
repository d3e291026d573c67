//! Histograms of times, in atomics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::published::Published;
use crate::clock::micros;

/// The upper bounds of the buckets, in seconds. Above the last one there is one more bucket.
pub const BOUNDS: [f64; 21] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
    1800.0, 7200.0,
];

/// The same bounds, in microseconds.
const BOUNDS_US: [u64; BOUNDS.len()] = {
    let mut bounds = [0; BOUNDS.len()];
    let mut at = 0;
    while at < BOUNDS.len() {
        bounds[at] = (BOUNDS[at] * 1e6 + 0.5) as u64;
        at += 1;
    }
    bounds
};

/// Counts times while others read them.
#[derive(Debug)]
pub(crate) struct Times {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_us: AtomicU64,
    published: Published,
}

impl Times {
    pub(crate) fn new(published: Published) -> Self {
        Self { buckets: std::array::from_fn(|_| AtomicU64::new(0)), sum_us: AtomicU64::new(0), published }
    }

    pub(crate) fn note(&self, time: Duration) {
        let us = micros(time);
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
        self.published.took(time);
    }

    pub(crate) fn read(&self) -> Histogram {
        let sum = self.sum_us.load(Ordering::Relaxed) as f64 / 1e6;
        Histogram { counts: std::array::from_fn(|at| self.buckets[at].load(Ordering::Relaxed)), sum }
    }
}

/// How many times were how long.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Histogram {
    /// The number of times in each bucket, that is above the bound before it and up to its own. The last bucket has no bound.
    pub(crate) counts: [u64; BOUNDS.len() + 1],
    /// The sum of all times, in seconds.
    pub sum: f64,
}

impl Histogram {
    /// The upper bounds of the buckets, in seconds; without the last one, which has none.
    #[doc(hidden)]
    #[must_use]
    pub const fn bounds() -> &'static [f64] {
        &BOUNDS
    }

    /// The number of all times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Each bucket's upper bound in seconds, the last one infinite, and how many times were not longer.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut below = 0;
        BOUNDS.into_iter().chain([f64::INFINITY]).zip(self.counts).map(move |(bound, count)| {
            below += count;
            (bound, below)
        })
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.sum += other.sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_falls_into_the_first_bucket_whose_bound_it_does_not_exceed() {
        let times = Times::new(Published::new(&super::super::table::WAIT, &[]));
        for us in [0, 100, 101, 1_000, 7_200_000_000, 7_200_000_001] {
            times.note(Duration::from_micros(us));
        }
        let read = times.read();
        assert_eq!((read.counts[0], read.counts[1], read.counts[3]), (2, 1, 1));
        assert_eq!((read.counts[BOUNDS.len() - 1], read.counts[BOUNDS.len()], read.count()), (1, 1, 6));
        assert!((read.sum - 14_400.001_202).abs() < 1e-6, "{}", read.sum);
        times.note(Duration::MAX);
        assert_eq!(times.read().count(), 7);
    }
}
