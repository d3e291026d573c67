//! Losses on their way to `on_lost` callables. A thread of the core puts a number into the queue of events; the thread that delivers
//! these calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use locktender::{Code, Error};
use pyo3::prelude::*;

use crate::events;
use crate::guarded::Guarded;

/// The callables of the holds that may still be lost, by number.
static CALLABLES: Guarded<Option<HashMap<u64, Py<PyAny>>>> = Guarded::new(None);

/// One hold that is watched: as long as it may be lost, its callable is kept.
pub(crate) struct Watched {
    number: u64,
    /// Whether it was lost, so that its callable is still to be called, or was.
    is_lost: Arc<AtomicBool>,
}

impl Watched {
    /// Has `callable` called when `hold` is lost.
    pub(crate) fn new(py: Python<'_>, held: &locktender::Hold, callable: Py<PyAny>) -> PyResult<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        events::refresh(py, true)?;
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        drop(CALLABLES.with(|callables| callables.get_or_insert_default().insert(number, callable)));
        let is_lost = Arc::<AtomicBool>::default();
        let lost = Arc::clone(&is_lost);
        held.on_lost_of(move |name, loss| {
            lost.store(true, Ordering::Release);
            events::emit_loss(number, Error::lost(name, loss));
        });
        Ok(Self { number, is_lost })
    }

    /// The callable, for another hold in the place of this one. It is gone once it was called.
    pub(crate) fn callable(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        CALLABLES.find(py, |callables| callables.as_ref()?.get(&self.number))
    }

    /// The hold's handle is gone; `check` is what it said last. A loss that it knows may be reported a moment later, and one that
    /// was reported is known no more after the release.
    pub(crate) fn end(&self, check: &Result<(), Error>) {
        let knows_of_loss = check.as_ref().is_err_and(|error| error.code() == Code::LockLost);
        if !knows_of_loss && !self.is_lost.load(Ordering::Acquire) {
            drop(take(self.number));
        }
    }
}

/// The callable of a number: each is called once.
pub(crate) fn take(number: u64) -> Option<Py<PyAny>> {
    CALLABLES.with(|callables| callables.as_mut()?.remove(&number))
}
