//! The default client: what `configure` made, else what the environment names, made at the first operation.

use locktender::sync::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::client::Client;
use crate::lock::Lock;

/// Locked only by threads that hold the interpreter.
static DEFAULT: Mutex<Option<Py<Client>>> = Mutex::new(None);

/// The default client.
pub(crate) fn client(py: Python<'_>) -> PyResult<Py<Client>> {
    if let Some(client) = DEFAULT.lock().as_ref() {
        return Ok(client.clone_ref(py));
    }
    let made = make(py, None, None)?;
    // Another thread may have been faster; there is one default client.
    Ok(DEFAULT.lock().get_or_insert(made).clone_ref(py))
}

fn make(py: Python<'_>, servers: Option<&Bound<'_, PyAny>>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Client>> {
    let client = Bound::new(py, Client::open(py, servers, options)?)?;
    Client::enrolled(&client)?;
    Ok(client.unbind())
}

/// Sets what the default client is, from the next operation on.
#[pyfunction]
#[pyo3(
    signature = (servers=None, **options),
    text_signature = "(servers=None, *, prefix=None, app=None, connect_timeout=None, response_timeout=None, \
        unavailable_after=None, max_ttl=None, tls_ca=None, tls_cert=None, tls_key=None, ttl=None, wait=None, renew=None, \
        max_hold=None, fair=None, on_lost=None, on_event=None)"
)]
pub(crate) fn configure(py: Python<'_>, servers: Option<&Bound<'_, PyAny>>, options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let made = make(py, servers, options)?;
    let previous = DEFAULT.lock().replace(made);
    drop(previous);
    Ok(())
}

/// A lock of the default client.
#[pyfunction]
#[pyo3(signature = (name, **options), text_signature = "(name, *, ttl=None, wait=None, renew=None, max_hold=None, fair=None, on_lost=None)")]
pub(crate) fn lock(name: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Lock> {
    Lock::new(None, name, options)
}
