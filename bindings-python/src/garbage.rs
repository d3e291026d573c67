//! Garbage: warnings from the destructors of what a program forgot.

use std::ffi::CString;

use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyResourceWarning, PyRuntimeWarning};
use pyo3::prelude::*;

use crate::own;

/// The warning about a held lock that was dropped. If the statement that got it drops it, its author takes it for a success that ends by
/// itself, as in `if lock.acquire():`. That is a warning which Python shows.
pub(crate) fn warn_of_hold(name: &str) {
    let discarded = Python::try_attach(|py| {
        let raised = PyErr::take(py);
        let answer = own::call(py, |own| &own.is_discarded, ()).and_then(|answer| answer.extract::<bool>());
        raised.into_iter().for_each(|raised| raised.restore(py));
        answer.unwrap_or(false)
    });
    if discarded == Some(true) {
        warn::<PyRuntimeWarning>(&format!(
            "lock {name:?} was acquired and dropped in one statement: it is no longer renewed, and expires by itself; what an acquire \
             returns is the hold: keep it, as in `with lock:` or `held = lock.acquire()`, and release it"
        ));
    } else {
        warn::<PyResourceWarning>(&format!(
            "held lock {name:?} was dropped without release(): it is no longer renewed, and expires by itself"
        ));
    }
}

/// A warning: what is being raised meanwhile stays as it is, and an interpreter that ends isn't bothered.
pub(crate) fn warn<W: PyTypeInfo>(text: &str) {
    let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
    let _ = Python::try_attach(|py| {
        let raised = PyErr::take(py);
        if let Err(refused) = PyErr::warn(py, &py.get_type::<W>(), &text, 1) {
            refused.write_unraisable(py, None);
        }
        if let Some(raised) = raised {
            raised.restore(py);
        }
    });
}
