//! Aside: what is reported of a lock beside the steps of its acquisition.

use super::LockActor;
use crate::event::LockEvent;
use crate::session::announce::announce;

impl LockActor {
    /// Whether the hold was lost, before it was given back.
    pub(crate) fn is_lost(&self) -> bool {
        self.state.lock().loss.is_some()
    }

    /// Emits a warning about the lock.
    pub(crate) fn warn(&self, message: &str) {
        self.session.warn(&self.recipe.keys, message.to_owned());
    }

    /// Emits an event of this acquisition.
    pub(super) fn emit(&self, event: &mut LockEvent) {
        event.trace = self.trace;
        // Before the event, so that a listener who reads the metrics finds it counted.
        self.measured.note(event, self.recipe.options.ttl);
        self.spans.around(event, || self.session.emit(event));
        announce(&self.session.servers, self.session.response_timeout(), &self.recipe.keys, event);
    }

    /// Emits the event of an attempt that was another worker's.
    pub(super) fn emit_of_another(&self, event: &LockEvent) {
        self.measured.note_attempt(event.kind);
        self.session.emit(event);
    }
}
