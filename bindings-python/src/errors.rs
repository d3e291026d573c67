//! The core's errors as Python exceptions: the class of a code, from the table in `errors.py`.

use locktender::host::Language;
use locktender::{Code, Error, Remaining};
use pyo3::exceptions::PyImportError;
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::causes::cause;
use crate::seconds::in_seconds;
use crate::visit::Visit;

import_exception!(locktender.errors, LockError);
import_exception!(locktender.errors, LockLostError);
import_exception!(locktender.errors, NotHeldError);

/// The classes by their codes.
static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

fn class_of<'py>(py: Python<'py>, code: Code) -> PyResult<Bound<'py, PyAny>> {
    let classes = CLASSES.get(py).ok_or_else(|| PyImportError::new_err("locktender isn't imported yet"))?;
    classes.bind(py).as_any().get_item(code.as_str())
}

/// Looks all classes up. Each is kept from its first use, and Python code may run in that: a signal handler or a finalizer that
/// meets an error of its own then would wait for the very use it interrupts.
pub(crate) fn settle_in(py: Python<'_>) -> PyResult<()> {
    let classes = py.import("locktender.errors")?.getattr("_CLASSES")?.cast_into::<PyDict>()?;
    let _ = CLASSES.set(py, classes.unbind());
    let _ = (py.get_type::<LockError>(), py.get_type::<LockLostError>(), py.get_type::<NotHeldError>());
    Code::ALL.iter().try_for_each(|code| class_of(py, *code).map(drop))
}

/// The exception for `error`, with all its fields, and what is behind it.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let build = || {
        let _visit = Visit::begin(py)?;
        let fields = fields(py, error)?;
        let raised = PyErr::from_value(class_of(py, error.code())?.call((error.in_words_of(Language::Python),), Some(&fields))?);
        if let Some(cause) = cause(py, error) {
            raised.set_cause(py, Some(PyErr::from_value(cause.into_bound(py))));
        }
        Ok(raised)
    };
    build().unwrap_or_else(|failed: PyErr| failed)
}

/// `INVALID_ARGUMENT` about one lock, for what only this binding knows.
pub(crate) fn invalid(py: Python<'_>, lock: &str, text: &str) -> PyErr {
    let build = || {
        let fields = PyDict::new(py);
        fields.set_item("lock_name", lock)?;
        class_of(py, Code::InvalidArgument)?.call((text,), Some(&fields))
    };
    build().map_or_else(|failed| failed, PyErr::from_value)
}

/// The text and the fields of `error`, for a daemon thread: it makes the exception in Python, where the exit may end it.
pub(crate) fn parts(py: Python<'_>, error: &Error) -> PyResult<Py<PyAny>> {
    Ok((error.to_string(), fields(py, error)?).into_pyobject(py)?.into_any().unbind())
}

/// [`raise`], for `map_err`.
pub(crate) fn raised<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| raise(py, &error))
}

fn fields<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("lock_name", error.lock_name())?;
    if let Some(holder) = error.holder() {
        fields.set_item("holder", &holder.owner)?;
        fields.set_item("remaining", seconds_left(holder.remaining))?;
        fields.set_item("rank", error.rank())?;
    }
    if let Some(loss) = error.loss() {
        fields.set_item("reason", loss.reason.as_str())?;
        fields.set_item("next_owner", &loss.next_owner)?;
        fields.set_item("next_fence", loss.next_fence)?;
        fields.set_item("overrun", in_seconds(loss.overrun))?;
    }
    if let Some(attempts) = error.attempts() {
        fields.set_item("attempts", attempts)?;
        fields.set_item("last_error", error.last_error())?;
    }
    if !error.servers().is_empty() {
        fields.set_item("servers", servers(error))?;
    }
    Ok(fields)
}

fn servers(error: &Error) -> Vec<(&str, &str, &str)> {
    error.servers().iter().map(|error| (error.server.as_str(), error.kind.as_str(), error.message.as_str())).collect()
}

/// What remains of a key, in seconds.
pub(crate) fn seconds_left(remaining: Remaining) -> f64 {
    match remaining {
        Remaining::For(left) => in_seconds(left),
        Remaining::Forever => f64::INFINITY,
        _ => 0.0,
    }
}
