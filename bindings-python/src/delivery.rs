//! The delivery of events: what the daemon thread of `_events.py` is given.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;

use crate::errors::parts;
use crate::events::{Answer, Followed};
use crate::values::Event;
use crate::{clients, events, losses, traces};

/// What is to be called, and with what: the callback of a client with an event, a callable with what makes the error of a loss, who
/// follows acquires with what is told of one.
type Delivery = (Option<Py<PyAny>>, Py<PyAny>);

/// What is told of an acquire that is followed: an event, or the caller's answer.
#[pyclass(module = "locktender._native", name = "_Told", frozen, get_all)]
pub(crate) struct Told {
    /// The acquire's number.
    number: u64,
    /// The event.
    event: Option<Py<Event>>,
    /// The number of the event's client.
    client: u64,
    /// Whether the core has begun the acquire whose caller got an answer.
    begun: bool,
    /// The code and the text of the error that the caller got.
    failure: Option<(String, String)>,
    /// Whether the caller went before the acquire had ended.
    left: bool,
    /// When it got its answer: seconds since 1970.
    at: f64,
}

impl Told {
    fn new(py: Python<'_>, followed: Followed) -> PyResult<Self> {
        let nothing = Self { number: 0, event: None, client: 0, begun: true, failure: None, left: false, at: 0.0 };
        Ok(match followed {
            Followed::Event(client, event, at) => {
                Self { number: event.trace(), event: Some(Py::new(py, Event::new(*event, at))?), client, ..nothing }
            }
            Followed::Answer(Answer { number, begun, failure, left, at }) => {
                Self { number, begun, failure, left, at: seconds(at), ..nothing }
            }
        })
    }
}

fn seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[pymethods]
impl Told {
    /// The name of the application of the event's client.
    #[getter]
    fn app(&self) -> String {
        let metrics = clients::core(self.client).map(|client| client.metrics());
        let samples = metrics.iter().flat_map(|metrics| metrics.iter()).flat_map(|metric| &metric.samples);
        let mut labels = samples.flat_map(|sample| &sample.labels).filter(|(label, _)| *label == "app");
        labels.next().map_or_else(String::new, |(_, app)| app.clone())
    }
}

/// Waits for events.
#[pyfunction(name = "_next_events")]
pub(crate) fn next_events(py: Python<'_>) -> PyResult<Vec<Delivery>> {
    let (lost, happened, followed) = events::next_batch(py);
    let lost = lost.into_iter().map(|(number, error)| Ok((losses::take(number), parts(py, &error)?)));
    let event = |(number, event, at)| Ok((clients::callback(py, number), Py::new(py, Event::new(event, at))?.into_any()));
    let follower = traces::follower(py);
    let told =
        |told| Ok((follower.as_ref().map(|follower| follower.clone_ref(py)), Py::new(py, Told::new(py, told)?)?.into_any()));
    let followed = followed.into_iter().map(told);
    lost.chain(happened.into_iter().map(event)).chain(followed).collect()
}
