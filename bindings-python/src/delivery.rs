//! The delivery of events: what the daemon thread of `_events.py` is given.

use locktender::host::{self, AttributeValue};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::parts;
use crate::seconds::measured;
use crate::values::LockEvent;
use crate::{clients, events, losses, traces};

/// What is to be called, and with what: the callback of a client with an event, a callable with what makes the error of a loss, the
/// instrumentation with a record.
type Delivery = (Option<Py<PyAny>>, Py<PyAny>);

/// What is to be recorded of an acquire that is followed.
#[pyclass(module = "locktender._native", name = "_Record", frozen, get_all)]
pub(crate) struct Record {
    /// The acquire's number.
    number: u64,
    /// The number of its client, if it had an event.
    client: Option<u64>,
    /// A value of a histogram: its name, the seconds, and attributes.
    time: Option<(&'static str, f64, Py<PyDict>)>,
    /// A span that has ended: its name, begin and end in nanoseconds since 1970, attributes, the error, and the event at its end.
    span: Option<Span>,
    /// Whether no record of this acquire comes any more.
    is_last: bool,
}

/// See [`Record::span`].
type Span = (&'static str, u128, u128, Py<PyDict>, Option<String>, Option<(&'static str, Py<PyDict>)>);

impl Record {
    fn new(py: Python<'_>, record: host::Record) -> PyResult<Self> {
        let time = record.time.map(|(name, took, labels)| Ok::<_, PyErr>((name, measured(took), attributes(py, labels)?)));
        let span = |span: host::Span| {
            let event = span.event.map(|(name, found)| Ok::<_, PyErr>((name, attributes(py, found)?))).transpose()?;
            let (begun, ended) = (span.begun.as_nanos(), span.ended.as_nanos());
            Ok::<_, PyErr>((span.name, begun, ended, attributes(py, span.attributes)?, span.error, event))
        };
        let (number, client, is_last) = (record.number, record.client, record.is_last);
        Ok(Self { number, client, time: time.transpose()?, span: record.span.map(span).transpose()?, is_last })
    }
}

fn attributes(py: Python<'_>, attributes: host::Attributes) -> PyResult<Py<PyDict>> {
    let made = PyDict::new(py);
    for (name, value) in attributes {
        match value {
            AttributeValue::Text(text) => made.set_item(name, text)?,
            AttributeValue::Whole(number) => made.set_item(name, number)?,
            AttributeValue::Time(time) => made.set_item(name, measured(time))?,
        }
    }
    Ok(made.unbind())
}

/// Waits for events.
#[pyfunction(name = "_next_events")]
pub(crate) fn next_events(py: Python<'_>) -> PyResult<Vec<Delivery>> {
    let (lost, happened, records) = events::next_batch(py);
    let lost = lost.into_iter().map(|(number, error)| Ok((losses::take(number), parts(py, &error)?)));
    let event = |(number, event, at)| Ok((clients::callback(py, number), Py::new(py, LockEvent::new(event, at))?.into_any()));
    let follower = traces::follower(py);
    let record = |record| {
        let follower = follower.as_ref().map(|follower| follower.clone_ref(py));
        Ok((follower, Py::new(py, Record::new(py, record)?)?.into_any()))
    };
    lost.chain(happened.into_iter().map(event)).chain(records.into_iter().map(record)).collect()
}
