//! Values of jobs: the outcome and the status, whose results are JSON.

use std::time::SystemTime;

use locktender::NotRunReason;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::seconds_left;
use crate::members::missing;
use crate::own;
use crate::seconds::in_seconds;
use crate::values::value;

value! {
    /// The outcome of a job.
    #[pyclass(module = "locktender", frozen, get_all)]
    pub(crate) struct JobOutcome {
        /// Whether this call ran the work, which is done.
        ran: bool,
        /// Why this call did not run the work; ``None`` if it did. ``done``: it was done before, or by another worker meanwhile. Of a job
        /// that runs once per scheduled time also ``dead``: its last attempt failed or died; ``running``: a worker runs it, or still
        /// the work of an earlier scheduled time; ``missed``: a later scheduled time has begun; ``too_late``: the scheduled time is
        /// longer ago than ``max_lateness``.
        reason: Option<&'static str>,
        /// What the work returned, in this call or in an earlier one, as JSON has it; ``None`` if that was nothing.
        result: Py<PyAny>,
        /// How many attempts there were, of a job that is done or dead; else 0.
        attempts: u32,
        /// What the last attempt said, of a job that is dead.
        last_error: Option<String>,
    }

    /// That of an attempt that is done, as everybody else gets it, too.
    #[staticmethod]
    fn _ran(py: Python<'_>, text: Option<String>, attempts: u32) -> PyResult<Self> {
        Ok(Self { ran: true, reason: None, result: result(py, text)?, attempts, last_error: None })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.result)
    }
}

impl JobOutcome {
    pub(crate) fn new(py: Python<'_>, outcome: locktender::JobOutcome) -> PyResult<Self> {
        let result = result(py, outcome.result)?;
        let locktender::JobOutcome { ran, reason, attempts, last_error, .. } = outcome;
        Ok(Self { ran, reason: reason.map(NotRunReason::as_str), result, attempts, last_error })
    }
}

value! {
    /// What is known of a job.
    #[pyclass(module = "locktender", frozen, get_all)]
    pub(crate) struct JobStatus {
        /// ``new``: no attempt has begun; ``running``; ``retrying``: an attempt failed or its worker died, and another one may begin;
        /// ``done``; ``dead``: the last attempt failed, or its worker died.
        state: &'static str,
        /// How many attempts have begun.
        attempts: u32,
        /// How many may begin; ``None`` before the first one.
        max_attempts: Option<u32>,
        /// The owner value of the last attempt: a person can read in it which worker that was.
        last_owner: Option<String>,
        /// How many seconds ago the last attempt began, by the server's clock.
        began_ago: Option<f64>,
        /// How many seconds the lease of a running attempt remains if nothing renews it; 0 if none runs.
        remaining: f64,
        /// In how many seconds the next attempt may begin, while the job is retrying.
        retry_in: Option<f64>,
        /// What the last attempt that failed said.
        last_error: Option<String>,
        /// What the work returned, as JSON has it; ``None`` if that was nothing, or the job isn't done.
        result: Py<PyAny>,
        /// The latest scheduled time that has begun, in UTC, of a job that runs once per scheduled time.
        scheduled_time: Option<SystemTime>,
        /// When the work was done last, in UTC, by the server's clock. A job that runs once per scheduled time keeps it while later
        /// runs fail.
        last_done: Option<SystemTime>,
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.result)
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        missing(slf, name)
    }
}

impl JobStatus {
    pub(crate) fn new(py: Python<'_>, status: locktender::JobStatus) -> PyResult<Self> {
        let result = result(py, status.result)?;
        Ok(Self {
            state: status.state.as_str(),
            attempts: status.attempts,
            max_attempts: status.max_attempts,
            last_owner: status.last_owner,
            began_ago: status.began_ago.map(in_seconds),
            remaining: seconds_left(status.remaining),
            retry_in: status.retry_in.map(in_seconds),
            last_error: status.last_error,
            result,
            scheduled_time: status.scheduled_time,
            last_done: status.last_done,
        })
    }
}

/// The value of a result's JSON text.
fn result(py: Python<'_>, text: Option<String>) -> PyResult<Py<PyAny>> {
    text.map_or_else(|| Ok(py.None()), |text| Ok(own::call(py, "_job", "decoded", (text,))?.unbind()))
}
