//! Asks: the locks that this client asks for on the fast path at the moment. Whoever wants one of them meanwhile waits behind that acquire:
//! otherwise many callers of one process would ask the server for one lock at the same time. Of a semaphore there are more to ask for: who
//! finds that enough others ask goes to its queue.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of marks. Names that share one only lose the fast path, while both are asked for.
const PLACES: usize = 8_192;

/// The marks of one client.
pub(super) struct Asking {
    /// A fixed one: which names share a mark is the same in each run, also of a simulated schedule.
    hasher: BuildHasherDefault<DefaultHasher>,
    /// The number of an acquisition; 0 for none.
    places: Vec<AtomicU64>,
}

/// The mark of one acquire, until it is dropped.
pub(super) struct Asks {
    of: Arc<Asking>,
    place: usize,
}

impl Default for Asking {
    fn default() -> Self {
        let places = std::iter::repeat_with(AtomicU64::default).take(PLACES).collect();
        Self { hasher: BuildHasherDefault::default(), places }
    }
}

impl Asking {
    /// The mark of the acquisition `id` for the lock with the key `lock`, for which so many may ask `at_once`.
    ///
    /// # Errors
    /// An acquisition that has a mark. It may want another lock.
    pub(super) fn ask(self: &Arc<Self>, lock: &str, id: u64, at_once: usize) -> Result<Asks, u64> {
        let first = self.hasher.hash_one(lock) as usize;
        let mut other = 0;
        for place in (0..at_once).map(|next| first.wrapping_add(next) % PLACES) {
            match self.places[place].compare_exchange(0, id, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(Asks { of: Arc::clone(self), place }),
                Err(marked) => other = marked,
            }
        }
        Err(other)
    }
}

impl Drop for Asks {
    fn drop(&mut self) {
        self.of.places[self.place].store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_there_are_permits_ask_at_once() {
        let asking = Arc::<Asking>::default();
        let all: Vec<_> = (1..=5).map(|id| asking.ask("renders", id, 5)).collect();
        assert!(all.iter().all(Result::is_ok));
        assert!(asking.ask("renders", 6, 5).is_err());
        drop(all);
        assert!(asking.ask("renders", 6, 5).is_ok());
    }

    #[test]
    fn one_asks_at_a_time() {
        let asking = Arc::<Asking>::default();
        let first = asking.ask("orders:42", 7, 1);
        assert!(first.is_ok());
        assert_eq!(asking.ask("orders:42", 8, 1).err(), Some(7));
        drop(first);
        assert!(asking.ask("orders:42", 8, 1).is_ok());
    }
}
