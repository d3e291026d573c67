//! Shared outage: the begin of an outage, known to all waiters of one local queue.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::clock::Tick;

/// They ask the same servers, so what one of them found out holds for all.
#[derive(Debug, Default)]
pub(super) struct SharedOutage {
    /// Since when they get no majority, microseconds of the boot clock; 0 while they do.
    since: AtomicU64,
    spread: AtomicBool,
}

impl SharedOutage {
    pub(super) fn since(&self) -> Option<Tick> {
        match self.since.load(Ordering::Relaxed) {
            0 => None,
            since => Some(Tick::from_micros(since)),
        }
    }

    /// They get no majority since then, the time not counted in which this process stood still.
    pub(super) fn begin(&self, since: Tick) {
        self.since.store(since.as_micros().max(1), Ordering::Relaxed);
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
