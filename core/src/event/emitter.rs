//! The emitter: a client's events on their way to `tracing` and to its sink.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::event::callback;
use crate::event::{Event, Level, Sink, trace};

/// The way of one client's events. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Emitter(Arc<Way>);

#[derive(Default)]
struct Way {
    sink: Option<Arc<dyn Sink>>,
    /// Whether the normal life of holds is told at level info.
    log_holds: bool,
    /// Whether a panic of either was told: one that panics at every event isn't told of each time.
    told_of_sink: AtomicBool,
    told_of_subscriber: AtomicBool,
}

impl Emitter {
    pub(crate) fn new(sink: Option<Arc<dyn Sink>>, log_holds: bool) -> Self {
        Self(Arc::new(Way { sink, log_holds, ..Way::default() }))
    }

    pub(crate) fn emit(&self, event: &Event) {
        if self.0.log_holds && event.kind.is_of_a_hold() {
            self.tell(&Event { level: Level::Info, ..event.clone() });
        } else {
            self.tell(event);
        }
    }

    fn tell(&self, event: &Event) {
        let traced = callback::call(|| trace(event));
        let sunk = self.sink(event);
        // Each is told of the other.
        if let Err(panic) = traced
            && !self.0.told_of_subscriber.swap(true, Ordering::Relaxed)
        {
            let _ = self.sink(&panic.warning("the subscriber of `tracing`"));
        }
        if let Err(panic) = sunk
            && !self.0.told_of_sink.swap(true, Ordering::Relaxed)
        {
            let _ = callback::call(|| trace(&panic.warning("the client's event sink")));
        }
    }

    fn sink(&self, event: &Event) -> Result<(), callback::Panic> {
        match &self.0.sink {
            Some(sink) => callback::call(|| sink.event(event)),
            None => Ok(()),
        }
    }
}
