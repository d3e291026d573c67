//! Traces: acquires that an instrumentation follows, each by a number that all its events have. The instrumentation is Python
//! (`opentelemetry.py`): it is called where an acquire begins, for the caller's context, and on the thread that delivers events.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use pyo3::intern;
use pyo3::prelude::*;

use crate::errors::LockError;
use crate::events;
use crate::guarded::Guarded;

static FOLLOWER: Guarded<Option<Py<PyAny>>> = Guarded::new(None);

/// Sets the instrumentation; ``None`` ends it, when it has got all records so far.
#[pyfunction(name = "_follow")]
#[pyo3(signature = (follower, /))]
pub(crate) fn follow(py: Python<'_>, follower: Option<Py<PyAny>>) {
    events::set_followed(py, follower.is_some());
    drop(FOLLOWER.replace(follower));
}

/// The instrumentation.
pub(crate) fn follower(py: Python<'_>) -> Option<Py<PyAny>> {
    FOLLOWER.get(py)
}

/// An acquire that is followed. One whose caller goes without an answer was left.
pub(crate) struct Trace {
    number: u64,
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
        events::follow(|follower| follower.begin(number, None, SystemTime::now()));
        Ok(Some(Self { number, answered: false }))
    }

    /// The acquire was started: what begins next on this thread is another one.
    pub(crate) fn started(&mut self) {
        events::follow(|follower| follower.started(self.number));
    }

    /// The caller gets its answer: what the acquire gave, or an error.
    pub(crate) fn answered(mut self, py: Python<'_>, error: Option<&PyErr>) {
        let failure = error.filter(|error| error.is_instance_of::<LockError>(py)).map(|error| {
            let code = error.value(py).getattr(intern!(py, "code")).and_then(|code| code.extract());
            (code.unwrap_or_default(), error.value(py).to_string())
        });
        let left = error.is_some() && failure.is_none();
        self.answer(failure, left);
    }

    fn answer(&mut self, failure: Option<(String, String)>, left: bool) {
        self.answered = true;
        events::follow(|follower| follower.answer(self.number, failure, left, SystemTime::now()));
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if !self.answered {
            self.answer(None, true);
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
