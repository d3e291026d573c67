//! Floors: the highest fence that this client has seen in each slot. A server whose clock is behind, as one that was promoted, gives it no
//! smaller one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::mutant::mutant;
use crate::name::Keys;
use crate::name::slot::SLOTS;

/// The slots of a page. A page takes memory when there was a lock in one of its slots.
const PAGE: usize = 64;

/// The fences of one server, or of all nodes of a cluster.
#[derive(Debug)]
pub(crate) struct Floors {
    pages: Box<[OnceLock<Box<[AtomicU64; PAGE]>>]>,
}

impl Default for Floors {
    fn default() -> Self {
        Self { pages: std::iter::repeat_with(OnceLock::new).take(usize::from(SLOTS).div_ceil(PAGE)).collect() }
    }
}

impl Floors {
    fn page(&self, keys: &Keys) -> (&OnceLock<Box<[AtomicU64; PAGE]>>, usize) {
        let slot = usize::from(keys.slot());
        (&self.pages[slot / PAGE], slot % PAGE)
    }

    /// An answer has shown a fence of a lock.
    pub(crate) fn saw(&self, keys: &Keys, fence: u64) {
        let (page, at) = self.page(keys);
        let page = page.get_or_init(|| Box::new([const { AtomicU64::new(0) }; PAGE]));
        page[at].fetch_max(fence, Ordering::Relaxed);
    }

    /// The fence that the next one of this lock has to be above; 0 for none.
    pub(crate) fn of(&self, keys: &Keys) -> u64 {
        if mutant!(SeenFencesForgotten) {
            return 0;
        }
        let (page, at) = self.page(keys);
        page.get().map_or(0, |page| page[at].load(Ordering::Relaxed))
    }
}

/// The time of a server when another node took its place, microseconds since the epoch; 0 if it isn't known. Until the clock of the other
/// one has passed it, fences are asked for above it.
#[derive(Debug, Default)]
pub(crate) struct Succeeded(AtomicU64);

impl Succeeded {
    /// Another node answers from now on; `time_us` was the time of the one before.
    pub(crate) fn begin(&self, time_us: Option<u64>) {
        self.0.fetch_max(time_us.unwrap_or_default(), Ordering::Relaxed);
    }

    /// That time, as long as the present node's clock hasn't passed it.
    pub(crate) fn at(&self, time_us: Option<u64>) -> Option<u64> {
        let before = Some(self.0.load(Ordering::Relaxed)).filter(|before| *before > 0 && !mutant!(SucceededIgnored))?;
        if time_us.is_some_and(|time_us| time_us > before) {
            // A later node may have begun meanwhile.
            let _ = self.0.compare_exchange(before, 0, Ordering::Relaxed, Ordering::Relaxed);
            return None;
        }
        Some(before)
    }
}

#[cfg(test)]
#[path = "floors_tests.rs"]
mod tests;
