//! The emitter: it sends a client's events to `tracing` and to the client's sink.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::event::callback;
use crate::event::{EventKind, Level, LockEvent, Sink, trace};

/// The emitter of one client. Clones are the same emitter.
#[derive(Clone, Default)]
pub(crate) struct Emitter(Arc<Way>);

#[derive(Default)]
struct Way {
    sink: Option<Arc<dyn Sink>>,
    /// Whether events of a normal hold are at level info.
    log_holds: bool,
    /// Whether a panic of `tracing` or of the sink was reported. It is reported once, also if every event panics.
    sink_is_reported: AtomicBool,
    subscriber_is_reported: AtomicBool,
    warnings: AtomicU64,
    /// The events that a listener behind the sink never got.
    dropped: Arc<AtomicU64>,
}

impl Emitter {
    pub(crate) fn new(sink: Option<Arc<dyn Sink>>, log_holds: bool, dropped: Arc<AtomicU64>) -> Self {
        Self(Arc::new(Way { sink, log_holds, dropped, ..Way::default() }))
    }

    /// The number of warnings.
    pub(crate) fn warnings(&self) -> u64 {
        self.0.warnings.load(Ordering::Relaxed)
    }

    /// The number of events that a listener never got.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn emit(&self, event: &LockEvent) {
        if event.kind == EventKind::Warning {
            self.0.warnings.fetch_add(1, Ordering::Relaxed);
        }
        if self.0.log_holds && event.kind.is_of_a_hold() {
            self.deliver(&LockEvent { level: Level::Info, ..event.clone() });
        } else {
            self.deliver(event);
        }
    }

    /// Passes to the sink alone an event that is only for the binding behind it.
    pub(crate) fn notify_follower(&self, event: &LockEvent) {
        let _ = self.sink(event);
    }

    fn deliver(&self, event: &LockEvent) {
        let traced = callback::call(|| trace(event));
        let sunk = self.sink(event);
        // A panic of one is reported to the other.
        if let Err(panic) = traced
            && !self.0.subscriber_is_reported.swap(true, Ordering::Relaxed)
        {
            let _ = self.sink(&panic.warning("the subscriber of `tracing`"));
        }
        if let Err(panic) = sunk
            && !self.0.sink_is_reported.swap(true, Ordering::Relaxed)
        {
            let _ = callback::call(|| trace(&panic.warning("the client's event sink")));
        }
    }

    fn sink(&self, event: &LockEvent) -> Result<(), callback::Panic> {
        match &self.0.sink {
            Some(sink) => callback::call(|| sink.event(event)),
            None => Ok(()),
        }
    }
}
