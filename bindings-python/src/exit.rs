//! The end of the interpreter: clients are closed, which gives their locks back, within a bound; and no thread that waits in
//! here disturbs what follows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use locktender::Call;
use parking_lot::Mutex;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::client::Client;
use crate::events;

/// How long the exit waits for servers that don't answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Every client that is alive, by its number. Locked only by threads that hold the interpreter.
static CLIENTS: Mutex<Option<HashMap<u64, Py<PyWeakrefReference>>>> = Mutex::new(None);

/// Set when the exit begins.
static OVER: AtomicBool = AtomicBool::new(false);

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

/// A number for a new client.
pub(crate) fn next_number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// Notes a client.
pub(crate) fn enrol(number: u64, client: &Bound<'_, Client>) -> PyResult<()> {
    let reference = PyWeakrefReference::new(client)?.unbind();
    CLIENTS.lock().get_or_insert_default().insert(number, reference);
    Ok(())
}

/// Forgets a client.
pub(crate) fn strike(number: u64) {
    let client = CLIENTS.lock().as_mut().and_then(|clients| clients.remove(&number));
    drop(client);
}

/// The client of this number, if it is alive.
pub(crate) fn client<'py>(py: Python<'py>, number: u64) -> Option<Bound<'py, Client>> {
    let reference = CLIENTS.lock().as_ref()?.get(&number)?.clone_ref(py);
    reference.bind(py).upgrade()?.cast_into().ok()
}

/// Closes every client; called by `atexit`, when the main thread has ended and the interpreter still works.
#[pyfunction(name = "_close_all")]
pub(crate) fn close_all(py: Python<'_>) {
    OVER.store(true, Ordering::SeqCst);
    let numbers: Vec<u64> = CLIENTS.lock().iter().flat_map(|clients| clients.keys().copied()).collect();
    let clients = numbers.iter().filter_map(|number| client(py, *number));
    let mut calls: Vec<Call<()>> = clients.map(|client| client.get().core().close()).collect();
    py.detach(|| {
        let until = Instant::now() + PATIENCE;
        // All of them start before the first is waited for.
        calls.retain_mut(|call| call.wait_for(Duration::ZERO).is_none());
        for call in &mut calls {
            let _ = call.wait_for(until.saturating_duration_since(Instant::now()));
        }
    });
    events::stop(py);
}

/// Whether the exit has begun.
pub(crate) fn is_over() -> bool {
    OVER.load(Ordering::SeqCst)
}

/// Keeps daemon threads out once the exit has begun: they would print errors nobody can act on, or be torn down in the middle
/// of this library by an interpreter that is ending. They sleep until the process is gone.
pub(crate) fn stay_away(py: Python<'_>) -> PyResult<()> {
    if is_over() && py.import("threading")?.call_method0("current_thread")?.getattr("daemon")?.is_truthy()? {
        py.detach(|| {
            loop {
                std::thread::park();
            }
        });
    }
    Ok(())
}
