//! Traces: acquires that an instrumentation follows, each by a number that all its events have. The instrumentation is Python
//! (`opentelemetry.py`): it is called where an acquire begins, for the caller's context, and on the thread that delivers events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use locktender::host::trace_next;
use pyo3::intern;
use pyo3::prelude::*;

use crate::errors::LockError;
use crate::events::{self, Answer};
use crate::guarded::Guarded;

static FOLLOWER: Guarded<Option<Py<PyAny>>> = Guarded::new(None);

/// Sets who follows acquires; ``None`` ends it.
#[pyfunction(name = "_follow")]
#[pyo3(signature = (follower, /))]
pub(crate) fn follow(follower: Option<Py<PyAny>>) {
    events::set_followed(follower.is_some());
    drop(FOLLOWER.replace(follower));
}

/// Tells who follows acquires that this is all so far: an answer without an acquire.
#[pyfunction(name = "_told_all")]
pub(crate) fn told_all() {
    events::tell_answer(Answer { number: 0, begun: false, failure: None, left: false, at: SystemTime::now() });
}

/// Who follows acquires.
pub(crate) fn follower(py: Python<'_>) -> Option<Py<PyAny>> {
    FOLLOWER.get(py)
}

/// An acquire that is followed. One whose caller goes without an answer was left.
pub(crate) struct Trace {
    number: u64,
    /// The number of the acquire in whose start it is.
    around: u64,
    /// Whether the core has begun it, once that is known.
    begun: Option<bool>,
    answered: bool,
}

impl Trace {
    /// An acquire is to begin on this thread.
    pub(crate) fn begin(py: Python<'_>) -> PyResult<Option<Self>> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let follower = if events::can_follow() { follower(py) } else { None };
        let Some(follower) = follower else { return Ok(None) };
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        // It raises nothing of its own: only an interrupt.
        follower.call_method1(py, intern!(py, "begin"), (number,))?;
        Ok(Some(Self { number, around: trace_next(number), begun: None, answered: false }))
    }

    /// The acquire was started: what begins next on this thread is another one.
    pub(crate) fn started(&mut self) {
        self.begun.get_or_insert_with(|| trace_next(self.around) != self.number);
    }

    /// The caller gets its answer: what the acquire gave, or an error.
    pub(crate) fn answered(mut self, py: Python<'_>, error: Option<&PyErr>) {
        let failure = error.filter(|error| error.is_instance_of::<LockError>(py)).map(|error| {
            let code = error.value(py).getattr(intern!(py, "code")).and_then(|code| code.extract());
            (code.unwrap_or_default(), error.value(py).to_string())
        });
        let left = error.is_some() && failure.is_none();
        self.tell(failure, left);
    }

    fn tell(&mut self, failure: Option<(String, String)>, left: bool) {
        self.answered = true;
        self.started();
        let begun = self.begun == Some(true);
        events::tell_answer(Answer { number: self.number, begun, failure, left, at: SystemTime::now() });
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if !self.answered {
            self.tell(None, true);
        }
    }
}

/// Waits for an acquire by `wait`.
pub(crate) fn followed<T>(py: Python<'_>, wait: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let Some(trace) = Trace::begin(py)? else { return wait() };
    let result = wait();
    trace.answered(py, result.as_ref().err());
    result
}
