//! A loop's share of the I/O: it writes what its tasks ask for and reads the answers, so that an operation needs no other thread.

use std::sync::atomic::{AtomicBool, Ordering};

use locktender::host::{Driver, Watch};
use pyo3::intern;
use pyo3::prelude::*;

use crate::guarded::Guarded;

/// What one loop watches: the connections of every client its tasks have used.
#[derive(Default)]
pub(crate) struct Turns {
    can_watch: AtomicBool,
    /// Locked by the loop's thread alone, also while the core calls back: that touches nothing of Python.
    watches: Guarded<Vec<Watch>>,
    /// A turn to send is scheduled.
    sends: AtomicBool,
}

impl Turns {
    /// The loop can watch descriptors.
    pub(crate) fn begin(&self) {
        self.can_watch.store(true, Ordering::Relaxed);
    }

    pub(crate) fn can_watch(&self) -> bool {
        self.can_watch.load(Ordering::Relaxed)
    }

    /// Whether nobody has scheduled a turn to send yet.
    pub(crate) fn is_first_to_send_later(&self) -> bool {
        !self.sends.swap(true, Ordering::Relaxed)
    }

    /// Sends what was sent off since the last time.
    pub(crate) fn send(&self) {
        self.sends.store(false, Ordering::Relaxed);
        self.watches.with(|watches| watches.iter().for_each(Watch::send));
    }

    /// Reads what is there.
    pub(crate) fn poll(&self, id: u64) {
        self.watches.with(|watches| watches.iter().filter(|watch| watch.id() == id).for_each(Watch::poll));
    }

    /// Has the loop watch what `driver` drives, unless it does; it calls what `poll` gives, with its number.
    pub(crate) fn watch<'py>(
        &self,
        event_loop: &Bound<'py, PyAny>,
        driver: Driver,
        poll: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let id = driver.id();
        if self.watches.with(|watches| watches.iter().any(|watch| watch.id() == id)) {
            return Ok(());
        }
        self.forget_what_is_over(event_loop)?;
        let watch = driver.watch();
        let Some(descriptor) = watch.descriptor() else {
            watch.send();
            return Ok(());
        };
        event_loop.call_method1(intern!(event_loop.py(), "add_reader"), (descriptor, poll()?, id))?;
        self.watches.with(|watches| watches.push(watch));
        Ok(())
    }

    /// Before their descriptors are closed, or the loop would trip over others with the same numbers.
    fn forget_what_is_over(&self, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
        let over: Vec<_> = self.watches.with(|watches| watches.extract_if(.., |watch| watch.is_over()).collect());
        for watch in over {
            event_loop.call_method1(intern!(event_loop.py(), "remove_reader"), (watch.descriptor(),))?;
        }
        Ok(())
    }
}
