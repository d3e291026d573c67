//! Garbage: warnings from the destructors of what a program forgot.

use std::ffi::CString;

use pyo3::PyTypeInfo;
use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;

use crate::visit::Visit;

/// The warning about a held lock that was dropped.
pub(crate) fn warn_of_hold(name: &str) {
    warn::<PyResourceWarning>(&format!(
        "held lock {name:?} was dropped without release(): it is no longer renewed, and expires by itself"
    ));
}

/// A warning: Python code shows it, or makes an error of it.
pub(crate) fn warn<W: PyTypeInfo>(text: &str) {
    let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
    during_a_visit(|py| {
        if let Err(refused) = PyErr::warn(py, &py.get_type::<W>(), &text, 1) {
            refused.write_unraisable(py, None);
        }
    });
}

/// Does what runs Python code in a destructor: what is being raised meanwhile stays as it is, and an interpreter that ends isn't
/// bothered.
pub(crate) fn during_a_visit(work: impl FnOnce(Python<'_>)) {
    let _ = Python::try_attach(|py| {
        let raised = PyErr::take(py);
        if let Ok(_visit) = Visit::begin(py) {
            work(py);
        }
        if let Some(raised) = raised {
            raised.restore(py);
        }
    });
}
