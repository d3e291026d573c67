//! A hold: what the handles for threads and for tasks have in common.

use std::sync::atomic::{AtomicBool, Ordering};

use locktender::Call;
use pyo3::exceptions::{PyResourceWarning, PyTypeError};
use pyo3::prelude::*;

use crate::arguments::{refuse, seconds};
use crate::errors::{LockError, invalid, raised};
use crate::frames::Standing;
use crate::garbage::warn;
use crate::losses::Watched;
use crate::options::OnLost;
use crate::{context, frames, own};

/// The core's hold with what `Held` and `AsyncHeld` share: they differ in how they wait.
pub(crate) struct Hold {
    pub(crate) core: locktender::Held,
    /// A body was entered.
    entered: AtomicBool,
    watched: Option<Watched>,
}

impl Hold {
    pub(crate) fn new(py: Python<'_>, held: locktender::Held, on_lost: Option<OnLost>) -> PyResult<Self> {
        let watched = match on_lost {
            Some(OnLost::Call(callable)) => Some(Watched::new(py, &held, callable)?),
            _ => None,
        };
        Ok(Self { core: held, entered: AtomicBool::new(false), watched })
    }

    /// Begins a body: the lock is held, and no other body's end will release it.
    pub(crate) fn enter<'py>(&self, py: Python<'py>) -> PyResult<Standing<'py>> {
        raised(py, self.core.check())?;
        if self.entered.swap(true, Ordering::Relaxed) {
            let text = format!(
                "lock {:?}: this hold is in a `with` already, whose end would release it inside of this one",
                self.core.name()
            );
            return Err(invalid(py, self.core.name(), &text));
        }
        let standing = frames::standing(py)?;
        self.core.enter(context::current(py)?, standing.place.as_deref());
        Ok(standing)
    }

    pub(crate) fn extend(&self, ttl: Option<&Bound<'_, PyAny>>, by: Option<&Bound<'_, PyAny>>) -> PyResult<Call<()>> {
        match (ttl, by) {
            (None, None) => Ok(self.core.renew_now()),
            (Some(ttl), None) => Ok(self.core.extend(seconds("ttl", ttl)?)),
            (None, Some(by)) => Ok(self.core.extend_by(seconds("by", by)?)),
            (Some(_), Some(by)) => Err(refuse("by", by, "extend() takes a ttl or by, not both")),
        }
    }

    /// Releases in the background, for nobody who could wait.
    pub(crate) fn give_back(&self) {
        self.core.leave().then(drop);
    }

    pub(crate) fn not_picklable(&self) -> PyErr {
        let text = "a held lock can't be pickled: to move it to another process, send what hand_over() returns, and adopt() that";
        PyTypeError::new_err(text)
    }

    pub(crate) fn shown(&self, class: &str) -> String {
        let state = if self.core.is_valid() { "valid" } else { "not valid" };
        format!("<locktender.{class} {:?} fence={} {state}>", self.core.name(), self.core.fence())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(watched) = &self.watched {
            watched.end(self.core.check());
        }
        // Garbage. Not released: the work may still be running.
        if self.core.check().is_ok() {
            self.core.abandon();
            warn::<PyResourceWarning>(&format!(
                "held lock {:?} was dropped without release(): it is no longer renewed, and expires by itself",
                self.core.name()
            ));
        }
    }
}

/// The end of a body: the error of the body always wins over the lock's, which is attached to it.
pub(crate) fn settle(py: Python<'_>, left: PyResult<()>, error: Option<Bound<'_, PyAny>>) -> PyResult<()> {
    match (left, error) {
        (Err(lock_error), Some(error)) if lock_error.is_instance_of::<LockError>(py) => {
            own::call(py, |own| &own.attach, (lock_error, error)).map(drop)
        }
        (left, _) => left,
    }
}
