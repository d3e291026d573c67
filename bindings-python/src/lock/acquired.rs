//! Acquired: the holds that a lock gives.

use pyo3::prelude::*;

use super::{BaseLock, Kind};
use crate::async_hold::{AsyncHold, AsyncMultiHold, TaskHold};
use crate::client::Client;
use crate::errors::NotHeldError;
use crate::hold::{Hold, MultiHold, ThreadHold};
use crate::waiting;

impl BaseLock {
    /// The handle for a thread.
    pub(super) fn held(&self, py: Python<'_>, client: Py<Client>, held: locktender::Hold) -> PyResult<Py<ThreadHold>> {
        let origin = Client::origin(client, py, self.choice.on_lost.as_ref());
        Ok(match self.kind {
            Kind::Several => MultiHold::new(py, held, origin)?.into_bound(py).into_super().unbind(),
            _ => Hold::new(py, held, origin)?.into_bound(py).into_super().unbind(),
        })
    }

    /// The handle for a task.
    pub(super) fn async_hold(&self, py: Python<'_>, client: Py<Client>, held: locktender::Hold) -> PyResult<Py<TaskHold>> {
        let origin = Client::origin(client, py, self.choice.on_lost.as_ref());
        Ok(match self.kind {
            Kind::Several => AsyncMultiHold::new(py, held, origin)?.into_bound(py).into_super().unbind(),
            _ => AsyncHold::new(py, held, origin)?.into_bound(py).into_super().unbind(),
        })
    }

    /// Acquires the lock for a thread.
    pub(crate) fn acquired(&self, py: Python<'_>) -> PyResult<Py<ThreadHold>> {
        let client = self.client(py)?;
        let lock = self.core(client.bind(py))?;
        let held = waiting::block_unless_looping(py, lock.name(), lock.acquire())?;
        self.held(py, client, held)
    }

    /// Tries once, for a thread.
    pub(crate) fn tried(&self, py: Python<'_>) -> PyResult<Option<Py<ThreadHold>>> {
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
