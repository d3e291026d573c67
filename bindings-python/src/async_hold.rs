//! `AsyncHold` and `AsyncMultiHold`: one acquisition, for code under asyncio. The same names as `Hold`; what waits is a coroutine.

use std::sync::Arc;

use pyo3::exceptions::PyGeneratorExit;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyString, PyTuple};

use crate::arguments::seconds;
use crate::body::{Body, End};
use crate::errors::{raise, raised};
use crate::frames::Caller;
use crate::guarded::Guarded;
use crate::hold_inner::{BaseHold, Core, HoldInner, Origin, settle};
use crate::members::missing_of_several;
use crate::operation::Operation;
use crate::options::OnLost;
use crate::own;
use crate::values::{Loss, Release};

/// What the holds of one lock and of several have in common.
#[pyclass(module = "locktender._native", name = "_TaskHold", extends = BaseHold, frozen, weakref, subclass)]
pub(crate) struct TaskHold {
    hold: Arc<HoldInner>,
    /// The open body that a loss cancels.
    body: Guarded<Option<Py<Body>>>,
}

impl TaskHold {
    fn of(hold: &Arc<HoldInner>, client: Py<PyAny>) -> PyClassInitializer<Self> {
        hold.base(client).add_subclass(Self { hold: Arc::clone(hold), body: Guarded::default() })
    }

    /// Begins the body of the current task.
    fn enter<'py>(&self, py: Python<'py>) -> PyResult<Caller<'py>> {
        let caller = self.hold.enter(py)?;
        let body = self.hold.cancels.then(|| Body::begin(py, &self.hold)).transpose()?;
        drop(self.body.replace(body));
        Ok(caller)
    }

    /// Begins the body of a lock that was acquired for it: without a body it is given back.
    pub(crate) fn begin<'py>(&self, py: Python<'py>) -> PyResult<Caller<'py>> {
        self.enter(py).inspect_err(|_| self.hold.undo())
    }

    /// Leaves the lock, and raises what the end of the body means: its error wins, unless that is the cancellation for the loss.
    pub(crate) fn leave(slf: &Bound<'_, Self>, error: Option<Bound<'_, PyAny>>) -> PyResult<Operation> {
        let (py, body) = (slf.py(), slf.get().body.take());
        let (held, kept) = (slf.clone().unbind(), slf.clone().unbind());
        if error.as_ref().is_some_and(|error| error.is_instance_of::<PyGeneratorExit>()) {
            // Closed, or garbage: the coroutine must not wait any more, often it has no loop.
            body.inspect(|body| body.get().forget(py));
            return Ok(Operation::ready("__aexit__", move |py| {
                held.get().hold.give_back();
                Ok(py.None())
            }));
        }
        let end = body.map_or(Ok(End::OfItsOwn), |body| body.get().end(py, error.as_ref()))?;
        let failure = slf.get().hold.failure(error.as_ref().filter(|_| !matches!(end, End::Lost(_))))?;
        let leave = move |_: Python<'_>| Ok(held.get().hold.leave(failure));
        let left = move |py: Python<'_>, left: PyResult<()>, error: Option<Bound<'_, PyAny>>| {
            let _kept = kept;
            settle(py, left, error)
        };
        Ok(match end {
            End::OfItsOwn => Operation::ending("__aexit__", leave, error, left),
            End::Cancelled { ours } => Operation::ending("__aexit__", leave, error, left).after_a_turn(ours),
            End::Lost(loss) => Operation::ending("__aexit__", leave, None, move |py, result, _| {
                left(py, result, None)?;
                Err(raise(py, &loss)) // it was released inside of the body, after the loss
            }),
        })
    }
}

#[pymethods]
impl TaskHold {
    /// Makes at least ``ttl`` remain, or ``by`` more than remains now. See :meth:`Hold.extend`.
    #[pyo3(signature = (ttl=None, *, by=None))]
    fn extend(slf: &Bound<'_, Self>, ttl: Option<Py<PyAny>>, by: Option<Py<PyAny>>) -> Operation {
        let call = move |held: &Bound<'_, Self>| {
            let (ttl, by) = (ttl.as_ref().map(|ttl| ttl.bind(held.py())), by.as_ref().map(|by| by.bind(held.py())));
            held.get().hold.extend(ttl, by)
        };
        Operation::of(slf, "extend", call, |held, ()| Ok(held.py().None()))
    }

    /// Waits, at most ``timeout`` seconds, until the lock is lost. See :meth:`Hold.wait_lost`.
    #[pyo3(signature = (timeout=None))]
    fn wait_lost(slf: &Bound<'_, Self>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let timeout = timeout.map(|timeout| seconds("timeout", timeout)).transpose()?.map(|timeout| timeout.as_secs_f64());
        let call = |held: &Bound<'_, Self>| Ok(held.get().hold.core.ended());
        let ended = Operation::of(slf, "wait_lost", call, |_, loss| Ok(loss.map(Loss::from)));
        Ok(own::call(slf.py(), "_asyncio", "wait_lost", (ended, timeout))?.unbind())
    }

    /// Releases the lock. Once started it continues, also if the task is cancelled. See :meth:`Hold.release`.
    pub(crate) fn release(slf: &Bound<'_, Self>) -> Operation {
        Operation::of(slf, "release", |held| Ok(held.get().hold.core.release()), |_, release| Ok(Release::from(release)))
    }

    fn __aenter__(slf: Py<Self>) -> Operation {
        Operation::ready("__aenter__", move |py| {
            slf.get().enter(py)?;
            Ok(slf.into_any())
        })
    }

    #[pyo3(signature = (_kind, error, _traceback, /))]
    fn __aexit__(
        slf: &Bound<'_, Self>,
        _kind: &Bound<'_, PyAny>,
        error: Option<Bound<'_, PyAny>>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Operation> {
        Self::leave(slf, error)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.body.traverse(|body| visit.call(body))
    }

    fn __clear__(&self) {
        drop(self.body.take());
    }
}

/// A lock that is held, under asyncio. As :class:`Hold`; what waits is a coroutine.
///
///     async with client.lock("orders:42") as hold:
///         await hold.extend(60)
///
/// In the body of an ``async with`` a loss cancels the body's task, and the end of the body turns exactly that cancellation into
/// :exc:`LockLostError`; a cancellation from elsewhere passes through. With ``on_lost="continue"`` the body runs on.
#[pyclass(module = "locktender", extends = TaskHold, frozen, weakref, subclass)]
pub(crate) struct AsyncHold {
    hold: Arc<HoldInner>,
}

impl AsyncHold {
    pub(crate) fn new(py: Python<'_>, held: locktender::Hold, origin: Origin) -> PyResult<Py<Self>> {
        let hold = HoldInner::new(py, Core::Lock(held), origin.on_lost)?;
        Py::new(py, Self::of(hold, origin.client))
    }

    /// The handle of a hold.
    pub(crate) fn of(hold: Arc<HoldInner>, client: Py<PyAny>) -> PyClassInitializer<Self> {
        TaskHold::of(&hold, client).add_subclass(Self { hold })
    }
}

#[pymethods]
impl AsyncHold {
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

    /// Makes a writer's hold a reader's, without a gap. See :meth:`Hold.downgrade`.
    fn downgrade(slf: &Bound<'_, Self>) -> Operation {
        let convert = |held: &Bound<'_, Self>, reader: locktender::Hold| {
            let (py, hold) = (held.py(), held.as_super());
            let on_lost = if hold.get().hold.cancels { hold.get().hold.on_lost(py) } else { Some(OnLost::Continue) };
            Self::new(py, reader, Origin { client: hold.as_super().get().client(py), on_lost })
        };
        Operation::of(slf, "downgrade", |held| Ok(held.get().hold.core.downgrade()), convert).acquiring()
    }
}

/// Several locks that are held, under asyncio. As :class:`MultiHold`; what waits is a coroutine.
///
/// In the body of an ``async with`` the loss of the first of them cancels the body's task, as with :class:`AsyncHold`.
#[pyclass(module = "locktender", extends = TaskHold, frozen, weakref)]
pub(crate) struct AsyncMultiHold {
    hold: Arc<HoldInner>,
}

impl AsyncMultiHold {
    pub(crate) fn new(py: Python<'_>, held: locktender::Hold, origin: Origin) -> PyResult<Py<Self>> {
        let hold = HoldInner::new(py, Core::Several(held), origin.on_lost)?;
        Py::new(py, TaskHold::of(&hold, origin.client).add_subclass(Self { hold }))
    }
}

#[pymethods]
impl AsyncMultiHold {
    /// The locks' names, in the order in which they were given.
    #[getter]
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.hold.core.names())
    }

    /// The fencing token of each name. See :attr:`MultiHold.fences`.
    #[getter]
    fn fences<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.hold.core.fences().into_py_dict(py)
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        missing_of_several(slf, name)
    }
}
