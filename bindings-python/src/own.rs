//! Own Python code of this package, called from here: `_used_by_native.py` says what each function takes and returns.

use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::visit::Visit;

/// The functions of `_used_by_native.py`, by the same names.
#[derive(FromPyObject)]
pub(crate) struct Own {
    pub(crate) attach: Py<PyAny>,
    pub(crate) checkpoint: Py<PyAny>,
    pub(crate) decorate: Py<PyAny>,
    pub(crate) decorate_job: Py<PyAny>,
    pub(crate) decoded: Py<PyAny>,
    pub(crate) encoded: Py<PyAny>,
    pub(crate) failure: Py<PyAny>,
    pub(crate) get_ident: Py<PyAny>,
    pub(crate) hub: Py<PyAny>,
    pub(crate) instead_of: Py<PyAny>,
    pub(crate) is_coroutine_function: Py<PyAny>,
    pub(crate) lead_async: Py<PyAny>,
    pub(crate) logger: Py<PyAny>,
    pub(crate) make_known: Py<PyAny>,
    pub(crate) reduced_client: Py<PyAny>,
    pub(crate) reduced_job: Py<PyAny>,
    pub(crate) reduced_election: Py<PyAny>,
    pub(crate) reduced_lock: Py<PyAny>,
    pub(crate) reduced_name: Py<PyAny>,
    pub(crate) refuse_bare: Py<PyAny>,
    pub(crate) run_job_async: Py<PyAny>,
    pub(crate) said: Py<PyAny>,
    pub(crate) settings: Py<PyAny>,
    pub(crate) stand_in: Py<PyAny>,
    pub(crate) start_credentials: Py<PyAny>,
    pub(crate) start_delivery: Py<PyAny>,
    pub(crate) wait_lost: Py<PyAny>,
    pub(crate) warn: Py<PyAny>,
}

static OWN: PyOnceLock<Own> = PyOnceLock::new();

/// Takes the helpers; called once, when the package is imported.
#[pyfunction(name = "_use")]
#[pyo3(signature = (helpers, /))]
pub(crate) fn use_helpers(py: Python<'_>, helpers: Own) {
    let _ = OWN.set(py, helpers);
}

/// Calls one of them.
pub(crate) fn call<'py>(
    py: Python<'py>,
    chosen: fn(&Own) -> &Py<PyAny>,
    arguments: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    let _visit = Visit::begin(py)?;
    let own = OWN.get(py).ok_or_else(|| PyImportError::new_err("locktender isn't imported yet"))?;
    chosen(own).bind(py).call1(arguments)
}
