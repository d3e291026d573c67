//! Own holds: the locks that a client holds itself, by key. The list is made only when an acquire waits long, so that no hold
//! pays for it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::clock::Tick;
use crate::session::actor::LockActor;
use crate::sync::Mutex;

/// The shortest time between two lists: many acquires may begin to wait long at the same time.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The last list, and when it was made.
#[derive(Default)]
pub(crate) struct OwnHolds(Mutex<Look>);

#[derive(Default)]
struct Look {
    at: Option<Tick>,
    found: HashMap<Arc<str>, Weak<LockActor>>,
}

impl OwnHolds {
    /// The hold of the lock with this key. A hold that is younger than the last list may be missed.
    pub(crate) fn find(&self, lock: &str, now: Tick, registry: impl FnOnce() -> Vec<Arc<LockActor>>) -> Option<Arc<LockActor>> {
        let mut look = self.0.lock();
        if look.at.is_none_or(|at| now.since(at) >= AGAIN_AFTER) {
            let all = registry();
            let held = all.iter().filter(|actor| now < actor.valid_until());
            look.found = held.map(|actor| (actor.recipe.keys.shared().1, Arc::downgrade(actor))).collect();
            look.at = Some(now);
            // A hold may have ended meanwhile. Its last reference must not be dropped while the list is locked.
            drop(look);
            drop(all);
            look = self.0.lock();
        }
        look.found.get(lock)?.upgrade()
    }
}
