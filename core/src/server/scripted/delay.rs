//! Late answers: each is an alarm of the process's timers, so that a test's clock moves it, too.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::clock::Tick;
use crate::io::runtime::Runtime;
use crate::io::timers::Alarm;
use crate::op::{Answer, Failure, FailureKind};
use crate::server::Completion;
use crate::sync::Mutex;

/// The completions to call at their times. Dropping this ends them all.
#[derive(Default)]
pub(super) struct Delayed(Mutex<BTreeMap<u64, Arc<Late>>>);

/// One answer, until it is given.
struct Late(Mutex<Option<(Completion, Answer)>>);

impl Delayed {
    pub(super) fn complete_at(&self, due: Tick, completion: Completion, answer: Answer) {
        // Without the I/O thread the completion is dropped here, and so has an unknown outcome.
        let Ok(runtime) = Runtime::current() else { return };
        let late = Arc::new(Late(Mutex::new(Some((completion, answer)))));
        let alarm: Weak<dyn Alarm> = Arc::downgrade(&late) as _;
        let id = runtime.next_id();
        let mut waiting = self.0.lock();
        waiting.retain(|_, late| late.0.lock().is_some());
        waiting.insert(id, late);
        drop(waiting);
        runtime.set_alarm(due, id, alarm);
    }

    /// Ends the completions in the order in which their operations were submitted.
    pub(super) fn end_all(&self) {
        let waiting = std::mem::take(&mut *self.0.lock());
        for late in waiting.into_values() {
            late.complete(|_| Err(Failure::unknown(FailureKind::Closed, "the client was closed before the answer came")));
        }
    }
}

impl Drop for Delayed {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl Late {
    fn complete(&self, answer: impl FnOnce(Answer) -> Answer) {
        let taken = self.0.lock().take();
        if let Some((completion, planned)) = taken {
            completion.complete(answer(planned));
        }
    }
}

impl Alarm for Late {
    fn ring(self: Arc<Self>) {
        self.complete(|planned| planned);
    }
}
