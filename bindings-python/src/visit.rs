//! Visits: the stays of threads in this module during which Python code may run, and what the exit of the interpreter means to them.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use locktender::host::PerProcess;
use pyo3::prelude::*;

use crate::guarded::Guarded;

/// Set when the exit begins.
static OVER: AtomicBool = AtomicBool::new(false);

/// The daemon threads of the exit: any other thread that was there when it began had already ended.
static DAEMONS: Guarded<Option<Arc<Daemons>>> = Guarded::new(None);

struct Daemons {
    get_ident: Py<PyAny>,
    idents: HashSet<u64>,
}

/// How many threads visit this module. No mutex: a thread without the interpreter could have it locked while another one forks.
static VISITS: PerProcess<AtomicUsize> = PerProcess::new();

/// Begins the exit. `get_ident` is the interpreter's own function: gevent and eventlet replace it.
pub(crate) fn begin_exit(py: Python<'_>, get_ident: Bound<'_, PyAny>) -> PyResult<()> {
    drop(DAEMONS.replace(Some(Arc::new(daemons(py, get_ident)?))));
    OVER.store(true, Ordering::SeqCst);
    Ok(())
}

/// Whether the exit has begun.
pub(crate) fn is_over() -> bool {
    OVER.load(Ordering::SeqCst)
}

/// Every thread but this one. The interpreter has waited for all that are no daemons.
fn daemons(py: Python<'_>, get_ident: Bound<'_, PyAny>) -> PyResult<Daemons> {
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

thread_local! {
    /// How many visits this thread is in: one inside another belongs to it.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A thread's stay in here during which Python code may run.
///
/// An interpreter that ends unwinds the stacks of daemon threads that run Python code, and aborts if there is Rust on them. So
/// the exit waits for visits to end, and once it has begun no daemon thread begins another: it would only print errors that
/// nobody can act on. Such a thread sleeps until the process is gone.
pub(crate) struct Visit(Arc<AtomicUsize>);

impl Visit {
    pub(crate) fn begin(py: Python<'_>) -> PyResult<Self> {
        if DEPTH.get() == 0 && is_over() && is_daemon(py)? {
            py.detach(park);
        }
        Ok(Self::count())
    }

    /// Begins one of a thread that is about to come back to the interpreter, and that the exit has to wait for.
    pub(crate) fn count() -> Self {
        let visits = VISITS.get_or_make(AtomicUsize::default);
        visits.fetch_add(1, Ordering::SeqCst);
        DEPTH.set(DEPTH.get() + 1);
        Self(visits)
    }

    /// Continues, unless the exit has begun meanwhile.
    pub(crate) fn resume(self, py: Python<'_>) -> PyResult<Self> {
        drop(self);
        Self::begin(py)
    }

    pub(crate) fn is_any() -> bool {
        VISITS.get_or_make(AtomicUsize::default).load(Ordering::SeqCst) > 0
    }
}

/// Does `work` without the interpreter. The thread comes back to it as a visit, which begins before: an interpreter that is gone ends
/// the thread in here. A thread that was there before the exit began, and has not begun to come back, sleeps, unless the exit waits for a
/// visit around this one.
pub(crate) fn detached<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> (R, Visit) {
    let may_come_back = is_over() || DEPTH.get() > 0;
    py.detach(|| {
        let result = work();
        // First counted, then looked: the exit does it the other way round, and so one of the two sees the other.
        let visit = Visit::count();
        if is_over() && !may_come_back {
            drop(visit);
            park();
        }
        (result, visit)
    })
}

/// Sleeps until the process is gone.
pub(crate) fn park() -> ! {
    loop {
        thread::park();
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
        DEPTH.set(DEPTH.get() - 1);
    }
}
