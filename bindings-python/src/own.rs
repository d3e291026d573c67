//! Own Python code of this package, used from here by the names of its modules and functions. See `_used_by_native.py`.

use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::visit::Visit;

/// Finds what a module has by a name, and imports the module when it is first used.
static NAMED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Takes what finds it; called once, when the package is imported.
#[pyfunction(name = "_use")]
#[pyo3(signature = (named, /))]
pub(crate) fn use_names(py: Python<'_>, named: Py<PyAny>) {
    let _ = NAMED.set(py, named);
}

/// What `module` has by this name; `None` while this very thread is importing the module.
pub(crate) fn named<'py>(py: Python<'py>, module: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let _visit = Visit::begin(py)?;
    let named = NAMED.get(py).ok_or_else(|| PyImportError::new_err("locktender isn't imported yet"))?;
    named.bind(py).call1((module, name))
}

/// Calls a function of `module`.
pub(crate) fn call<'py>(
    py: Python<'py>,
    module: &str,
    function: &str,
    arguments: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let _visit = Visit::begin(py)?;
    named(py, module, function)?.call1(arguments)
}
