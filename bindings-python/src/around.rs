//! The lock around one call of a decorated function.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::hold::ThreadHold;
use crate::lock::BaseLock;
use crate::running::Running;

/// A context manager for one use. Gives the hold; `None` if it tries only once, and the lock is busy.
#[pyclass(module = "locktender._native", name = "_Around", frozen)]
pub(crate) struct Around {
    lock: Py<BaseLock>,
    tries_once: bool,
    running: Running,
}

#[pymethods]
impl Around {
    #[new]
    fn new(lock: Py<BaseLock>, tries_once: bool) -> Self {
        Self { lock, tries_once, running: Running::default() }
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Option<Py<ThreadHold>>> {
        let lock = self.lock.get();
        let held = if self.tries_once { lock.tried(py)? } else { Some(lock.acquired(py)?) };
        held.as_ref().map(|held| self.running.begin(held.bind(py))).transpose()?;
        Ok(held)
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, error: Option<Bound<'_, PyAny>>, _traceback: Py<PyAny>) -> PyResult<()> {
        self.running.leave(py, error)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.lock)?;
        self.running.traverse(&visit)
    }
}
