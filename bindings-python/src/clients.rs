//! Clients that are alive, by number: what the exit closes, and whose callables are called.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// A number for a new client.
pub(crate) fn next_number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// Notes a client.
pub(crate) fn enrol(number: u64, core: locktender::Client, callback: Callback, credentials: Callback) {
    drop(CLIENTS.with(|clients| clients.get_or_insert_default().insert(number, Enrolled { core, callback, credentials })));
}

/// Forgets a client.
pub(crate) fn strike(number: u64) {
    drop(CLIENTS.with(|clients| clients.as_mut().and_then(|clients| clients.remove(&number))));
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
