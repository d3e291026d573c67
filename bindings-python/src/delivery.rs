//! The delivery of events: what the daemon thread of `_events.py` is given.

use pyo3::prelude::*;

use crate::errors::parts;
use crate::values::Event;
use crate::{clients, events, losses};

/// An event and the callback of its client, or what makes the error of a loss, and its callable.
type Delivery = (Option<Py<PyAny>>, Py<PyAny>);

/// Waits for events; `None` once the interpreter ends and all were given.
#[pyfunction(name = "_next_events")]
pub(crate) fn next_events(py: Python<'_>) -> PyResult<Option<Vec<Delivery>>> {
    let Some((lost, happened)) = events::next_batch(py) else { return Ok(None) };
    let lost = lost.into_iter().map(|(number, error)| Ok((losses::take(number), parts(py, &error)?)));
    let event = |(number, event, at)| Ok((clients::callback(py, number), Py::new(py, Event::new(event, at))?.into_any()));
    lost.chain(happened.into_iter().map(event)).collect::<PyResult<_>>().map(Some)
}
