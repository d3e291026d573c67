//! Term: what a call of `lead` asks of the hold of its last term.

use super::LockActor;
use crate::event::{Event, EventKind};

impl LockActor {
    /// Whether the hold was lost, before it was given back.
    pub(crate) fn is_lost(&self) -> bool {
        self.state.lock().loss.is_some()
    }

    /// Emits a warning about the lock.
    pub(crate) fn warn(&self, message: &str) {
        let mut event = Event::of(EventKind::Warning, &self.recipe.keys);
        event.message = Some(message.to_owned());
        self.session.emit(&event);
    }
}
