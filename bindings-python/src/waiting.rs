//! Blocked threads: the interpreter is free while they wait. Between the slices of a wait signals are looked for, and exceptions that
//! another thread has set for this one (as time limits of task queues do). A greenlet waits through its hub instead.

use std::ffi::CString;
use std::time::{Duration, Instant};

use locktender::Call;
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::green;
use crate::traces::followed;
use crate::visit::detached;
use crate::{context, credentials, own};

/// How long a signal, or another thread's exception, may go unnoticed.
const SLICE: Duration = Duration::from_millis(50);

/// Blocks until the call has ended. A signal handler's exception drops the call, and thereby cancels it.
pub(crate) fn block<T: Send + 'static>(py: Python<'_>, call: Call<T>) -> PyResult<T> {
    block_for(py, call, None)?.ok_or_else(too_early)
}

fn too_early() -> PyErr {
    PyRuntimeError::new_err("the hub let a greenlet go on that still waits for a lock's operation")
}

/// [`block`] for an acquire, which warns where the wait stops an event loop.
pub(crate) fn block_unless_looping<T: Send + 'static>(py: Python<'_>, name: &str, call: Call<T>) -> PyResult<T> {
    followed(py, || acquire(py, name, call))
}

/// [`block`] for an acquire that tries once.
pub(crate) fn block_once<T: Send + 'static>(py: Python<'_>, call: Call<T>) -> PyResult<T> {
    followed(py, || block(py, call))
}

fn acquire<T: Send + 'static>(py: Python<'_>, name: &str, mut call: Call<T>) -> PyResult<T> {
    credentials::refresh(py)?;
    if let Some(hub) = green::hub(py)? {
        return green::wait(&hub, call, None)?.ok_or_else(too_early);
    }
    if let Some(result) = slice(py, &mut call, SLICE)? {
        return Ok(result);
    }
    if context::running_loop(py)?.is_some() {
        let text = format!("waiting for lock {name:?} blocks this thread's event loop; use `async with`, or acquire_async()");
        let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)?;
    }
    block(py, call)
}

/// [`block`] for at most `timeout`; `None` if that was too short. Without a timeout it never is.
pub(crate) fn block_for<T: Send + 'static>(py: Python<'_>, mut call: Call<T>, timeout: Option<Duration>) -> PyResult<Option<T>> {
    credentials::refresh(py)?;
    if let Some(hub) = green::hub(py)? {
        return green::wait(&hub, call, timeout);
    }
    let until = timeout.map(|timeout| Instant::now() + timeout);
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(result) = slice(py, &mut call, left.unwrap_or(SLICE).min(SLICE))? {
            return Ok(Some(result));
        }
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(None);
        }
    }
}

fn slice<T: Send + 'static>(py: Python<'_>, call: &mut Call<T>, timeout: Duration) -> PyResult<Option<T>> {
    let (result, _visit) = detached(py, || call.wait_for(timeout));
    // Also with a result: an interrupt that comes with the grant drops the grant, which gives the lock back.
    py.check_signals()?;
    if result.is_none() {
        own::call(py, "_threads", "checkpoint", ())?;
    }
    result.map(|result| raised(py, result)).transpose()
}
