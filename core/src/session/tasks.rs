//! Tasks: the locks that each task of this process holds, for the warning about a task that waits for itself.

use std::collections::HashMap;
use std::sync::Arc;

use crate::session::bodies::Bodies;
use crate::session::own_holds::OwnHolds;
use crate::sync::Mutex;

#[derive(Default)]
pub(crate) struct Tasks {
    pub(crate) bodies: Bodies,
    pub(super) own_holds: OwnHolds,
    /// The task that holds each owner value, if the caller named its task.
    holders: Mutex<HashMap<Arc<str>, u64>>,
}

impl Tasks {
    pub(super) fn note_holder(&self, owner: &Arc<str>, task: u64) {
        self.holders.lock().insert(Arc::clone(owner), task);
    }

    pub(super) fn forget_holder(&self, owner: &str) {
        self.holders.lock().remove(owner);
    }

    pub(super) fn holder(&self, owner: &str) -> Option<u64> {
        self.holders.lock().get(owner).copied()
    }
}
