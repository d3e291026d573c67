//! Busy: the names that this client has met held lately. Their acquires go by script, which enqueues in one round trip.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::sync::Mutex;

/// So many names are kept in mind. A name that hashes alike takes the place of another one, and then costs a script.
const PLACES: usize = 4_096;

/// How often a name must be got as a free one before transactions are tried again.
const FREE: u8 = 2;

/// The names of one server.
#[derive(Default)]
pub(crate) struct Busy {
    /// A fixed one: which names meet in one place is the same in each run, also of a simulated schedule.
    hasher: BuildHasherDefault<DefaultHasher>,
    /// The hash of each name, and how often it must still be got.
    places: Mutex<Vec<(u64, u8)>>,
}

impl Busy {
    fn place(&self, name: &str) -> (u64, usize) {
        let hash = self.hasher.hash_one(name);
        (hash, hash as usize % PLACES)
    }

    /// Whether the name was met held, and was not got twice as a free one since.
    pub(crate) fn has(&self, name: &str) -> bool {
        let (hash, place) = self.place(name);
        self.places.lock().get(place).is_some_and(|(known, left)| *known == hash && *left > 0)
    }

    /// The name was met held.
    pub(crate) fn met(&self, name: &str) {
        let (hash, place) = self.place(name);
        let mut places = self.places.lock();
        if places.is_empty() {
            places.resize(PLACES, (0, 0));
        }
        places[place] = (hash, FREE);
    }

    /// A script has got the name as a free one.
    pub(crate) fn got(&self, name: &str) {
        let (hash, place) = self.place(name);
        if let Some((_, left)) = self.places.lock().get_mut(place).filter(|(known, _)| *known == hash) {
            *left = left.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_busy_until_it_was_got_twice() {
        let busy = Busy::default();
        assert!(!busy.has("a"));
        busy.got("a");
        busy.met("a");
        assert!(busy.has("a") && !busy.has("b"));
        busy.got("a");
        assert!(busy.has("a"));
        busy.got("a");
        assert!(!busy.has("a"));
        busy.met("a");
        assert!(busy.has("a"));
    }
}
