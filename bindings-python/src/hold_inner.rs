//! A hold: what the handles for threads and for tasks have in common.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use locktender::host::is_open;
use locktender::{Call, Code};
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::arguments::{refuse, seconds};
use crate::errors::{LockError, LockLostError, invalid, raised};
use crate::frames::Caller;
use crate::garbage::{during_a_visit, warn_of_hold};
use crate::guarded::Guarded;
use crate::losses::Watched;
use crate::members::missing;
use crate::options::OnLost;
use crate::seconds::in_seconds;
use crate::{frames, own};

/// The core's hold: of a lock, of several, an attempt of a job, or a term of a leader.
pub(crate) enum Core {
    Lock(locktender::Hold),
    /// Of several locks.
    Several(locktender::Hold),
    Attempt(locktender::Attempt),
    Leadership(locktender::Leadership),
}

impl Deref for Core {
    type Target = locktender::Hold;

    fn deref(&self) -> &locktender::Hold {
        match self {
            Self::Lock(held) | Self::Several(held) => held,
            Self::Attempt(attempt) => attempt,
            Self::Leadership(leadership) => leadership,
        }
    }
}

/// Where a hold comes from: its client, and what its loss does.
pub(crate) struct Origin {
    pub(crate) client: Py<PyAny>,
    pub(crate) on_lost: Option<OnLost>,
}

/// The core's hold with what `Hold` and `AsyncHold` share: they differ in how they wait.
pub(crate) struct HoldInner {
    pub(crate) core: Core,
    /// Whether a loss cancels the task that runs the body.
    pub(crate) cancels: bool,
    /// A body was entered.
    entered: AtomicBool,
    /// The frame of the open body, kept so that the core can know the body by its address.
    frame: Guarded<Option<Py<PyAny>>>,
    watched: Option<Watched>,
}

impl HoldInner {
    pub(crate) fn new(py: Python<'_>, held: Core, on_lost: Option<OnLost>) -> PyResult<Arc<Self>> {
        let cancels = OnLost::cancels(on_lost.as_ref());
        let watched = match on_lost {
            Some(OnLost::Call(callable)) => Some(Watched::new(py, &held, callable)?),
            _ => None,
        };
        Ok(Arc::new(Self { core: held, cancels, entered: AtomicBool::new(false), frame: Guarded::default(), watched }))
    }

    /// What a loss does, for another hold in the place of this one.
    pub(crate) fn on_lost(&self, py: Python<'_>) -> Option<OnLost> {
        self.watched.as_ref().and_then(|watched| watched.callable(py)).map(OnLost::Call)
    }

    /// Begins a body: the lock is held, and no other body's end will release it.
    pub(crate) fn enter<'py>(&self, py: Python<'py>) -> PyResult<Caller<'py>> {
        raised(py, self.core.check())?;
        if self.entered.swap(true, Ordering::Relaxed) {
            let text = format!(
                "lock {:?}: this hold is in a `with` already, whose end would release it inside of this one",
                self.core.name()
            );
            return Err(invalid(py, self.core.name(), &text));
        }
        let caller = frames::caller(py)?;
        let number = caller.running.as_ref().map_or(0, |frame| frame.as_ptr() as u64);
        drop(self.frame.replace(caller.running.clone().map(Bound::unbind)));
        self.core.enter(caller.task, caller.place.as_deref(), number);
        Ok(caller)
    }

    pub(crate) fn extend(&self, ttl: Option<&Bound<'_, PyAny>>, by: Option<&Bound<'_, PyAny>>) -> PyResult<Call<()>> {
        match (ttl, by) {
            (None, None) => Ok(self.core.renew_now()),
            (Some(ttl), None) => Ok(self.core.extend(seconds("ttl", ttl)?)),
            (None, Some(by)) => Ok(self.core.extend_by(seconds("by", by)?)),
            (Some(_), Some(by)) => Err(refuse("by", by, "extend() takes a ttl or by, not both")),
        }
    }

    /// What is noted if a body ends by this error: `None` unless it is the failure of a job's attempt. An interrupt meanwhile gives
    /// the attempt back.
    pub(crate) fn failure(&self, error: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
        let is_open = matches!(&self.core, Core::Attempt(attempt) if is_open(attempt));
        let Some(error) = error.filter(|_| is_open) else { return Ok(None) };
        let failure = || match self.is_lost() && self.is_loss(error)? {
            true => Ok(None),
            false => own::call(error.py(), "_failure", "failure", (error,))?.extract(),
        };
        failure().inspect_err(|_| self.give_back())
    }

    /// Ends a body. Of a job's attempt it may be a failure, unless the attempt was ended before.
    pub(crate) fn leave(&self, failure: Option<String>) -> Call<()> {
        drop(self.frame.take());
        match (&self.core, failure) {
            (Core::Attempt(attempt), Some(failure)) if is_open(attempt) => attempt.fail(failure),
            _ => self.core.leave(),
        }
    }

    fn is_lost(&self) -> bool {
        self.core.check().is_err_and(|error| error.code() == Code::LockLost)
    }

    /// Whether this error is the loss of this lock, also after its release.
    pub(crate) fn is_loss(&self, error: &Bound<'_, PyAny>) -> PyResult<bool> {
        if !error.is_instance_of::<LockLostError>() {
            return Ok(false);
        }
        let lost = error.getattr(intern!(error.py(), "lock_name"))?.extract::<String>();
        Ok(lost.is_ok_and(|name| self.core.names().contains(&name.as_str())))
    }

    /// Gives back in the background what its caller did not get, or could not use: nobody has worked under it.
    pub(crate) fn undo(&self) {
        self.core.undo();
    }

    /// Releases in the background, for nobody who could wait.
    pub(crate) fn give_back(&self) {
        drop(self.frame.take());
        self.core.leave().then(drop);
    }

    /// The base of a handle of this hold.
    pub(crate) fn base(self: &Arc<Self>, client: Py<PyAny>) -> PyClassInitializer<BaseHold> {
        BaseHold { hold: Arc::clone(self), client }.into()
    }
}

impl Drop for HoldInner {
    fn drop(&mut self) {
        let check = self.core.check();
        let is_garbage = check.is_ok();
        // Not released: the work may still be running.
        if is_garbage {
            self.core.abandon();
        }
        if let Some(watched) = &self.watched {
            // The callable may be garbage, too.
            during_a_visit(|_| watched.end(&check));
        }
        if is_garbage {
            warn_of_hold(&self.core.names().join(", "));
        }
    }
}

/// What an error says, of an exception or of a text.
pub(crate) fn said(error: &Bound<'_, PyAny>) -> PyResult<String> {
    own::call(error.py(), "_failure", "said", (error,))?.extract()
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

/// What all holds have in common: they answer without I/O.
#[pyclass(module = "locktender._native", name = "_BaseHold", frozen, subclass)]
pub(crate) struct BaseHold {
    hold: Arc<HoldInner>,
    /// Kept alive: while a lock of it is held, the exit closes it.
    client: Py<PyAny>,
}

impl BaseHold {
    /// The client, for another hold.
    pub(crate) fn client(&self, py: Python<'_>) -> Py<PyAny> {
        self.client.clone_ref(py)
    }
}

#[pymethods]
impl BaseHold {
    /// The owner value: the value on the servers begins with it. Unique, and readable in ``redis-cli``.
    #[getter]
    fn owner(&self) -> &str {
        self.hold.core.owner()
    }

    /// How long, in seconds, the lock is guaranteed to be held if nothing renews it; 0 if it isn't held. No I/O.
    ///
    ///     if hold.remaining() > 5:
    ///         work_a_little()
    fn remaining(&self) -> f64 {
        in_seconds(self.hold.core.remaining())
    }

    /// Whether the lock is held now. No I/O; never true later than the servers' expiry.
    ///
    ///     if hold.is_valid():
    ///         work_a_little()
    pub(crate) fn is_valid(&self) -> bool {
        self.hold.core.is_valid()
    }

    /// Raises unless the lock is held now. No I/O.
    ///
    ///     hold.check()
    ///     write(row, fence=hold.fence)
    ///
    /// Raises :exc:`LockLostError`, :exc:`NotHeldError` after a release or a hand-over, :exc:`ForkedError` in a forked child.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        raised(py, self.hold.core.check())
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        missing(slf, name)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        self.hold.frame.traverse(|frame| visit.call(frame))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(match self.hold.core {
            Core::Several(_) => "held locks can't be pickled",
            _ => "a held lock can't be pickled: to move it to another process, send what hand_over() returns, and adopt() that",
        }))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (class, core) = (slf.get_type().name()?, &slf.get().hold.core);
        let state = if core.is_valid() { "valid" } else { "not valid" };
        Ok(match core {
            Core::Several(held) => format!("<locktender.{class} {:?} {state}>", held.fences()),
            _ => format!("<locktender.{class} {:?} fence={} {state}>", core.name(), core.fence()),
        })
    }
}
