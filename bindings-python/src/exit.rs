//! The end of the interpreter: clients are closed, which gives their locks back, within a bound; and no thread that waits in
//! here disturbs what follows.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use locktender::host::{EXIT_TIMEOUT, Process, wait_for_all};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

use crate::visit::{Visit, begin_exit};
use crate::{clients, credentials, events, own};

/// Refuses a second interpreter of this process: clients, loops and the exit are this module's, and what they lead to is one
/// interpreter's.
pub(crate) fn settle_in(py: Python<'_>) -> PyResult<()> {
    static HOME: AtomicUsize = AtomicUsize::new(0);
    let here = py.import("builtins")?.as_ptr() as usize;
    match HOME.compare_exchange(0, here, Ordering::SeqCst, Ordering::SeqCst) {
        Err(home) if home != here => Err(PyImportError::new_err(
            "locktender is loaded in another interpreter of this process, and works in one: use threads or processes",
        )),
        _ => Ok(()),
    }
}

/// Notes that this process is a new child; called in it by the interpreter's hook for forks.
#[pyfunction(name = "_forked")]
pub(crate) fn forked() {
    Process::was_forked();
}

/// Closes every client; called by `atexit`, when the main thread has ended and the interpreter still works.
#[pyfunction(name = "_close_all")]
pub(crate) fn close_all(py: Python<'_>) -> PyResult<()> {
    begin_exit(py, own::call(py, "_threads", "original", ("get_ident",))?)?;
    let calls = clients::all().iter().map(locktender::Client::close).collect();
    py.detach(|| {
        let until = Instant::now() + EXIT_TIMEOUT;
        wait_for_all(calls, until);
        credentials::stop();
        while Visit::is_any() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    });
    events::stop(py);
    Ok(())
}
