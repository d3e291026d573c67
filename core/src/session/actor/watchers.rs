//! Watchers: callbacks for the end of a hold.

use super::{LockActor, Watcher};
use crate::error::Loss;

impl LockActor {
    /// Calls `watcher` when the hold ends, or at once if it has ended. Else gives the number for [`LockActor::unwatch`]. The holder knows
    /// of the end by that.
    pub(crate) fn watch(&self, watcher: Watcher) -> Option<u64> {
        self.note_holder_knows();
        self.observe(watcher)
    }

    /// The same for what isn't the holder.
    pub(crate) fn observe(&self, watcher: Watcher) -> Option<u64> {
        let mut state = self.state.lock();
        if state.loss.is_some() || state.failed || state.machine.is_finished() {
            let loss = state.loss.clone();
            drop(state);
            self.call_watcher(watcher, loss);
            return None;
        }
        state.next_watcher += 1;
        let id = state.next_watcher;
        state.watchers.insert(id, watcher);
        Some(id)
    }

    /// Forgets a watcher.
    pub(crate) fn unwatch(&self, id: u64) {
        let watcher = self.state.lock().watchers.remove(&id);
        drop(watcher);
    }

    pub(super) fn call_watchers(&self, loss: Option<&Loss>) {
        let watchers = std::mem::take(&mut self.state.lock().watchers);
        for watcher in watchers.into_values() {
            self.call_watcher(watcher, loss.cloned());
        }
    }

    fn call_watcher(&self, watcher: Watcher, loss: Option<Loss>) {
        self.session.call_back(self.recipe.name(), "a callback for the loss of a lock", || watcher(loss));
    }
}
