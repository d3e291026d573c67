//! Who is calling: the current asyncio task if there is one, else the greenlet, else the thread. What nobody has imported isn't
//! looked at.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// The two questions to asyncio.
struct Asyncio {
    running_loop: Py<PyAny>,
    current_task: Py<PyAny>,
}

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

static ASYNCIO: PyOnceLock<Asyncio> = PyOnceLock::new();

fn asyncio(py: Python<'_>) -> PyResult<Option<&Asyncio>> {
    if let Some(asyncio) = ASYNCIO.get(py) {
        return Ok(Some(asyncio));
    }
    // The last one that `import asyncio` loads: before that another thread may still be importing it.
    if !modules(py)?.contains(intern!(py, "asyncio.runners"))? {
        return Ok(None);
    }
    let tasks = py.import("asyncio")?;
    let found = Asyncio {
        running_loop: tasks.getattr("_get_running_loop")?.unbind(),
        current_task: tasks.getattr("current_task")?.unbind(),
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

/// The greenlet that runs, unless it is the one a thread began with.
fn greenlet(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if CURRENT.get(py).is_none()
        && let Some(module) = modules(py)?.get_item(intern!(py, "greenlet"))?
        && let Some(current) = module.getattr_opt("getcurrent")?
    {
        let _ = CURRENT.set(py, current.unbind());
    }
    let Some(current) = CURRENT.get(py) else { return Ok(None) };
    let current = current.bind(py).call0()?;
    Ok(if current.getattr(intern!(py, "parent"))?.is_none() { None } else { Some(current) })
}

/// A number that is the same for one task, else for one greenlet or thread, and differs between those that are alive.
pub(crate) fn current(py: Python<'_>) -> PyResult<u64> {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static THREAD: u64 = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    if let Some(event_loop) = running_loop(py)? {
        let asyncio = asyncio(py)?.map(|asyncio| asyncio.current_task.bind(py).call1((event_loop,)));
        if let Some(task) = asyncio.transpose()?.filter(|task| !task.is_none()) {
            return Ok(task.as_ptr() as u64);
        }
    }
    Ok(greenlet(py)?.map_or_else(|| THREAD.with(|thread| *thread), |greenlet| greenlet.as_ptr() as u64))
}
