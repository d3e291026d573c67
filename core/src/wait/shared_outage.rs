//! Shared outage: the begin of an outage, known to all waiters of one local queue.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::clock::Tick;

/// An outage of the servers, as the waiters of one local queue see it. They ask the same servers, so the experience of one holds
/// for all.
#[derive(Debug, Default)]
pub(crate) struct SharedOutage {
    /// The begin of the time without a majority, in microseconds of the boot clock; 0 while a majority answers.
    since: AtomicU64,
    spread: AtomicBool,
}

impl SharedOutage {
    pub(crate) fn since(&self) -> Option<Tick> {
        match self.since.load(Ordering::Relaxed) {
            0 => None,
            since => Some(Tick::from_micros(since)),
        }
    }

    /// No majority has answered since `since`. The time in which this process stood still doesn't count.
    pub(crate) fn begin(&self, since: Tick) {
        self.since.store(since.as_micros().max(1), Ordering::Relaxed);
    }

    /// One of the waiters had an answer of a majority.
    pub(crate) fn end(&self) {
        self.since.store(0, Ordering::Relaxed);
        self.spread.store(false, Ordering::Relaxed);
    }

    /// Notes that one of the waiters failed; gives whether it is the first failure, of which the others have to be woken.
    pub(super) fn spreads(&self) -> bool {
        !self.spread.swap(true, Ordering::Relaxed)
    }
}
