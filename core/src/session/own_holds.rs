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
    found: HashMap<Arc<str>, Vec<Weak<LockActor>>>,
}

impl OwnHolds {
    /// The holds of the lock with this key. One that is younger than the last list may be missed.
    pub(crate) fn of(&self, lock: &str, now: Tick, registry: impl FnOnce() -> Vec<Arc<LockActor>>) -> Vec<Arc<LockActor>> {
        let mut look = self.0.lock();
        if look.at.is_none_or(|at| now.since(at) >= AGAIN_AFTER) {
            let all = registry();
            look.found.clear();
            for actor in all.iter().filter(|actor| now < actor.valid_until()) {
                look.found.entry(actor.recipe.keys.shared().1).or_default().push(Arc::downgrade(actor));
            }
            look.at = Some(now);
            // A hold may have ended meanwhile. Its last reference must not be dropped while the list is locked.
            drop(look);
            drop(all);
            look = self.0.lock();
        }
        look.found.get(lock).into_iter().flatten().filter_map(Weak::upgrade).collect()
    }
}
