//! The end of the interpreter: clients are closed, which gives their locks back, within a bound; and no thread that waits in
//! here disturbs what follows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use locktender::Call;
use locktender::host::Process;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::client::Client;
use crate::events;
use crate::guarded::Guarded;
use crate::own;

/// How long the exit waits for servers that don't answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Every client that is alive, by its number.
static CLIENTS: Guarded<Option<HashMap<u64, Py<PyWeakrefReference>>>> = Guarded::new(None);

/// Set when the exit begins.
static OVER: AtomicBool = AtomicBool::new(false);

/// The daemon threads of the exit: whoever else was there when it began had already ended.
static DAEMONS: Guarded<Option<Arc<Daemons>>> = Guarded::new(None);

struct Daemons {
    get_ident: Py<PyAny>,
    idents: HashSet<u64>,
}

/// How many threads visit this module with the interpreter: the process they are of, and their number.
static VISITS: Guarded<Option<(Process, usize)>> = Guarded::new(None);

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

/// Tells that this process is a new child; called in it by the interpreter's hook for forks.
#[pyfunction(name = "_forked")]
pub(crate) fn forked() {
    Process::was_forked();
}

/// A number for a new client.
pub(crate) fn next_number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// Notes a client.
pub(crate) fn enrol(number: u64, client: &Bound<'_, Client>) -> PyResult<()> {
    let reference = PyWeakrefReference::new(client)?.unbind();
    drop(CLIENTS.with(|clients| clients.get_or_insert_default().insert(number, reference)));
    Ok(())
}

/// Forgets a client.
pub(crate) fn strike(number: u64) {
    drop(CLIENTS.with(|clients| clients.as_mut().and_then(|clients| clients.remove(&number))));
}

/// The client of this number, if it is alive.
pub(crate) fn client<'py>(py: Python<'py>, number: u64) -> Option<Bound<'py, Client>> {
    let reference = CLIENTS.find(py, |clients| clients.as_ref()?.get(&number))?;
    reference.bind(py).upgrade()?.cast_into().ok()
}

/// Closes every client; called by `atexit`, when the main thread has ended and the interpreter still works.
#[pyfunction(name = "_close_all")]
pub(crate) fn close_all(py: Python<'_>) -> PyResult<()> {
    drop(DAEMONS.replace(Some(Arc::new(daemons(py)?))));
    OVER.store(true, Ordering::SeqCst);
    let numbers: Vec<u64> = CLIENTS.with(|clients| clients.iter().flat_map(HashMap::keys).copied().collect());
    let clients = numbers.iter().filter_map(|number| client(py, *number));
    let mut calls: Vec<Call<()>> = clients.map(|client| client.get().core().close()).collect();
    py.detach(|| {
        let until = Instant::now() + PATIENCE;
        // All of them start before the first is waited for.
        calls.retain_mut(|call| call.wait_for(Duration::ZERO).is_none());
        for call in &mut calls {
            let _ = call.wait_for(until.saturating_duration_since(Instant::now()));
        }
        while Visit::is_any() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    });
    events::stop(py);
    Ok(())
}

/// Whether the exit has begun.
pub(crate) fn is_over() -> bool {
    OVER.load(Ordering::SeqCst)
}

/// Every thread but this one. The interpreter has waited for all that are no daemons.
fn daemons(py: Python<'_>) -> PyResult<Daemons> {
    let get_ident = own::call(py, "_threads", "original", ("get_ident",))?;
    let here: u64 = get_ident.call0()?.extract()?;
    let frames: HashMap<u64, Bound<'_, PyAny>> = py.import("sys")?.call_method0("_current_frames")?.extract()?;
    let idents = frames.into_keys().filter(|ident| *ident != here).collect();
    Ok(Daemons { get_ident: get_ident.unbind(), idents })
}

/// Whether this thread is one of them; found out without running any Python code, in which it could be interrupted.
fn is_daemon(py: Python<'_>) -> PyResult<bool> {
    let Some(daemons) = DAEMONS.get(py) else { return Ok(false) };
    Ok(daemons.idents.contains(&daemons.get_ident.bind(py).call0()?.extract()?))
}

/// A thread's stay in here during which Python code may run.
///
/// An interpreter that ends unwinds the stacks of daemon threads that run Python code, and aborts if there is Rust on them. So
/// the exit waits for visits to end, and once it has begun no daemon thread begins another: it would only print errors that
/// nobody can act on. Such a thread sleeps until the process is gone.
pub(crate) struct Visit {
    of: Process,
}

impl Visit {
    pub(crate) fn begin(py: Python<'_>) -> PyResult<Self> {
        if is_over() && is_daemon(py)? {
            py.detach(|| {
                loop {
                    thread::park();
                }
            });
        }
        let of = Process::current();
        VISITS.with(|visits| {
            // In a forked child the parent's visitors aren't there.
            let others = visits.filter(|(process, _)| *process == of).map_or(0, |(_, number)| number);
            *visits = Some((of, others + 1));
        });
        Ok(Self { of })
    }

    /// Goes on, unless the exit has begun meanwhile.
    pub(crate) fn go_on(self, py: Python<'_>) -> PyResult<Self> {
        drop(self);
        Self::begin(py)
    }

    fn is_any() -> bool {
        VISITS.with(|visits| visits.is_some_and(|(process, number)| number > 0 && process.is_current()))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        VISITS.with(|visits| {
            if let Some((_, number)) = visits.as_mut().filter(|(process, _)| *process == self.of) {
                *number -= 1;
            }
        });
    }
}
