//! One awaitable operation: a coroutine to asyncio, a [`Call`] to the core.
//!
//! It starts when it is first awaited. Whatever ends the waiting early (a cancelled task, a closed loop, a dropped coroutine)
//! cancels the call, and a result that nobody takes is dropped, which gives a granted lock back.

use std::sync::Arc;

use locktender::host::Process;
use locktender::{Call, Cancel, Error};
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyType, PyWeakrefMethods, PyWeakrefReference};

use crate::bridge::{Drain, Signal, drain_of};
use crate::context;
use crate::errors::raised;
use crate::exit::Visit;
use crate::guarded::Guarded;

/// Makes the result for Python, if there is one yet.
type Take = Box<dyn FnMut(Python<'_>) -> Option<PyResult<Py<PyAny>>> + Send>;

type Start = Box<dyn FnOnce(&Bound<'_, PyAny>, &Bound<'_, Drain>, Signal) -> PyResult<(Cancel, Take)> + Send>;

enum State {
    New(Start),
    Waiting(Waiting),
    Done,
}

struct Waiting {
    /// Not kept alive: it is the loop's, and what it has to settle leads back here.
    drain: Py<PyWeakrefReference>,
    number: u64,
    cancel: Cancel,
    take: Take,
}

/// The coroutine.
#[pyclass(module = "locktender._native", frozen, weakref)]
pub(crate) struct Operation {
    name: &'static str,
    of: Process,
    state: Guarded<State>,
}

impl Operation {
    /// The operation that `call` makes, its result converted by `convert`. `name` is the method's, for whoever forgets to await.
    pub(crate) fn new<T: Send + 'static>(
        name: &'static str,
        call: impl FnOnce(Python<'_>) -> PyResult<Call<T>> + Send + 'static,
        convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let start = move |event_loop: &Bound<'_, PyAny>, drain: &Bound<'_, Drain>, signal: Signal| {
            send_off(event_loop, drain, call(event_loop.py())?, signal, convert)
        };
        Self { name, of: Process::current(), state: Guarded::new(State::New(Box::new(start))) }
    }

    /// An operation that has nothing to wait for.
    pub(crate) fn ready(name: &'static str, make: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static) -> Self {
        let start = move |_: &Bound<'_, PyAny>, _: &Bound<'_, Drain>, _: Signal| {
            let mut make = Some(make);
            let take: Take = Box::new(move |py| make.take().map(|make| make(py)));
            Ok((Cancel::default(), take))
        };
        Self { name, of: Process::current(), state: Guarded::new(State::New(Box::new(start))) }
    }

    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let visit = Visit::begin(py)?;
        let state = self.state.replace(State::Done);
        match state {
            State::New(start) => self.start(py, start, visit),
            State::Waiting(waiting) => self.look(py, waiting),
            State::Done => Err(PyRuntimeError::new_err("cannot reuse already awaited coroutine")),
        }
    }

    fn start(&self, py: Python<'_>, start: Start, visit: Visit) -> PyResult<Py<PyAny>> {
        let no_loop = || PyRuntimeError::new_err("no running event loop");
        let event_loop = context::running_loop(py)?.ok_or_else(no_loop)?;
        let drain = drain_of(&event_loop)?;
        let (number, signal) = drain.get().signal();
        let (cancel, mut take) = start(&event_loop, &drain, signal)?;
        // The exit may have begun in any of these calls. From here on the signal keeps quiet about the closed client.
        let _visit = visit.go_on(py)?;
        if let Some(result) = take(py) {
            return Err(returned(result));
        }
        let reference = PyWeakrefReference::new(&drain)?.unbind();
        let waiting = Waiting { drain: reference, number, cancel, take };
        self.suspend(&event_loop, drain.get(), waiting)
    }

    /// Gives the task a future to wait for.
    fn suspend(&self, event_loop: &Bound<'_, PyAny>, drain: &Drain, waiting: Waiting) -> PyResult<Py<PyAny>> {
        let py = event_loop.py();
        let future = event_loop.call_method0(intern!(py, "create_future"))?;
        // What `await` does to a future: it tells the task that this is meant.
        future.setattr(intern!(py, "_asyncio_future_blocking"), true)?;
        drain.expect_future(waiting.number, future.clone().unbind());
        drop(self.state.replace(State::Waiting(waiting)));
        Ok(future.unbind())
    }

    fn look(&self, py: Python<'_>, mut waiting: Waiting) -> PyResult<Py<PyAny>> {
        match (waiting.take)(py) {
            Some(result) => Err(returned(result)),
            None => {
                waiting.give_up();
                Err(PyRuntimeError::new_err(format!("{}() was resumed by something that isn't its result", self.name)))
            }
        }
    }

    fn end(&self) {
        let state = self.state.replace(State::Done);
        if let State::Waiting(waiting) = state {
            waiting.give_up();
        }
    }
}

/// Starts `call`. Whichever thread ends it leaves the result in a slot and raises the signal; the loop's thread takes it.
fn send_off<T: Send + 'static>(
    event_loop: &Bound<'_, PyAny>,
    drain: &Bound<'_, Drain>,
    call: Call<T>,
    signal: Signal,
    convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<(Cancel, Take)> {
    let slot: Arc<Guarded<Option<Result<T, Error>>>> = Arc::default();
    let filled = Arc::clone(&slot);
    let cancel = Drain::start(drain, event_loop, call, move |result| {
        drop(filled.replace(Some(result)));
        signal.raise();
    })?;
    let mut convert = Some(convert);
    let take = move |py: Python<'_>| {
        let result = slot.take()?;
        let convert = convert.take()?;
        Some(raised(py, result).and_then(|value| convert(py, value)))
    };
    Ok((cancel, Box::new(take)))
}

impl Waiting {
    fn give_up(self) {
        let _ = Python::try_attach(|py| {
            if let Some(drain) = self.drain.bind(py).upgrade().and_then(|drain| drain.cast_into::<Drain>().ok()) {
                drain.get().forget(self.number);
            }
        });
        self.cancel.cancel();
    }
}

/// How a coroutine returns.
fn returned(result: PyResult<Py<PyAny>>) -> PyErr {
    result.map_or_else(|error| error, |value| PyStopIteration::new_err((value,)))
}

#[pymethods]
impl Operation {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.step(py)
    }

    fn send(&self, py: Python<'_>, _value: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        self.step(py)
    }

    #[pyo3(signature = (error, value=None, _traceback=None))]
    fn throw(
        &self,
        error: Bound<'_, PyAny>,
        value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.end();
        let given = value.filter(|value| !value.is_none());
        Err(PyErr::from_value(match error.cast::<PyType>() {
            Ok(class) => given.map_or_else(|| class.call0(), Ok)?,
            Err(_) => error,
        }))
    }

    fn close(&self) {
        self.end();
    }

    fn __repr__(&self) -> String {
        format!("<coroutine {}>", self.name)
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        self.name
    }

    #[getter]
    fn __qualname__(&self) -> &'static str {
        self.name
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        let state = std::mem::replace(self.state.get_mut(), State::Done);
        if !self.of.is_current() {
            // The parent's: its locks may have been copied while taken.
            return std::mem::forget(state);
        }
        match state {
            State::New(_) => crate::held::warn::<PyRuntimeWarning>(&format!("coroutine {:?} was never awaited", self.name)),
            State::Waiting(waiting) => waiting.give_up(),
            State::Done => (),
        }
    }
}
