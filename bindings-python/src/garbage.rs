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

/// Does what runs Python code in a destructor. An interpreter that ends isn't bothered.
pub(crate) fn during_a_visit(work: impl FnOnce(Python<'_>)) {
    let _ = Python::try_attach(|py| keeping_what_is_raised(py, || Visit::begin(py).map(|_visit| work(py))));
}

/// What is being raised meanwhile stays as it is.
fn keeping_what_is_raised<T>(py: Python<'_>, work: impl FnOnce() -> T) -> T {
    let raised = PyErr::take(py);
    let result = work();
    if let Some(raised) = raised {
        raised.restore(py);
    }
    result
}

/// The last field of a class that keeps what the program gave it, whose finalizers are Python code. It is dropped behind all others:
/// they are dropped in a visit that the class's own `drop` begins.
#[derive(Default)]
pub(crate) struct Farewell(Option<Visit>);

impl Farewell {
    pub(crate) fn begin(&mut self) {
        self.0 = Python::try_attach(|py| keeping_what_is_raised(py, || Visit::begin(py).ok())).flatten();
    }
}

/// The `drop` of a class that has nothing else to do in it.
macro_rules! say_farewell {
    ($class:ident) => {
        impl Drop for $class {
            fn drop(&mut self) {
                self.farewell.begin();
            }
        }
    };
}
