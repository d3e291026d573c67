//! The body of an `async with`: a task that runs while the lock may be lost.
//!
//! By default the loss cancels the task, and the exit turns exactly that cancellation into the loss. A cancellation from elsewhere
//! passes through as itself.

use std::sync::Arc;

use locktender::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::bridge::{Drain, drain_of};
use crate::context;
use crate::guarded::Guarded;
use crate::hold_inner::HoldInner;

/// One open body.
#[pyclass(module = "locktender._native", name = "_Body", frozen)]
pub(crate) struct Body {
    hold: Arc<HoldInner>,
    task: Py<PyAny>,
    /// How many cancellations the task had been asked for when the body began.
    cancelling: i64,
    /// What the loop calls when the lock is lost, and where.
    number: u64,
    drain: Py<PyWeakrefReference>,
    /// The loss for which the task was cancelled.
    loss: Guarded<Option<Error>>,
}

/// How a body ended.
pub(crate) enum End {
    /// By itself, by an error of its own, or by a cancellation from elsewhere.
    OfItsOwn,
    /// By the cancellation for this loss.
    Lost(Error),
    /// By itself or by an error, after it was cancelled for a loss. That may still arrive, unless it was another's (`ours`).
    Cancelled { ours: bool },
}

impl Body {
    /// The body of the current task: a loss of `hold` will cancel it.
    pub(crate) fn begin(py: Python<'_>, hold: &Arc<HoldInner>) -> PyResult<Py<Self>> {
        let no_task = || PyRuntimeError::new_err("the body of an `async with` runs in a task of asyncio");
        let event_loop = context::running_loop(py)?.ok_or_else(no_task)?;
        let task = context::task(py)?.ok_or_else(no_task)?;
        let drain = drain_of(&event_loop)?;
        let (number, signal) = drain.get().signal();
        let (cancelling, task) = (cancellations(&task, intern!(py, "cancelling"))?, task.unbind());
        let weak = PyWeakrefReference::new(&drain)?.unbind();
        let (of, loss) = (Arc::clone(hold), Guarded::default());
        let body = Py::new(py, Self { hold: of, task, cancelling, number, drain: weak, loss })?;
        drain.get().expect_callback(number, body.clone_ref(py).into_any());
        hold.core.on_lost(move |_| signal.raise());
        Ok(body)
    }

    /// Has a loss cancel its task no more. Needs no running loop.
    pub(crate) fn forget(&self, py: Python<'_>) {
        if let Some(drain) = self.drain.bind(py).upgrade().and_then(|drain| drain.cast_into::<Drain>().ok()) {
            drain.get().forget(self.number);
        }
    }

    /// Ends it, with the error it may have raised: from here on a loss doesn't cancel its task any more.
    pub(crate) fn end(&self, py: Python<'_>, error: Option<&Bound<'_, PyAny>>) -> PyResult<End> {
        self.forget(py);
        let Some(loss) = self.loss.take() else { return Ok(End::OfItsOwn) };
        let ours = cancellations(self.task.bind(py), intern!(py, "uncancel"))? <= self.cancelling;
        let is_cancellation = error.is_some_and(|error| context::is_cancellation(error));
        Ok(match (is_cancellation, ours) {
            (true, true) => End::Lost(loss),
            (true, false) => End::OfItsOwn,
            (false, ours) => End::Cancelled { ours },
        })
    }
}

/// Asks the task. Before Python 3.11 tasks don't count: any cancellation of a task whose lock was just lost counts as ours.
fn cancellations(task: &Bound<'_, PyAny>, method: &Bound<'_, pyo3::types::PyString>) -> PyResult<i64> {
    task.getattr_opt(method)?.map_or(Ok(0), |method| method.call0()?.extract())
}

#[pymethods]
impl Body {
    /// The lock is lost. Runs on the loop, between two steps of the task.
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let Err(loss) = self.hold.core.check() else { return Ok(()) };
        drop(self.loss.replace(Some(loss)));
        self.task.call_method0(py, intern!(py, "cancel")).map(drop)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.task)
    }
}
