//! Spans: an acquire and its hold, as `tracing` sees them: both within the span in which the caller asked for the lock.

use tracing::span::EnteredSpan;
use tracing::{Level, Span, field, span};

use crate::event::callback;
use crate::event::{EventKind, LockEvent};
use crate::name::LockKind;
use crate::sync::Mutex;

/// The spans of one acquisition. They are made only if a subscriber wants them.
pub(crate) struct Spans(Option<Mutex<Now>>);

/// The span that is open now.
struct Now {
    /// The span in which the caller asked for the lock.
    caller: Span,
    /// The span of the acquire, and later that of the hold.
    open: Option<Span>,
}

impl Spans {
    /// An acquire begins. `first` is an event of its lock.
    pub(crate) fn begin(first: impl FnOnce() -> LockEvent) -> Self {
        let wanted = tracing::span_enabled!(target: "locktender", Level::DEBUG, "acquire");
        let begin = || {
            let first = first();
            let acquire = span!(
                target: "locktender",
                Level::DEBUG,
                "acquire",
                lock_name = first.lock_name.as_deref(),
                key = first.key.as_deref(),
                lock_kind = first.lock_kind.map(LockKind::as_str),
                category = first.category.as_deref(),
                end = field::Empty,
                fence = field::Empty,
            );
            Now { caller: Span::current(), open: Some(acquire) }
        };
        // Spans are the subscriber's code.
        Self(if wanted { callback::call(begin).ok().map(Mutex::new) } else { None })
    }

    /// The spans of one of several locks that were acquired together: its hold is within the span of their caller, too.
    pub(crate) fn of_part(&self) -> Self {
        Self(self.0.as_ref().map(|spans| Mutex::new(Now { caller: spans.lock().caller.clone(), open: None })))
    }

    /// Emits an event by `emit`, within the span that it belongs to. An event that ends an acquire or a hold ends its span, too.
    pub(crate) fn around(&self, event: &LockEvent, emit: impl FnOnce()) {
        let Some(spans) = &self.0 else { return emit() };
        let open = spans.lock().open.clone();
        // A subscriber that panics costs the span, and not the event.
        let entered = open.and_then(|span| callback::call(|| span.entered()).ok());
        emit();
        let _ = callback::call(move || leave(entered, event, spans));
    }
}

fn leave(entered: Option<EnteredSpan>, event: &LockEvent, spans: &Mutex<Now>) {
    let span = entered.map_or_else(Span::none, EnteredSpan::exit);
    // What a job's attempt or a release says about a hold that has ended is reported without a span.
    if !event.kind.ends_acquire() && !event.kind.ends_hold() {
        return;
    }
    span.record("end", event.kind.as_str());
    // The grant of several locks has no fence: each of them has a hold of its own.
    let fence = event.fence.filter(|_| event.kind == EventKind::Acquired);
    let hold = fence.map(|fence| {
        span.record("fence", fence);
        let caller = spans.lock().caller.clone();
        span!(
            target: "locktender",
            parent: &caller,
            Level::DEBUG,
            "hold",
            lock_name = event.lock_name.as_deref(),
            key = event.key.as_deref(),
            lock_kind = event.lock_kind.map(LockKind::as_str),
            category = event.category.as_deref(),
            owner = event.owner.as_deref(),
            fence,
            end = field::Empty,
        )
    });
    let mut now = spans.lock();
    let before = (std::mem::replace(&mut now.caller, Span::none()), std::mem::replace(&mut now.open, hold));
    drop(now);
    // Dropping a span calls the subscriber, which must find nothing locked.
    drop((before, span));
}

impl Drop for Spans {
    fn drop(&mut self) {
        if let Some(spans) = self.0.take() {
            let _ = callback::call(|| drop(spans));
        }
    }
}

#[cfg(test)]
#[path = "spans_tests.rs"]
mod tests;
