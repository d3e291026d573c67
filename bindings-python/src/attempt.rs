//! `Attempt` and `AsyncAttempt`: one run of a job's work, for code that blocks and for code under asyncio.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::arguments::{refuse, seconds, switch};
use crate::async_hold::AsyncHold;
use crate::hold::Hold;
use crate::hold_inner::{Core, HoldInner, Origin, said};
use crate::operation::Operation;
use crate::{own, waiting};

/// The result of a job's work as JSON text; `None` is no result.
fn encoded(py: Python<'_>, result: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    own::call(py, "_job", "encoded", (result,))?.extract()
}

impl HoldInner {
    fn attempt(&self) -> PyResult<&locktender::Attempt> {
        match &self.core {
            Core::Attempt(attempt) => Ok(attempt),
            Core::Lock(_) | Core::Several(_) | Core::Leadership(_) => {
                Err(pyo3::exceptions::PyTypeError::new_err("this hold is no attempt"))
            }
        }
    }

    fn fail(
        &self,
        error: &Bound<'_, PyAny>,
        retry_in: Option<&Bound<'_, PyAny>>,
        retry: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<locktender::Call<()>> {
        let retry = retry.map_or(Ok(true), |retry| switch("retry", retry))?;
        let (attempt, error) = (self.attempt()?, said(error)?);
        match (retry_in, retry) {
            (Some(retry_in), true) => Ok(attempt.fail_in(error, seconds("retry_in", retry_in)?)),
            (None, true) => Ok(attempt.fail(error)),
            (None, false) => Ok(attempt.fail_permanently(error)),
            (Some(retry_in), false) => Err(refuse("retry_in", retry_in, "there is no other attempt with retry=False")),
        }
    }
}

/// One attempt at a job: a :class:`Hold`, with its number. Made by :meth:`Job.begin`.
///
/// :meth:`complete` and :meth:`fail` record how it ended. :meth:`release` ends it as if it had never begun: it doesn't count,
/// and another worker may begin at once, unless the lease was lost before (``expired``, ``taken``).
///
/// ``with`` ends it, unless that was done: a body that raises has failed, and any other releases it, so that it doesn't count.
///
///     if attempt := client.job("mail:7").begin():
///         with attempt:
///             attempt.complete({"sent": 3})
#[pyclass(module = "locktender", extends = Hold, frozen, weakref)]
pub(crate) struct Attempt {
    hold: Arc<HoldInner>,
}

impl Attempt {
    pub(crate) fn new(py: Python<'_>, attempt: locktender::Attempt, origin: Origin) -> PyResult<Py<Self>> {
        let hold = HoldInner::new(py, Core::Attempt(attempt), origin.on_lost)?;
        Py::new(py, Hold::of(Arc::clone(&hold), origin.client).add_subclass(Self { hold }))
    }
}

#[pymethods]
impl Attempt {
    /// The number of this attempt; the first is 1.
    #[getter]
    fn number(&self) -> PyResult<u32> {
        self.hold.attempt().map(locktender::Attempt::number)
    }

    /// How many attempts may begin.
    #[getter]
    fn max_attempts(&self) -> PyResult<u32> {
        self.hold.attempt().map(locktender::Attempt::max_attempts)
    }

    /// Whether the job is dead if this attempt fails.
    #[getter]
    fn is_last(&self) -> PyResult<bool> {
        self.hold.attempt().map(locktender::Attempt::is_last)
    }

    /// Notes that the job is done, with its result, and releases the lock. No other attempt begins. It also succeeds just after the
    /// lease was lost, if no other attempt has begun since.
    ///
    ///     attempt.complete({"sent": 3})
    ///
    /// ``result`` is anything that JSON can express, of at most 64 KiB; ``None`` is no result. Raises :exc:`LockLostError` if another
    /// attempt has begun or ended since, :exc:`NotHeldError` if this one has ended before, :exc:`InvalidArgumentError` for a result
    /// that can't be kept (the attempt continues), :exc:`UnavailableError` if the outcome stays unknown: call it again to learn it.
    #[pyo3(signature = (result=None))]
    fn complete(&self, py: Python<'_>, result: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self._complete(py, encoded(py, result)?)
    }

    /// [`Self::complete`], of a result that is JSON text already.
    fn _complete(&self, py: Python<'_>, result: Option<String>) -> PyResult<()> {
        waiting::block(py, self.hold.attempt()?.complete(result))
    }

    /// Notes that this attempt failed, and releases the lock. After the job's ``retry_delay``, or ``retry_in`` seconds, another
    /// attempt may begin; if this was the last one, the job is dead. With ``retry=False`` it is dead in any case: for a failure that no
    /// other attempt can help.
    ///
    ///     attempt.fail("the mail server is down", retry_in=60)
    ///
    /// ``error`` is an exception or a text, of which the first 1,024 bytes are kept. Raises what :meth:`complete` raises.
    #[pyo3(signature = (error, *, retry_in=None, retry=None), text_signature = "($self, error, *, retry_in=None, retry=True)")]
    fn fail(
        &self,
        py: Python<'_>,
        error: &Bound<'_, PyAny>,
        retry_in: Option<&Bound<'_, PyAny>>,
        retry: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        waiting::block(py, self.hold.fail(error, retry_in, retry)?)
    }
}

/// One attempt at a job, under asyncio. As :class:`Attempt`; what waits is a coroutine.
///
/// In the body of an ``async with`` a loss cancels the body's task, as with :class:`AsyncHold`.
#[pyclass(module = "locktender", extends = AsyncHold, frozen, weakref)]
pub(crate) struct AsyncAttempt {
    hold: Arc<HoldInner>,
}

impl AsyncAttempt {
    pub(crate) fn new(py: Python<'_>, attempt: locktender::Attempt, origin: Origin) -> PyResult<Py<Self>> {
        let hold = HoldInner::new(py, Core::Attempt(attempt), origin.on_lost)?;
        Py::new(py, AsyncHold::of(Arc::clone(&hold), origin.client).add_subclass(Self { hold }))
    }
}

#[pymethods]
impl AsyncAttempt {
    /// The number of this attempt; the first is 1.
    #[getter]
    fn number(&self) -> PyResult<u32> {
        self.hold.attempt().map(locktender::Attempt::number)
    }

    /// How many attempts may begin.
    #[getter]
    fn max_attempts(&self) -> PyResult<u32> {
        self.hold.attempt().map(locktender::Attempt::max_attempts)
    }

    /// Whether the job is dead if this attempt fails.
    #[getter]
    fn is_last(&self) -> PyResult<bool> {
        self.hold.attempt().map(locktender::Attempt::is_last)
    }

    /// Notes that the job is done. See :meth:`Attempt.complete`.
    #[pyo3(signature = (result=None))]
    fn complete(slf: &Bound<'_, Self>, result: Option<&Bound<'_, PyAny>>) -> PyResult<Operation> {
        Ok(Self::_complete(slf, encoded(slf.py(), result)?))
    }

    /// [`Self::complete`], of a result that is JSON text already.
    fn _complete(slf: &Bound<'_, Self>, result: Option<String>) -> Operation {
        let call = move |attempt: &Bound<'_, Self>| Ok(attempt.get().hold.attempt()?.complete(result));
        Operation::of(slf, "complete", call, |attempt, ()| Ok(attempt.py().None()))
    }

    /// Notes that this attempt failed. See :meth:`Attempt.fail`.
    #[pyo3(signature = (error, *, retry_in=None, retry=None), text_signature = "($self, error, *, retry_in=None, retry=True)")]
    fn fail(
        slf: &Bound<'_, Self>,
        error: &Bound<'_, PyAny>,
        retry_in: Option<&Bound<'_, PyAny>>,
        retry: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Operation> {
        let call = slf.get().hold.fail(error, retry_in, retry)?;
        Ok(Operation::of(slf, "fail", move |_| Ok(call), |attempt, ()| Ok(attempt.py().None())))
    }
}
