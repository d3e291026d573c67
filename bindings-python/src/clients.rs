//! Clients that are alive, by number: what the exit closes, and whose callables are called.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use locktender::host::Process;
use locktender::metrics::Metrics;
use pyo3::prelude::*;

use crate::guarded::Guarded;

/// A callable of one client, shared with it: the client is what the garbage collector visits.
pub(crate) type Callback = Arc<Guarded<Option<Py<PyAny>>>>;

struct Enrolled {
    core: locktender::Client,
    callback: Callback,
    credentials: Callback,
}

static CLIENTS: Guarded<Option<HashMap<u64, Enrolled>>> = Guarded::new(None);

/// What clients of a process that are gone have counted.
static GONE: Guarded<Option<(Process, Metrics)>> = Guarded::new(None);

/// A number for a new client.
pub(crate) fn next_number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// Notes a client.
pub(crate) fn enrol(number: u64, core: locktender::Client, callback: Callback, credentials: Callback) {
    drop(CLIENTS.with(|clients| clients.get_or_insert_default().insert(number, Enrolled { core, callback, credentials })));
}

/// Forgets a client, but not what it has counted.
pub(crate) fn strike(number: u64) {
    let Some(gone) = core(number).map(|core| core.metrics()) else { return };
    let here = Process::current();
    // At once, so that no reading finds it in neither or in both.
    let struck = CLIENTS.with(|clients| {
        GONE.with(|kept| {
            let (process, kept) = kept.get_or_insert_with(|| (here, Metrics::default()));
            if *process != here {
                (*process, *kept) = (here, Metrics::default());
            }
            kept.keep(gone);
        });
        clients.as_mut().and_then(|clients| clients.remove(&number))
    });
    drop(struck);
}

/// What all clients of this process have counted, also those that are gone.
pub(crate) fn metrics() -> Metrics {
    let here = Process::current();
    let (kept, alive) = CLIENTS.with(|clients| {
        let kept = GONE.with(|gone| gone.as_ref().filter(|(process, _)| *process == here).map(|(_, kept)| kept.clone()));
        let alive: Vec<_> = clients.iter().flat_map(HashMap::values).map(|client| client.core.clone()).collect();
        (kept, alive)
    });
    Metrics::merged(kept.into_iter().chain(alive.iter().map(locktender::Client::metrics)))
}

/// All of them.
pub(crate) fn all() -> Vec<locktender::Client> {
    CLIENTS.with(|clients| clients.iter().flat_map(HashMap::values).map(|client| client.core.clone()).collect())
}

/// The client of this number, if it is alive.
pub(crate) fn core(number: u64) -> Option<locktender::Client> {
    CLIENTS.with(|clients| Some(clients.as_ref()?.get(&number)?.core.clone()))
}

/// The callback of the client of this number, if it is alive and has one.
pub(crate) fn callback(py: Python<'_>, number: u64) -> Option<Py<PyAny>> {
    let found = CLIENTS.with(|clients| Some(Arc::clone(&clients.as_ref()?.get(&number)?.callback)));
    found.and_then(|callback| callback.get(py))
}

/// The callable that gives the credentials of the client of this number, if it is alive.
pub(crate) fn credentials(py: Python<'_>, number: u64) -> Option<Py<PyAny>> {
    let found = CLIENTS.with(|clients| Some(Arc::clone(&clients.as_ref()?.get(&number)?.credentials)));
    found.and_then(|credentials| credentials.get(py))
}
