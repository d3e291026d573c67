//! Frames: who calls, and where in its program.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::context;
use crate::visit::Visit;

/// Who begins or ends a body, and where.
pub(crate) struct Caller<'py> {
    /// The number of the task, the greenlet or the thread.
    pub(crate) task: u64,
    /// The frame of the `with` statement, which leaves the body, too. `None` if contextlib's stack enters for the caller.
    pub(crate) frame: Option<Bound<'py, PyAny>>,
    /// The frame that runs as long as the body does, also if it is this package's own: that of a decorated function.
    pub(crate) running: Option<Bound<'py, PyAny>>,
    /// The file and the line. `None` where no line of the program's own can be named.
    pub(crate) place: Option<String>,
}

/// The caller, in the innermost frame that isn't this package's own.
pub(crate) fn caller(py: Python<'_>) -> PyResult<Caller<'_>> {
    let mut caller = Caller { task: context::current(py)?, frame: None, running: None, place: None };
    let _visit = Visit::begin(py)?;
    let mut next = innermost(py)?;
    let mut is_innermost = true;
    while let Some(frame) = next {
        let module = module_of(&frame)?;
        let is_of = |package: &str| module.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if is_of("asyncio") {
            break;
        }
        if caller.running.is_none() && !is_of("contextlib") {
            caller.running = Some(frame.clone());
        }
        if is_of("locktender") {
            next = back(&frame)?;
        } else if is_of("contextlib") {
            is_innermost = false;
            next = back(&frame)?;
        } else {
            caller.place = Some(place(&frame)?);
            caller.frame = is_innermost.then_some(frame);
            break;
        }
    }
    Ok(caller)
}

/// Whether the body of the frame at `address` runs: whether that frame is on the stack. A suspended generator's isn't, nor is another
/// thread's. The hold keeps the frame, so that nothing else has its address.
pub(crate) fn runs(py: Python<'_>, address: u64) -> bool {
    let look = || {
        let _visit = Visit::begin(py)?;
        let mut next = innermost(py)?;
        while let Some(frame) = next {
            if frame.as_ptr() as u64 == address {
                return Ok(true);
            }
            next = back(&frame)?;
        }
        Ok::<_, PyErr>(false)
    };
    look().unwrap_or(false)
}

/// The innermost frame of Python's; `None` where a thread has none, or Python shows none.
fn innermost(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    static GET_FRAME: PyOnceLock<Option<Py<PyAny>>> = PyOnceLock::new();
    if GET_FRAME.get(py).is_none() {
        let found = py.import("sys")?.getattr("_getframe").ok();
        let _ = GET_FRAME.set(py, found.map(Bound::unbind));
    }
    let get_frame = GET_FRAME.get(py).and_then(Option::as_ref);
    match get_frame.map(|get_frame| get_frame.bind(py).call0()).transpose() {
        Err(error) if error.is_instance_of::<PyValueError>(py) => Ok(None),
        frame => frame,
    }
}

fn back<'py>(frame: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let back = frame.getattr(intern!(frame.py(), "f_back"))?;
    Ok(if back.is_none() { None } else { Some(back) })
}

fn module_of(frame: &Bound<'_, PyAny>) -> PyResult<String> {
    let globals = frame.getattr(intern!(frame.py(), "f_globals"))?.cast_into::<PyDict>()?;
    let name = globals.get_item(intern!(frame.py(), "__name__"))?;
    Ok(name.and_then(|name| name.extract().ok()).unwrap_or_default())
}

fn place(frame: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = frame.py();
    let file: String = frame.getattr(intern!(py, "f_code"))?.getattr(intern!(py, "co_filename"))?.extract()?;
    // Of a frame that is being unwound there may be no line.
    let line: Option<u32> = frame.getattr(intern!(py, "f_lineno"))?.extract()?;
    Ok(format!("{file}:{}", line.unwrap_or_default()))
}
