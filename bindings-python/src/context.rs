//! Who is calling: the current asyncio task if there is one, else the thread. asyncio is looked at only if somebody imported it.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// The two questions to asyncio.
struct Asyncio {
    running_loop: Py<PyAny>,
    current_task: Py<PyAny>,
}

static ASYNCIO: PyOnceLock<Asyncio> = PyOnceLock::new();

fn asyncio(py: Python<'_>) -> PyResult<Option<&Asyncio>> {
    if let Some(asyncio) = ASYNCIO.get(py) {
        return Ok(Some(asyncio));
    }
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    // The last one that `import asyncio` loads: before that another thread may still be importing it.
    if modules.get_item("asyncio.runners")?.is_none() {
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

/// A number that is the same for one task, else for one thread, and differs between those that are alive.
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
    Ok(THREAD.with(|thread| *thread))
}
