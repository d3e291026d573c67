//! What the waiters of one line know of an outage.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::clock::Tick;

/// They ask the same servers, so what one of them found out holds for all.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// Since when they get no majority, microseconds of the boot clock; 0 while they do.
    since: AtomicU64,
    spread: AtomicBool,
}

impl Trouble {
    pub(super) fn since(&self) -> Option<Tick> {
        match self.since.load(Ordering::Relaxed) {
            0 => None,
            since => Some(Tick::from_micros(since)),
        }
    }

    /// One of them gets no majority since then. Whoever noticed first counts.
    pub(super) fn begin(&self, since: Tick) {
        let _ = self.since.compare_exchange(0, since.as_micros().max(1), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// What began before `since` counts from there: they asked nobody before, because this process stood still.
    pub(super) fn excuse(&self, since: Tick) {
        let later = |begun: u64| (begun > 0).then(|| begun.max(since.as_micros()));
        let _ = self.since.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }

    /// One of them had a majority.
    pub(super) fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
        self.spread.store(false, Ordering::Relaxed);
    }

    /// One of them failed. Whether the others have not been told of that yet.
    pub(super) fn spreads(&self) -> bool {
        !self.spread.swap(true, Ordering::Relaxed)
    }
}
