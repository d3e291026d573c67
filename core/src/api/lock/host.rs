//! The caller's bodies: which of them runs while it asks for a lock. Bindings need it, and Rust programs do not.

use std::sync::Arc;

use super::Lock;
use crate::api::hold::Hold;

impl Lock {
    pub(in crate::api) fn enter(&self, held: &Hold) {
        if let Some(task) = self.spec.contexts.last() {
            held.enter(*task, None, 0);
        }
    }

    /// [`Lock::caller`] of a host whose tasks may leave a body suspended and go on: a generator's, say. If `task` has bodies that
    /// hold this lock now, `runs` gets the number that each of them was [entered](Hold::enter) with. The task would wait for itself
    /// only if they run. Otherwise another task may still end one, and the acquire waits.
    #[doc(hidden)]
    #[must_use]
    pub fn caller_in(self, task: u64, runs: impl Fn(u64) -> bool) -> Self {
        let session = self.spec.client.own_session();
        let keys = self.prepared().ok().map(|prepared| Arc::clone(&prepared.keys));
        let bodies = session.zip(keys).map(|(session, keys)| {
            keys.each().flat_map(|keys| session.bodies.enclosing(&[task], keys.lock())).collect::<Vec<_>>()
        });
        let is_suspended = bodies.into_iter().flatten().any(|(_, body)| !runs(body.number));
        self.caller(task).change(|spec| spec.is_suspended = is_suspended)
    }
}
