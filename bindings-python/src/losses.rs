//! Losses on their way to `on_lost` callables. A thread of the core puts a number into the queue of events; the thread that delivers
//! these calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use locktender::{Code, Error};
use pyo3::prelude::*;

use crate::events;
use crate::guarded::Guarded;

/// The callables of the holds that may still be lost, by number.
static CALLABLES: Guarded<Option<HashMap<u64, Py<PyAny>>>> = Guarded::new(None);

/// One hold that is watched: as long as it may be lost, its callable is kept.
pub(crate) struct Watched(u64);

impl Watched {
    /// Has `callable` called when `held` is lost.
    pub(crate) fn new(py: Python<'_>, held: &locktender::Held, callable: Py<PyAny>) -> PyResult<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        events::refresh(py, true)?;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        drop(CALLABLES.with(|callables| callables.get_or_insert_default().insert(number, callable)));
        let name = held.name().to_owned();
        held.on_lost(move |loss| events::tell_loss(number, Error::lost(&name, loss)));
        Ok(Self(number))
    }

    /// The hold's handle is gone; `check` is what it said last. If it was lost, its callable is still to be called.
    pub(crate) fn end(&self, check: Result<(), Error>) {
        if check.is_ok() || check.is_err_and(|error| error.code() != Code::LockLost) {
            drop(take(self.0));
        }
    }
}

/// The callable of a number: each is called once.
pub(crate) fn take(number: u64) -> Option<Py<PyAny>> {
    CALLABLES.with(|callables| callables.as_mut()?.remove(&number))
}
