//! Refused: an acquire that ends before it asks a server. No metric and no listener gets it: only its caller, its span, and the
//! binding that follows it.

use super::Lock;
use crate::error::Error;
use crate::event::{EventKind, LockEvent};
use crate::name::Keys;
use crate::session::actor::spans::Spans;
use crate::session::trace::trace_next;

impl Lock {
    /// The acquire that begins now is refused with this error.
    pub(super) fn refused(&self, error: Error) -> Error {
        let event = self.refusal(&error);
        Spans::begin(|| event.clone()).around(&event, || ());
        if event.trace != 0 {
            self.spec.client.emitter.notify_follower(&event);
        }
        error
    }

    /// The end of a refused acquire. An option may be wrong that says nothing about the name.
    fn refusal(&self, error: &Error) -> LockEvent {
        let keys = Keys::new(self.spec.kind, &self.spec.client.options.prefix, &self.spec.name, true);
        let mut event = match keys {
            Ok(keys) => LockEvent::of(EventKind::AcquireFailed, &keys),
            Err(_) => LockEvent { lock_name: Some(self.spec.name.as_str().into()), ..LockEvent::new(EventKind::AcquireFailed) },
        };
        event.lock_kind = Some(self.spec.used_as);
        let given = self.spec.settings.category.as_ref().unwrap_or(&self.spec.client.options.lock.category);
        event.category = given.clone().or(event.category);
        event.message = Some(error.to_string());
        (event.refused, event.trace) = (true, trace_next(0));
        event
    }
}
