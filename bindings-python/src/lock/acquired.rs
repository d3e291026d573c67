//! Acquired: the holds that a lock gives.

use pyo3::prelude::*;

use super::Lock;
use crate::async_hold::AsyncHold;
use crate::client::Client;
use crate::errors::NotHeldError;
use crate::hold::Hold;
use crate::waiting;

impl Lock {
    /// The handle for a thread.
    pub(super) fn held(&self, py: Python<'_>, client: Py<Client>, held: locktender::Hold) -> PyResult<Py<Hold>> {
        let on_lost = client.get().on_lost(py, self.choice.on_lost.as_ref());
        Hold::new(py, client.into_any(), held, on_lost)
    }

    /// The handle for a task.
    pub(super) fn async_hold(&self, py: Python<'_>, client: Py<Client>, held: locktender::Hold) -> PyResult<Py<AsyncHold>> {
        let on_lost = client.get().on_lost(py, self.choice.on_lost.as_ref());
        AsyncHold::new(py, client.into_any(), held, on_lost)
    }

    /// Acquires the lock for a thread.
    pub(crate) fn acquired(&self, py: Python<'_>) -> PyResult<Py<Hold>> {
        let client = self.client(py)?;
        let lock = self.core(client.bind(py))?;
        let held = waiting::block_unless_looping(py, lock.name(), lock.acquire())?;
        self.held(py, client, held)
    }

    /// Tries once, for a thread.
    pub(crate) fn tried(&self, py: Python<'_>) -> PyResult<Option<Py<Hold>>> {
        let client = self.client(py)?;
        let held = waiting::block_once(py, self.core(client.bind(py))?.try_acquire())?;
        held.map(|held| self.held(py, client, held)).transpose()
    }

    /// The error of a method that only a hold has.
    pub(super) fn not_held(&self, method: &str) -> PyErr {
        NotHeldError::new_err(format!(
            "{} only describes a lock and holds none: {method}() is a method of what acquire() returned",
            self.__repr__()
        ))
    }
}
