//! `Lock`: one lock.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{BaseLock, Kind};
use crate::arguments::text;
use crate::client::Client;
use crate::lock_values::LockInfo;
use crate::operation::Operation;
use crate::waiting;

/// A lock: a name and options. Made by :meth:`Client.lock` or :func:`lock`; does no I/O by itself.
///
/// It may be shared by threads and tasks, and used again, also at the same time. Not re-entrant: a thread, task or greenlet that
/// would wait for a lock which it holds in a ``with`` gets a :exc:`DeadlockError` at once, with the line that took it. One
/// attempt (``try_acquire()``, ``wait=0``) finds the lock busy instead. Where the ``with`` is in a suspended generator, another thread
/// may end it: there it waits, and after 5 s an event ``warning`` says that it may wait for itself.
///
///     with lock as hold: ...            # blocks; LockLostError at the end if it was lost meanwhile
///     async with lock as hold: ...      # the body is cancelled if it is lost
///     @lock
///     def locked(): ...                 # around every call; {parameter} in the name is filled from the arguments
///
/// As a decorator, and only there, the name is a template (``{{tag}}`` is a literal ``{tag}``) or a callable that makes the name from
/// the arguments. A :exc:`LockLostError` of a decorated function carries what it had returned as ``result``. A function that returns
/// before its work is done is refused: a generator, a context manager, one that returns a coroutine, a task or a future.
///
/// It pickles by its name and options, with its client: by the client's ``name``, or else by its configuration, **passwords
/// included**. See :class:`Client`. A lock of the default client becomes one of the other process's default client.
#[pyclass(module = "locktender", extends = BaseLock, frozen, weakref)]
pub(crate) struct Lock;

impl Lock {
    pub(crate) fn new(
        client: Option<Py<Client>>,
        kind: Kind,
        name: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Self>> {
        Self::of(name.py(), BaseLock::new(client, kind, name, options)?)
    }

    pub(super) fn of(py: Python<'_>, lock: BaseLock) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(lock).add_subclass(Self))
    }
}

#[pymethods]
impl Lock {
    /// The name; ``None`` if a callable makes it.
    #[getter]
    fn name(slf: &Bound<'_, Self>) -> Option<String> {
        slf.as_super().get().name.shown()
    }

    /// Shows who holds the lock: ``None`` if it is free. Changes nothing.
    ///
    ///     if info := client.lock("orders:42").inspect():
    ///         print(info.owner, info.remaining)
    ///
    /// Raises :exc:`UnavailableError`, :exc:`DeniedError`, :exc:`KeyConflictError`, :exc:`InvalidArgumentError`, :exc:`ClosedError`.
    fn inspect(slf: &Bound<'_, Self>) -> PyResult<Option<LockInfo>> {
        let (py, lock) = (slf.py(), slf.as_super().get());
        let client = lock.client(py)?;
        LockInfo::or_none(py, waiting::block(py, lock.core(client.bind(py))?.inspect())?)
    }

    /// :meth:`inspect`, under asyncio.
    fn inspect_async(slf: &Bound<'_, Self>) -> PyResult<Operation> {
        BaseLock::operation(slf.as_super(), "inspect_async", locktender::Lock::inspect, |py, _, _, info| {
            LockInfo::or_none(py, info)
        })
    }

    /// Ends the hold of the lock, whatever process has it: for an operator, when a holder hangs and still renews. Returns what was ended, or
    /// ``None`` if there was nothing to end. With ``owner`` only the hold with this owner value is ended. A value that no locktender wrote is
    /// ended only if it is given so: else it is a :exc:`KeyConflictError`.
    ///
    ///     info = client.lock("orders:42").inspect()
    ///     if info and input(f"{info.owner} holds it. End that? ") == "yes":
    ///         client.lock("orders:42").force_release(owner=info.owner)
    ///
    /// **The holder continues until it notices**: its next renewal is refused, at most a third of its ttl later, and its hold is then lost.
    /// Until then two programs may work at the same time. Only a resource that compares fences is safe from that.
    ///
    /// Raises :exc:`UnavailableError` (the hold may have ended nevertheless), :exc:`DeniedError`, :exc:`KeyConflictError`,
    /// :exc:`InvalidArgumentError`, :exc:`ClosedError`.
    #[pyo3(signature = (*, owner=None), text_signature = "($self, *, owner=None)")]
    fn force_release(slf: &Bound<'_, Self>, owner: Option<&Bound<'_, PyAny>>) -> PyResult<Option<LockInfo>> {
        let (py, lock) = (slf.py(), slf.as_super().get());
        let owner = owner.map(|owner| text("owner", owner)).transpose()?;
        let client = lock.client(py)?;
        LockInfo::or_none(py, waiting::block(py, lock.core(client.bind(py))?.force_release(owner.as_deref()))?)
    }

    /// :meth:`force_release`, under asyncio.
    #[pyo3(signature = (*, owner=None), text_signature = "($self, *, owner=None)")]
    fn force_release_async(slf: &Bound<'_, Self>, owner: Option<&Bound<'_, PyAny>>) -> PyResult<Operation> {
        let owner = owner.map(|owner| text("owner", owner)).transpose()?;
        let begin = move |lock: &locktender::Lock| lock.force_release(owner.as_deref());
        BaseLock::operation(slf.as_super(), "force_release_async", begin, |py, _, _, info| LockInfo::or_none(py, info))
    }
}
