//! The hold under which the body of one of our own `with` runs. The `with` is native so that Ctrl-C finds no gap between the grant
//! and the body: in Python's own code there is one, and a hold that got lost in it would stay until its ttl is over.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::guarded::Guarded;
use crate::hold::ThreadHold;

/// A hold from the begin of a body to its end.
#[derive(Default)]
pub(crate) struct Running(Guarded<Option<Py<ThreadHold>>>);

impl Running {
    /// The body of `held` begins.
    pub(crate) fn begin(&self, held: &Bound<'_, ThreadHold>) -> PyResult<()> {
        held.get().begin(held.py())?;
        drop(self.0.replace(Some(held.clone().unbind())));
        Ok(())
    }

    /// The hold whose body ends. The caller leaves it.
    pub(crate) fn take(&self) -> Option<Py<ThreadHold>> {
        self.0.take()
    }

    /// The body ends, with its error.
    pub(crate) fn leave(&self, py: Python<'_>, error: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        self.take().map_or(Ok(()), |held| held.get().leave(py, error))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(|held| visit.call(held))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Entered and never left: an interrupt came first, and no body runs.
        if let Some(held) = self.0.get_mut().take() {
            held.get().undo();
        }
    }
}
