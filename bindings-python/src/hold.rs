//! `Hold` and `MultiHold`: one acquisition, for code that blocks.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyString, PyTuple};

use crate::arguments::seconds;
use crate::errors::raised;
use crate::frames::Caller;
use crate::hold_inner::{BaseHold, Core, HoldInner, Origin, settle};
use crate::members::missing_of_several;
use crate::values::{Loss, Release};
use crate::waiting;

/// What the holds of one lock and of several have in common.
#[pyclass(module = "locktender._native", name = "_ThreadHold", extends = BaseHold, frozen, weakref, subclass)]
pub(crate) struct ThreadHold {
    hold: Arc<HoldInner>,
}

impl ThreadHold {
    fn of(hold: &Arc<HoldInner>, client: Py<PyAny>) -> PyClassInitializer<Self> {
        hold.base(client).add_subclass(Self { hold: Arc::clone(hold) })
    }

    /// Begins the body of a lock that was acquired for it: without a body it is given back.
    pub(crate) fn begin<'py>(&self, py: Python<'py>) -> PyResult<Caller<'py>> {
        self.hold.enter(py).inspect_err(|_| self.hold.undo())
    }

    /// Ends a body, which may have failed.
    pub(crate) fn leave(&self, py: Python<'_>, error: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let failure = self.hold.failure(error.as_ref())?;
        settle(py, waiting::block(py, self.hold.leave(failure)), error)
    }

    /// See [`HoldInner::undo`].
    pub(crate) fn undo(&self) {
        self.hold.undo();
    }

    /// See [`HoldInner::is_loss`].
    pub(crate) fn is_loss(&self, error: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.hold.is_loss(error)
    }
}

#[pymethods]
impl ThreadHold {
    /// Makes at least ``ttl`` remain (nothing given: the lock's own), or ``by`` more than :meth:`remaining` says now. Never
    /// shortens.
    ///
    ///     hold.extend(60)     # at least a minute from now
    ///     hold.extend(by=10)  # ten seconds more than now
    ///
    /// Raises :exc:`LockLostError`, :exc:`NotHeldError`, :exc:`InvalidArgumentError`, :exc:`ForkedError`, and
    /// :exc:`UnavailableError` if no majority answers (the lock is still held while :meth:`is_valid` says so).
    #[pyo3(signature = (ttl=None, *, by=None))]
    fn extend(&self, py: Python<'_>, ttl: Option<&Bound<'_, PyAny>>, by: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        waiting::block(py, self.hold.extend(ttl, by)?)
    }

    /// Waits, at most ``timeout`` seconds, until the lock is lost: how, or ``None`` if it isn't, or was released.
    ///
    ///     if loss := hold.wait_lost(0.1):
    ///         print(loss.reason)
    #[pyo3(signature = (timeout=None))]
    fn wait_lost(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Loss>> {
        let timeout = timeout.map(|timeout| seconds("timeout", timeout)).transpose()?;
        let loss = waiting::block_for(py, self.hold.core.ended(), timeout)?;
        Ok(loss.flatten().map(Loss::from))
    }

    /// Releases the lock, and returns the outcome.
    ///
    ///     if hold.release().outcome == "taken":
    ///         print("another hold came between")
    ///
    /// Raises :exc:`UnavailableError` if the outcome stays unknown: the release continues in the background, and may be called again
    /// to learn it. :exc:`NotHeldError` if it was released or handed over before, :exc:`ForkedError` in a forked child.
    fn release(&self, py: Python<'_>) -> PyResult<Release> {
        waiting::block(py, self.hold.core.release()).map(Release::from)
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().hold.enter(py)?;
        Ok(slf)
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, error: Option<Bound<'_, PyAny>>, _traceback: Py<PyAny>) -> PyResult<()> {
        self.leave(py, error)
    }
}

/// A lock that is held: until it is released, handed over, or lost. Made by :meth:`Lock.acquire`.
///
/// It is renewed in the background, whatever holds the interpreter. Any thread may use it. ``with`` releases it at the end, unless
/// that was done; if it was lost meanwhile, :exc:`LockLostError` is raised, or attached to the error of the body. It has one body:
/// entering it raises what :meth:`check` raises, so :exc:`NotHeldError` after a release and :exc:`LockLostError` after a loss, and
/// :exc:`InvalidArgumentError` inside of the body itself.
///
/// Garbage-collected without a release it is no longer renewed and expires by itself, with a :exc:`ResourceWarning`, which Python
/// shows only if asked to. So the lock stays taken for its ttl, as after ``if lock.acquire():``, which drops the hold at once.
#[pyclass(module = "locktender", extends = ThreadHold, frozen, weakref, subclass)]
pub(crate) struct Hold {
    hold: Arc<HoldInner>,
}

impl Hold {
    pub(crate) fn new(py: Python<'_>, held: locktender::Hold, origin: Origin) -> PyResult<Py<Self>> {
        let hold = HoldInner::new(py, Core::Lock(held), origin.on_lost)?;
        Py::new(py, Self::of(hold, origin.client))
    }

    /// The handle of a hold.
    pub(crate) fn of(hold: Arc<HoldInner>, client: Py<PyAny>) -> PyClassInitializer<Self> {
        ThreadHold::of(&hold, client).add_subclass(Self { hold })
    }
}

#[pymethods]
impl Hold {
    /// The lock's name.
    #[getter]
    fn name(&self) -> &str {
        self.hold.core.name()
    }

    /// The fencing token: larger than that of every earlier hold of this name. Let the resource refuse smaller ones.
    #[getter]
    fn fence(&self) -> u64 {
        self.hold.core.fence()
    }

    /// Ends this hold without releasing, and returns a single-use text for :meth:`Client.adopt` in another process. Until then,
    /// at most for what remains of the ttl, the lock stays taken.
    ///
    ///     ticket = hold.hand_over()
    ///
    /// Raises :exc:`LockLostError`, :exc:`NotHeldError`, :exc:`ForkedError`.
    fn hand_over(&self, py: Python<'_>) -> PyResult<String> {
        let result = py.detach(|| self.hold.core.hand_over());
        raised(py, result)
    }

    /// Makes a writer's hold a reader's, without a gap: returns a new hold of :meth:`Client.read_lock`, and other readers may enter.
    /// This one ends. The new one has its options and a fence of its own, above this one's; what is left of ``min_hold``
    /// ends. There is no way back: release, and acquire the lock.
    ///
    ///     writer = client.lock("prices").acquire()
    ///     write(row, fence=writer.fence)
    ///     reader = writer.downgrade()
    ///
    /// Raises :exc:`LockLostError` with the reason ``ended`` if the server doesn't have this hold any more, or if an answer was lost;
    /// :exc:`NotHeldError` after a release or a hand-over; :exc:`InvalidArgumentError` of a hold that is no plain lock's on one server;
    /// otherwise what :meth:`Lock.acquire` raises.
    fn downgrade(slf: &Bound<'_, Self>) -> PyResult<Py<Self>> {
        let (py, hold) = (slf.py(), &slf.get().hold);
        let on_lost = hold.on_lost(py);
        let reader = waiting::block(py, hold.core.downgrade())?;
        Self::new(py, reader, Origin { client: slf.as_super().as_super().get().client(py), on_lost })
    }
}

/// Several locks that are held: all of them until they are released, or until the first of them is lost. The others stay taken then until
/// the work ends, but are no longer renewed. Made by :meth:`MultiLock.acquire`.
///
/// It is renewed, used and ended as a :class:`Hold`. It can't be handed over.
#[pyclass(module = "locktender", extends = ThreadHold, frozen, weakref)]
pub(crate) struct MultiHold {
    hold: Arc<HoldInner>,
}

impl MultiHold {
    pub(crate) fn new(py: Python<'_>, held: locktender::Hold, origin: Origin) -> PyResult<Py<Self>> {
        let hold = HoldInner::new(py, Core::Several(held), origin.on_lost)?;
        Py::new(py, ThreadHold::of(&hold, origin.client).add_subclass(Self { hold }))
    }
}

#[pymethods]
impl MultiHold {
    /// The locks' names, in the order in which they were given.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.hold.core.names())
    }

    /// The fencing token of each name: larger than that of every earlier hold of this name. A copy.
    ///
    ///     with client.multi_lock(["account:1", "account:2"]) as hold:
    ///         write(row, fence=hold.fences["account:2"])
    #[getter]
    fn fences<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.hold.core.fences().into_py_dict(py)
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        missing_of_several(slf, name)
    }
}
