//! Garbage: warnings from the destructors of what a program forgot.

use std::ffi::CString;

use pyo3::PyTypeInfo;
use pyo3::prelude::*;

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
