//! One awaitable operation: a coroutine to asyncio, a [`Call`] to the core.
//!
//! It starts when it is first awaited. Whatever ends the waiting early (a cancelled task, a closed loop, a dropped coroutine)
//! cancels the call, and a result that nobody takes is dropped, which gives a granted lock back.

use std::sync::Arc;

use locktender::host::Process;
use locktender::{Call, Cancel, Error};
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyStopIteration, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType, PyWeakrefMethods, PyWeakrefReference};
use pyo3::{IntoPyObjectExt, PyClass, intern};

use crate::bridge::{Drain, Signal, drain_of};
use crate::errors::raised;
use crate::garbage::{Farewell, warn};
use crate::guarded::Guarded;
use crate::members::absent;
use crate::traces::Trace;
use crate::visit::Visit;
use crate::{context, credentials};

/// Makes the result for Python, if there is one yet.
type Take = Box<dyn FnMut(Python<'_>) -> Option<PyResult<Py<PyAny>>> + Send>;

type Start = Box<dyn FnOnce(&Bound<'_, PyAny>, &Bound<'_, Drain>, Signal) -> PyResult<(Cancel, Take)> + Send>;

type Make = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// The error of the body that the operation ends: the garbage collector visits it.
type Kept = Arc<Guarded<Option<Py<PyAny>>>>;

enum State {
    /// There is nothing to wait for.
    Ready(Make),
    New(Start),
    /// It lets the loop have a turn, in which a cancellation that is `ours` is swallowed.
    Turn {
        start: Start,
        begun: bool,
        ours: bool,
    },
    Waiting(Waiting),
    Done,
}

struct Waiting {
    /// Not kept alive: it is the loop's, and what it has to settle leads back here.
    drain: Py<PyWeakrefReference>,
    number: u64,
    cancel: Cancel,
    take: Take,
    trace: Option<Trace>,
}

/// The coroutine.
#[pyclass(module = "locktender._native", frozen, weakref)]
pub(crate) struct Operation {
    name: &'static str,
    /// Whether it acquires: an instrumentation may follow it.
    acquires: bool,
    of: Process,
    state: Guarded<State>,
    error: Kept,
    farewell: Farewell,
}

impl Operation {
    /// The operation that `call` makes, its result converted by `convert`. `name` is the method's, for a missing await.
    pub(crate) fn new<T: Send + 'static, R: for<'py> IntoPyObject<'py>>(
        name: &'static str,
        call: impl FnOnce(Python<'_>) -> PyResult<Call<T>> + Send + 'static,
        convert: impl FnOnce(Python<'_>, T) -> PyResult<R> + Send + 'static,
    ) -> Self {
        let convert = |py: Python<'_>, result| convert(py, raised(py, result)?)?.into_py_any(py);
        Self::starting(name, call, convert, Kept::default())
    }

    /// An operation of `object`, which lives at least as long as it.
    pub(crate) fn of<O: PyClass, T: Send + 'static, R: for<'py> IntoPyObject<'py>>(
        object: &Bound<'_, O>,
        name: &'static str,
        call: impl FnOnce(&Bound<'_, O>) -> PyResult<Call<T>> + Send + 'static,
        convert: impl FnOnce(&Bound<'_, O>, T) -> PyResult<R> + Send + 'static,
    ) -> Self {
        let (object, kept) = (object.clone().unbind(), object.clone().unbind());
        Self::new(name, move |py| call(object.bind(py)), move |py, value| convert(kept.bind(py), value))
    }

    /// The operation that ends a body: `end` is given what came of it and the body's error.
    pub(crate) fn ending(
        name: &'static str,
        call: impl FnOnce(Python<'_>) -> PyResult<Call<()>> + Send + 'static,
        error: Option<Bound<'_, PyAny>>,
        end: impl FnOnce(Python<'_>, PyResult<()>, Option<Bound<'_, PyAny>>) -> PyResult<()> + Send + 'static,
    ) -> Self {
        let kept: Kept = Arc::new(Guarded::new(error.map(Bound::unbind)));
        let error = Arc::clone(&kept);
        let convert = move |py: Python<'_>, result: Result<(), Error>| {
            let error = error.take().map(|error| error.into_bound(py));
            end(py, raised(py, result), error).map(|()| py.None())
        };
        Self::starting(name, call, convert, kept)
    }

    /// An operation that has nothing to wait for.
    pub(crate) fn ready(name: &'static str, make: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static) -> Self {
        Self::in_state(name, State::Ready(Box::new(make)), Kept::default())
    }

    fn starting<T: Send + 'static>(
        name: &'static str,
        call: impl FnOnce(Python<'_>) -> PyResult<Call<T>> + Send + 'static,
        convert: impl FnOnce(Python<'_>, Result<T, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
        error: Kept,
    ) -> Self {
        let start = move |event_loop: &Bound<'_, PyAny>, drain: &Bound<'_, Drain>, signal: Signal| {
            send_off(event_loop, drain, call(event_loop.py())?, signal, convert)
        };
        Self::in_state(name, State::New(Box::new(start)), error)
    }

    fn in_state(name: &'static str, state: State, error: Kept) -> Self {
        Self { name, acquires: false, of: Process::current(), state: Guarded::new(state), error, farewell: Farewell::default() }
    }

    /// The same operation, as one that acquires.
    pub(crate) fn acquiring(mut self) -> Self {
        self.acquires = true;
        self
    }

    /// The same operation, which lets the loop have a turn before it starts: a cancellation that is on its way arrives in it, and
    /// is swallowed if it is `ours`.
    pub(crate) fn after_a_turn(self, ours: bool) -> Self {
        if let State::New(start) = self.state.replace(State::Done) {
            drop(self.state.replace(State::Turn { start, begun: false, ours }));
        }
        self
    }

    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let visit = Visit::begin(py)?;
        let state = self.state.replace(State::Done);
        match state {
            State::Ready(make) => Err(returned(make(py))),
            State::Turn { start, begun: false, ours } => {
                drop(self.state.replace(State::Turn { start, begun: true, ours }));
                Ok(py.None())
            }
            State::New(start) | State::Turn { start, .. } => self.start(py, start, visit),
            State::Waiting(waiting) => self.look(py, waiting),
            State::Done => Err(PyRuntimeError::new_err("cannot reuse already awaited coroutine")),
        }
    }

    fn start(&self, py: Python<'_>, start: Start, visit: Visit) -> PyResult<Py<PyAny>> {
        let no_loop =
            || PyRuntimeError::new_err("no running event loop of asyncio; under trio, call the blocking methods in a thread");
        let event_loop = context::running_loop(py)?.ok_or_else(no_loop)?;
        let drain = drain_of(&event_loop)?;
        credentials::refresh(py)?;
        let (number, signal) = drain.get().signal();
        let mut trace = if self.acquires { Trace::begin(py)? } else { None };
        let started = start(&event_loop, &drain, signal);
        trace.iter_mut().for_each(Trace::started);
        let (cancel, mut take) = match started {
            Ok(started) => started,
            Err(error) => return Err(report(py, trace, Err(error))),
        };
        // The exit may have begun in any of these calls. From here on the signal keeps quiet about the closed client.
        let _visit = visit.resume(py)?;
        if let Some(result) = take(py) {
            return Err(report(py, trace, result));
        }
        let reference = PyWeakrefReference::new(&drain)?.unbind();
        let waiting = Waiting { drain: reference, number, cancel, take, trace };
        self.suspend(&event_loop, drain.get(), waiting)
    }

    /// Gives the task a future to wait for.
    fn suspend(&self, event_loop: &Bound<'_, PyAny>, drain: &Drain, waiting: Waiting) -> PyResult<Py<PyAny>> {
        let py = event_loop.py();
        let future = event_loop.call_method0(intern!(py, "create_future"))?;
        // What `await` does to a future: it shows the task that this is meant.
        future.setattr(intern!(py, "_asyncio_future_blocking"), true)?;
        drain.expect_future(waiting.number, future.clone().unbind());
        drop(self.state.replace(State::Waiting(waiting)));
        Ok(future.unbind())
    }

    fn look(&self, py: Python<'_>, mut waiting: Waiting) -> PyResult<Py<PyAny>> {
        match (waiting.take)(py) {
            Some(result) => Err(report(py, waiting.trace, result)),
            None => {
                waiting.cancel();
                Err(PyRuntimeError::new_err(format!("{}() was resumed by something that isn't its result", self.name)))
            }
        }
    }

    fn end(&self) {
        match self.state.replace(State::Done) {
            // The parent's: its locks may have been copied while taken.
            state if !self.of.is_current() => std::mem::forget(state),
            State::Waiting(waiting) => waiting.cancel(),
            _ => (),
        }
    }
}

/// Starts `call`. Whichever thread ends it leaves the result in a slot and raises the signal; the loop's thread takes it.
fn send_off<T: Send + 'static>(
    event_loop: &Bound<'_, PyAny>,
    drain: &Bound<'_, Drain>,
    call: Call<T>,
    signal: Signal,
    convert: impl FnOnce(Python<'_>, Result<T, Error>) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<(Cancel, Take)> {
    let slot = Arc::new(Slot { result: Guarded::default(), undo: call.undo() });
    let filled = Arc::clone(&slot);
    let cancel = Drain::start(drain, event_loop, call, move |result| {
        drop(filled.result.replace(Some(result)));
        signal.raise();
    })?;
    let mut convert = Some(convert);
    let take = move |py: Python<'_>| {
        let result = slot.result.take()?;
        convert.take().map(|convert| convert(py, result))
    };
    Ok((cancel, Box::new(take)))
}

/// The result of a call, until the task takes it. What a cancelled task leaves is undone.
struct Slot<T> {
    result: Guarded<Option<Result<T, Error>>>,
    undo: Option<fn(T)>,
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        if let (Some(undo), Some(Ok(value))) = (self.undo, self.result.get_mut().take()) {
            undo(value);
        }
    }
}

impl Waiting {
    fn cancel(self) {
        let _ = Python::try_attach(|py| {
            if let Some(drain) = self.drain.bind(py).upgrade().and_then(|drain| drain.cast_into::<Drain>().ok()) {
                drain.get().forget(self.number);
            }
        });
        self.cancel.cancel();
    }
}

/// [`returned`], also to who follows the acquire.
fn report(py: Python<'_>, trace: Option<Trace>, result: PyResult<Py<PyAny>>) -> PyErr {
    trace.into_iter().for_each(|trace| trace.answered(py, result.as_ref().err()));
    returned(result)
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
    ) -> PyResult<Py<PyAny>> {
        let py = error.py();
        let given = value.filter(|value| !value.is_none());
        let error = match error.cast::<PyType>() {
            Ok(class) => given.map_or_else(|| class.call0(), Ok)?,
            Err(_) => error,
        };
        let swallows = self.state.with(|state| matches!(state, State::Turn { begun: true, ours: true, .. }));
        if swallows && context::is_cancellation(&error) {
            return self.step(py);
        }
        self.end();
        Err(PyErr::from_value(error))
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

    fn __getattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        let operation = slf.get().name;
        absent(slf, name, format!("the coroutine {operation}() has no attribute '{name}': await it first"))
    }

    fn __enter__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(format!("{0}() is a coroutine, await it first: `async with await …{0}() as held:`", self.name)))
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, PyAny>) -> PyResult<()> {
        self.__enter__()
    }

    fn __aenter__(&self) -> PyResult<()> {
        self.__enter__()
    }

    #[pyo3(signature = (*_error))]
    fn __aexit__(&self, _error: &Bound<'_, PyAny>) -> PyResult<()> {
        self.__enter__()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.error.traverse(|error| visit.call(error))
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        self.farewell.begin();
        let state = std::mem::replace(self.state.get_mut(), State::Done);
        if !self.of.is_current() {
            // The parent's: its locks may have been copied while taken.
            return std::mem::forget(state);
        }
        match state {
            State::New(_) | State::Ready(_) | State::Turn { begun: false, .. } => {
                warn::<PyRuntimeWarning>(&format!("coroutine {:?} was never awaited", self.name))
            }
            State::Waiting(waiting) => waiting.cancel(),
            State::Turn { .. } | State::Done => (),
        }
    }
}
