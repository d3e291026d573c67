//! What of this package is written in Python, called from here.

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

use crate::exit::Visit;

/// Calls a function of a module of this package, such as `_asyncio`.
pub(crate) fn call<'py>(
    py: Python<'py>,
    module: &str,
    function: &str,
    arguments: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let _visit = Visit::begin(py)?;
    py.import(format!("locktender.{module}"))?.call_method1(function, arguments)
}
