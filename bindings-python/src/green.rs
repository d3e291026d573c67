//! Greenlets that wait: through their hub (see `_green.py`), which is to the completion queue what an asyncio loop is.

use std::sync::Arc;
use std::time::Duration;

use locktender::{Call, Error};
use pyo3::intern;
use pyo3::prelude::*;

use crate::bridge::{Drain, drain_of};
use crate::context::modules;
use crate::errors::raised;
use crate::guarded::Guarded;
use crate::own;
use crate::visit::Visit;

/// The hub of this thread's greenlets. Without one the thread itself may block.
pub(crate) fn hub(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = modules(py)?;
    // Nothing else costs anything where no hub is used.
    if !modules.contains(intern!(py, "gevent._hub_local"))? && !modules.contains(intern!(py, "eventlet.hubs"))? {
        return Ok(None);
    }
    let hub = own::call(py, "_green", "hub", ())?;
    Ok(if hub.is_none() { None } else { Some(hub) })
}

/// Waits until the call has ended, at most `timeout`. Whatever ends the waiting early cancels the call: a time that is over, and
/// what is thrown into the greenlet. A result that comes with it is dropped, which gives a granted lock back.
pub(crate) fn wait<T: Send + 'static>(hub: &Bound<'_, PyAny>, call: Call<T>, timeout: Option<Duration>) -> PyResult<Option<T>> {
    let py = hub.py();
    let visit = Visit::begin(py)?;
    let slot: Arc<Guarded<Option<Result<T, Error>>>> = Arc::default();
    let filled = Arc::clone(&slot);
    let drain = drain_of(hub)?;
    let (number, signal) = drain.get().signal();
    let ended = hub.call_method0(intern!(py, "ended"))?;
    drain.get().expect_callback(number, ended.getattr(intern!(py, "set"))?.unbind());
    let cancel = Drain::start(&drain, hub, call, move |result| {
        drop(filled.replace(Some(result)));
        signal.raise();
    })?;
    // Other greenlets run meanwhile.
    drop(visit);
    let waited = match slot.with(|result| result.is_some()) {
        true => Ok(()),
        false => hub.call_method1(intern!(py, "wait"), (ended, timeout.map(|timeout| timeout.as_secs_f64()))).map(drop),
    };
    drain.get().forget(number);
    let result = match waited.and_then(|()| py.check_signals()) {
        Ok(()) => slot.take(),
        Err(error) => {
            cancel.cancel();
            return Err(error);
        }
    };
    let _visit = Visit::begin(py)?;
    if result.is_none() {
        cancel.cancel();
    }
    result.map(|result| raised(py, result)).transpose()
}
