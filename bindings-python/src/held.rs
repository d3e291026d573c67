//! `Held`: one acquisition, for code that blocks.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};

use locktender::Call;
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyResourceWarning, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::arguments::{refuse, seconds};
use crate::client::Client;
use crate::errors::{LockError, invalid, raised};
use crate::frames::Standing;
use crate::guarded::Refer;
use crate::losses::Watched;
use crate::options::OnLost;
use crate::values::{Loss, Release};
use crate::{context, frames, own, waiting};

/// A lock that is held: until it is released, handed over, or lost. Made by :meth:`Lock.acquire`.
///
/// It is renewed in the background, whatever holds the interpreter. Any thread may use it. ``with`` releases it at the end, unless
/// that was done; if it was lost meanwhile, :exc:`LockLostError` is raised, or attached to the error of the body. It has one body:
/// entering it raises what :meth:`check` raises, so :exc:`NotHeldError` after a release and :exc:`LockLostError` after a loss, and
/// :exc:`InvalidArgumentError` inside of the body itself.
///
/// Garbage-collected without a release it is no longer renewed and expires by itself, with a :exc:`ResourceWarning`.
#[pyclass(module = "locktender", frozen, weakref)]
pub(crate) struct Held {
    core: Tended,
    /// Closed at exit as long as somebody holds a lock of it.
    client: Py<Client>,
}

impl Held {
    pub(crate) fn new(
        py: Python<'_>,
        client: Py<Client>,
        held: locktender::Held,
        on_lost: Option<&OnLost>,
    ) -> PyResult<Py<Self>> {
        let on_lost = on_lost.map_or_else(|| client.get().on_lost(py), |on_lost| Some(on_lost.refer(py)));
        Py::new(py, Self { core: Tended::new(py, held, on_lost)?, client })
    }

    /// Begins the body of a lock that was acquired for it: without a body it is given back.
    pub(crate) fn begin<'py>(&self, py: Python<'py>) -> PyResult<Standing<'py>> {
        self.core.enter(py).inspect_err(|_| self.core.give_back())
    }

    /// Ends a body, which may have failed.
    pub(crate) fn leave(&self, py: Python<'_>, error: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        settle(py, waiting::block(py, self.core.0.leave()), error)
    }

    /// See [`Tended::give_back`].
    pub(crate) fn give_back(&self) {
        self.core.give_back();
    }
}

#[pymethods]
impl Held {
    /// The lock's name.
    #[getter]
    fn name(&self) -> &str {
        self.core.0.name()
    }

    /// The value on the servers: unique, and readable in ``redis-cli``.
    #[getter]
    fn owner(&self) -> &str {
        self.core.0.owner()
    }

    /// The fencing token: larger than that of every earlier hold of this name. Let the resource refuse smaller ones.
    #[getter]
    fn fence(&self) -> u64 {
        self.core.0.fence()
    }

    /// How long, in seconds, the lock is surely held if nothing renews it; 0 if it isn't held. No I/O.
    fn remaining(&self) -> f64 {
        self.core.0.remaining().as_secs_f64()
    }

    /// Whether the lock is held now. No I/O; never true later than the servers' expiry.
    fn is_valid(&self) -> bool {
        self.core.0.is_valid()
    }

    /// Raises unless the lock is held now. No I/O.
    ///
    /// Raises :exc:`LockLostError`, :exc:`NotHeldError` after a release or a hand-over, :exc:`ForkedError` in a forked child.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        raised(py, self.core.0.check())
    }

    /// Makes at least ``ttl`` remain (nothing given: the lock's own), or ``by`` more than :meth:`remaining` says now. Never
    /// shortens.
    ///
    ///     held.extend(60)     # at least a minute from now
    ///     held.extend(by=10)  # ten seconds more than now
    ///
    /// Raises :exc:`LockLostError`, :exc:`NotHeldError`, :exc:`InvalidArgumentError`, :exc:`ForkedError`, and
    /// :exc:`UnavailableError` if no majority answers (the lock is still held while :meth:`is_valid` says so).
    #[pyo3(signature = (ttl=None, *, by=None))]
    fn extend(&self, py: Python<'_>, ttl: Option<&Bound<'_, PyAny>>, by: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        waiting::block(py, self.core.extend(ttl, by)?)
    }

    /// Waits, at most ``timeout`` seconds, until the lock is lost: how, or ``None`` if it isn't, or was released.
    #[pyo3(signature = (timeout=None))]
    fn wait_lost(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Loss>> {
        let patience = timeout.map(|timeout| seconds("timeout", timeout)).transpose()?;
        let loss = waiting::block_for(py, self.core.0.ended(), patience)?;
        Ok(loss.flatten().map(Loss::from))
    }

    /// Gives the lock back, and tells what was found.
    ///
    /// Raises :exc:`UnavailableError` if the outcome stays unknown: the release goes on in the background, and may be called again
    /// to learn it. :exc:`NotHeldError` if it was released or handed over before, :exc:`ForkedError` in a forked child.
    fn release(&self, py: Python<'_>) -> PyResult<Release> {
        waiting::block(py, self.core.0.release()).map(Release::from)
    }

    /// Ends this hold without releasing, and returns a single-use text for :meth:`Client.adopt` in another process. Until then,
    /// at most for what remains of the ttl, the lock stays taken.
    ///
    /// Raises :exc:`LockLostError`, :exc:`NotHeldError`, :exc:`ForkedError`.
    fn hand_over(&self, py: Python<'_>) -> PyResult<String> {
        let result = py.detach(|| self.core.0.hand_over());
        raised(py, result)
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().core.enter(py)?;
        Ok(slf)
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, error: Option<Bound<'_, PyAny>>, _traceback: Py<PyAny>) -> PyResult<()> {
        self.leave(py, error)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(self.core.not_picklable())
    }

    fn __repr__(&self) -> String {
        self.core.shown("Held")
    }
}

/// The end of a body: the error of the body always wins over the lock's, which is attached to it.
pub(crate) fn settle(py: Python<'_>, left: PyResult<()>, error: Option<Bound<'_, PyAny>>) -> PyResult<()> {
    match (left, error) {
        (Err(lock_error), Some(error)) if lock_error.is_instance_of::<LockError>(py) => {
            own::call(py, "_bodies", "attach", (lock_error, error)).map(drop)
        }
        (left, _) => left,
    }
}

/// The core's hold with what `Held` and `AsyncHeld` share: they differ in how they wait.
pub(crate) struct Tended(pub(crate) locktender::Held, AtomicBool, Option<Watched>);

impl Tended {
    pub(crate) fn new(py: Python<'_>, held: locktender::Held, on_lost: Option<OnLost>) -> PyResult<Self> {
        let watched = match on_lost {
            Some(OnLost::Call(callable)) => Some(Watched::new(py, &held, callable)?),
            _ => None,
        };
        Ok(Self(held, AtomicBool::new(false), watched))
    }

    /// Begins a body: the lock is held, and no other body's end will release it.
    pub(crate) fn enter<'py>(&self, py: Python<'py>) -> PyResult<Standing<'py>> {
        raised(py, self.0.check())?;
        if self.1.swap(true, Ordering::Relaxed) {
            let text = format!(
                "lock {:?}: this hold is in a `with` already, whose end would release it inside of this one",
                self.0.name()
            );
            return Err(invalid(py, self.0.name(), &text));
        }
        let standing = frames::standing(py)?;
        self.0.enter(context::current(py)?, standing.place.as_deref());
        Ok(standing)
    }

    pub(crate) fn extend(&self, ttl: Option<&Bound<'_, PyAny>>, by: Option<&Bound<'_, PyAny>>) -> PyResult<Call<()>> {
        match (ttl, by) {
            (None, None) => Ok(self.0.renew_now()),
            (Some(ttl), None) => Ok(self.0.extend(seconds("ttl", ttl)?)),
            (None, Some(by)) => Ok(self.0.extend_by(seconds("by", by)?)),
            (Some(_), Some(by)) => Err(refuse("by", by, "extend() takes a ttl or by, not both")),
        }
    }

    /// Releases in the background, for nobody who could wait.
    pub(crate) fn give_back(&self) {
        self.0.leave().then(drop);
    }

    pub(crate) fn not_picklable(&self) -> PyErr {
        let text = "a held lock can't be pickled: to move it to another process, send what hand_over() returns, and adopt() that";
        PyTypeError::new_err(text)
    }

    pub(crate) fn shown(&self, class: &str) -> String {
        let state = if self.0.is_valid() { "valid" } else { "not valid" };
        format!("<locktender.{class} {:?} fence={} {state}>", self.0.name(), self.0.fence())
    }
}

impl Drop for Tended {
    fn drop(&mut self) {
        if let Some(watched) = &self.2 {
            watched.end(self.0.check());
        }
        // Garbage. Not released: the work may still be running.
        if self.0.check().is_ok() {
            self.0.abandon();
            warn::<PyResourceWarning>(&format!(
                "held lock {:?} was dropped without release(): it is no longer renewed, and expires by itself",
                self.0.name()
            ));
        }
    }
}

/// A warning from a destructor: what is being raised meanwhile stays as it is, and an interpreter that ends isn't bothered.
pub(crate) fn warn<W: PyTypeInfo>(text: &str) {
    let text = CString::new(text.replace('\0', "?")).unwrap_or_default();
    let _ = Python::try_attach(|py| {
        let raised = PyErr::take(py);
        if let Err(refused) = PyErr::warn(py, &py.get_type::<W>(), &text, 1) {
            refused.write_unraisable(py, None);
        }
        if let Some(raised) = raised {
            raised.restore(py);
        }
    });
}
