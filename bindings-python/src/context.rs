//! The caller: the current asyncio task if there is one, else the greenlet, else the thread. asyncio and greenlet are looked at
//! only if the program imported them.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::known::Known;
use crate::visit::Visit;

/// What is asked of asyncio.
struct Asyncio {
    running_loop: Py<PyAny>,
    current_task: Py<PyAny>,
    cancelled_error: Py<PyAny>,
}

static ASYNCIO: PyOnceLock<Asyncio> = PyOnceLock::new();

/// What asks greenlet for the current one.
static GREENLET: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The modules that are imported.
pub(crate) fn modules(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    if let Some(modules) = MODULES.get(py) {
        return Ok(modules.bind(py));
    }
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    let _ = MODULES.set(py, modules.unbind());
    MODULES.get(py).map(|modules| modules.bind(py)).ok_or_else(|| PyRuntimeError::new_err("sys has no modules"))
}

fn asyncio(py: Python<'_>) -> PyResult<Option<&Asyncio>> {
    if let Some(asyncio) = ASYNCIO.get(py) {
        return Ok(Some(asyncio));
    }
    // The last one that `import asyncio` loads: before that another thread may still be importing it.
    if !modules(py)?.contains(intern!(py, "asyncio.runners"))? {
        return Ok(None);
    }
    let _visit = Visit::begin(py)?;
    let tasks = py.import("asyncio")?;
    let found = Asyncio {
        running_loop: tasks.getattr("_get_running_loop")?.unbind(),
        current_task: tasks.getattr("current_task")?.unbind(),
        cancelled_error: tasks.getattr("CancelledError")?.unbind(),
    };
    let _ = ASYNCIO.set(py, found);
    Ok(ASYNCIO.get(py))
}

/// The event loop that runs on this thread.
pub(crate) fn running_loop(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let Some(asyncio) = asyncio(py)? else { return Ok(None) };
    let event_loop = asyncio.running_loop.bind(py).call0()?;
    Ok(if event_loop.is_none() { None } else { Some(event_loop) })
}

/// Whether this is the error that asyncio cancels a task with.
pub(crate) fn is_cancellation(error: &Bound<'_, PyAny>) -> bool {
    ASYNCIO.get(error.py()).is_some_and(|asyncio| error.is_instance(asyncio.cancelled_error.bind(error.py())).unwrap_or(false))
}

/// The task that runs on this thread.
pub(crate) fn task(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let Some(event_loop) = running_loop(py)? else { return Ok(None) };
    let task = asyncio(py)?.map(|asyncio| asyncio.current_task.bind(py).call1((event_loop,))).transpose()?;
    Ok(task.filter(|task| !task.is_none()))
}

/// The current greenlet, unless it is the one that every thread begins as.
fn greenlet(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    if GREENLET.get(py).is_none() {
        let module = modules(py)?.get_item(intern!(py, "greenlet"))?;
        // A module that is still being imported may not have it yet.
        let Some(current) = module.and_then(|module| module.getattr("getcurrent").ok()) else { return Ok(None) };
        let _ = GREENLET.set(py, current.unbind());
    }
    let Some(current) = GREENLET.get(py) else { return Ok(None) };
    let greenlet = current.bind(py).call0()?;
    Ok(if greenlet.getattr(intern!(py, "parent"))?.is_none() { None } else { Some(greenlet) })
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

fn next_number() -> u64 {
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// The tasks and greenlets with a number.
static KNOWN: Known<u64> = Known::new();

fn number_of(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Some(number) = KNOWN.find(object) {
        return Ok(number);
    }
    let number = next_number();
    KNOWN.note(object, number)?;
    Ok(number)
}

/// A number that is the same for one task, greenlet or thread, and that no other ever has.
pub(crate) fn current(py: Python<'_>) -> PyResult<u64> {
    thread_local! {
        static THREAD: u64 = next_number();
    }
    let caller = task(py)?.map_or_else(|| greenlet(py), |task| Ok(Some(task)))?;
    caller.map_or_else(|| Ok(THREAD.with(|thread| *thread)), |caller| number_of(&caller))
}
