//! `Leadership` and `AsyncLeadership`: one term of a leader, for code that blocks and for code under asyncio.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::async_hold::{AsyncHold, TaskHold};
use crate::hold::Hold;
use crate::hold_inner::{Core, HoldInner, Origin};
use crate::operation::Operation;
use crate::values::Release;
use crate::waiting;

impl HoldInner {
    fn leadership(&self) -> PyResult<&locktender::Leadership> {
        match &self.core {
            Core::Leadership(leadership) => Ok(leadership),
            Core::Lock(_) | Core::Several(_) | Core::Attempt(_) => Err(PyTypeError::new_err("this hold is no leadership")),
        }
    }
}

/// One term of a leader: a :class:`Hold` with a number that only rises. Made by :meth:`Election.campaign`.
///
///     with client.election("scheduler").campaign() as leadership:
///         write(row, fence=leadership.term)
#[pyclass(module = "locktender", extends = Hold, frozen, weakref)]
pub(crate) struct Leadership {
    hold: Arc<HoldInner>,
}

impl Leadership {
    pub(crate) fn new(py: Python<'_>, leadership: locktender::Leadership, origin: Origin) -> PyResult<Py<Self>> {
        let hold = HoldInner::new(py, Core::Leadership(leadership), origin.on_lost)?;
        Py::new(py, Hold::of(Arc::clone(&hold), origin.client).add_subclass(Self { hold }))
    }
}

#[pymethods]
impl Leadership {
    /// The term: the fence, larger than every earlier leader's. Send it with all that the leader does, and let the receiver refuse a
    /// smaller one: a leader may be late.
    #[getter]
    fn term(&self) -> u64 {
        self.hold.core.fence()
    }

    /// Whether :meth:`Election.stop` was called, so that the work should return soon. The term continues until then.
    #[getter]
    fn stopping(&self) -> PyResult<bool> {
        self.hold.leadership().map(locktender::Leadership::is_stopping)
    }

    /// Ends the term, and notifies the next candidate: :meth:`Hold.release`.
    ///
    ///     leadership.resign()
    ///
    /// Raises what :meth:`Hold.release` raises.
    fn resign(&self, py: Python<'_>) -> PyResult<Release> {
        waiting::block(py, self.hold.core.release()).map(Release::from)
    }
}

/// One term of a leader, under asyncio. As :class:`Leadership`; what waits is a coroutine.
///
/// In the body of an ``async with`` a loss cancels the body's task, as with :class:`AsyncHold`.
#[pyclass(module = "locktender", extends = AsyncHold, frozen, weakref)]
pub(crate) struct AsyncLeadership {
    hold: Arc<HoldInner>,
}

impl AsyncLeadership {
    pub(crate) fn new(py: Python<'_>, leadership: locktender::Leadership, origin: Origin) -> PyResult<Py<Self>> {
        let hold = HoldInner::new(py, Core::Leadership(leadership), origin.on_lost)?;
        Py::new(py, AsyncHold::of(Arc::clone(&hold), origin.client).add_subclass(Self { hold }))
    }
}

#[pymethods]
impl AsyncLeadership {
    /// The term: the fence, larger than every earlier leader's. See :attr:`Leadership.term`.
    #[getter]
    fn term(&self) -> u64 {
        self.hold.core.fence()
    }

    /// Whether :meth:`Election.stop` was called. See :attr:`Leadership.stopping`.
    #[getter]
    fn stopping(&self) -> PyResult<bool> {
        self.hold.leadership().map(locktender::Leadership::is_stopping)
    }

    /// Ends the term, and notifies the next candidate. See :meth:`Leadership.resign`.
    fn resign(slf: &Bound<'_, Self>) -> Operation {
        TaskHold::release(slf.as_super().as_super())
    }

    fn _is_loss(&self, error: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.hold.is_loss(error)
    }
}
