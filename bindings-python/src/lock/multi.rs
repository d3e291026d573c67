//! `MultiLock`: several locks that are acquired together.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::{BaseLock, Kind};
use crate::client::Client;
use crate::members::missing_of_several;

/// Several locks, which are acquired all at once, or none of them. Made by :meth:`Client.multi_lock` or :func:`multi_lock`; does no I/O by
/// itself.
///
/// It is used as a :class:`Lock`, also as a decorator, and pickles as one. What it acquires is a :class:`MultiHold`, or an
/// :class:`AsyncMultiHold`. ``try_acquire()`` returns ``None`` if any of the locks is busy. An :exc:`AcquireTimeoutError` and a
/// :exc:`KeyConflictError` name the lock that was in the way.
///
///     with locks as hold: ...           # blocks; LockLostError at the end if one was lost meanwhile
///     async with locks as hold: ...     # the body is cancelled if one is lost
///     @locks
///     def locked(): ...                 # around every call; {parameter} in each name is filled from the arguments
#[pyclass(module = "locktender", extends = BaseLock, frozen, weakref)]
pub(crate) struct MultiLock;

impl MultiLock {
    pub(crate) fn new(
        client: Option<Py<Client>>,
        names: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Self>> {
        Self::of(names.py(), BaseLock::new(client, Kind::Several, names, options)?)
    }

    pub(super) fn of(py: Python<'_>, lock: BaseLock) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(lock).add_subclass(Self))
    }
}

#[pymethods]
impl MultiLock {
    /// The names, in the order in which they were given; none if a callable makes them.
    #[getter]
    fn names<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(slf.py(), slf.as_super().get().name.texts())
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        missing_of_several(slf, name)
    }
}
