//! The lock around one call of a decorated function. It is native so that Ctrl-C finds no gap between the grant and the body: in
//! Python's own code there is one, and a hold that got lost in it would stay until its ttl is over.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::guarded::{Guarded, Refer};
use crate::hold::ThreadHold;
use crate::lock::BaseLock;

/// A context manager for one use. Gives the hold; `None` if it tries only once, and the lock is busy.
#[pyclass(module = "locktender._native", name = "_Around", frozen)]
pub(crate) struct Around {
    lock: Py<BaseLock>,
    tries_once: bool,
    held: Guarded<Option<Py<ThreadHold>>>,
}

#[pymethods]
impl Around {
    #[new]
    fn new(lock: Py<BaseLock>, tries_once: bool) -> Self {
        Self { lock, tries_once, held: Guarded::default() }
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Option<Py<ThreadHold>>> {
        let lock = self.lock.get();
        let held = if self.tries_once { lock.tried(py)? } else { Some(lock.acquired(py)?) };
        held.as_ref().map(|held| held.get().begin(py)).transpose()?;
        drop(self.held.replace(held.refer(py)));
        Ok(held)
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, error: Option<Bound<'_, PyAny>>, _traceback: Py<PyAny>) -> PyResult<()> {
        let held = self.held.take();
        held.map_or(Ok(()), |held| held.get().leave(py, error))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.lock)?;
        self.held.traverse(|held| visit.call(held))
    }
}

impl Drop for Around {
    fn drop(&mut self) {
        // Entered and never left: an interrupt came first, and no body runs.
        if let Some(held) = self.held.get_mut().take() {
            held.get().undo();
        }
    }
}
