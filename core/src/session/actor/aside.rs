//! Aside: what is reported of a lock beside the steps of its acquisition.

use super::LockActor;
use crate::event::{EventKind, LockEvent};

impl LockActor {
    /// Whether the hold was lost, before it was given back.
    pub(crate) fn is_lost(&self) -> bool {
        self.state.lock().loss.is_some()
    }

    /// Emits a warning about the lock.
    pub(crate) fn warn(&self, message: &str) {
        let mut event = LockEvent::of(EventKind::Warning, &self.recipe.keys);
        event.message = Some(message.to_owned());
        self.session.emit(&event);
    }

    /// Emits the event of an attempt that was another worker's.
    pub(super) fn emit_of_another(&self, event: &LockEvent) {
        self.measured.note_attempt(event.kind);
        self.session.emit(event);
    }
}
