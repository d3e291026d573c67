//! `AsyncHeld`: one acquisition, for code under asyncio. The same names as `Held`; what waits is a coroutine.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::arguments::seconds;
use crate::bridge::drain_of;
use crate::client::Client;
use crate::errors::raised;
use crate::guarded::Guarded;
use crate::held::Tended;
use crate::operation::Operation;
use crate::options::OnLost;
use crate::values::{Loss, Release};
use crate::{context, own};

/// A lock that is held, under asyncio. As :class:`Held`; what waits is a coroutine.
///
/// In the body of an ``async with`` a loss cancels the body's task, and the end of the body turns exactly that cancellation into
/// :exc:`LockLostError`; a cancellation from elsewhere passes through. With ``on_lost="flag"`` the body runs on.
#[pyclass(module = "locktender", frozen, weakref)]
pub(crate) struct AsyncHeld {
    core: Tended,
    client: Py<Client>,
    cancels: bool,
    /// The open `async with` body, see `_asyncio.py`.
    body: Guarded<Option<Py<PyAny>>>,
}

impl AsyncHeld {
    pub(crate) fn object(
        py: Python<'_>,
        client: Py<Client>,
        held: locktender::Held,
        on_lost: Option<OnLost>,
    ) -> PyResult<Py<PyAny>> {
        let on_lost = on_lost.or_else(|| client.get().on_lost(py));
        let cancels = matches!(on_lost, None | Some(OnLost::Cancel));
        Ok(Py::new(py, Self { core: Tended::new(py, held, on_lost)?, client, cancels, body: Guarded::default() })?.into_any())
    }

    /// An operation of this hold, which lives at least as long as it.
    fn operation<T: Send + 'static>(
        slf: &Bound<'_, Self>,
        name: &'static str,
        call: fn(&locktender::Held) -> locktender::Call<T>,
        convert: fn(Python<'_>, T) -> PyResult<Py<PyAny>>,
    ) -> Operation {
        let (held, kept) = (slf.clone().unbind(), slf.clone().unbind());
        Operation::new(
            name,
            move |_| Ok(call(&held.get().core.0)),
            move |py, value| {
                let _kept = kept;
                convert(py, value)
            },
        )
    }
}

#[pymethods]
impl AsyncHeld {
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

    /// Raises unless the lock is held now. No I/O. See :meth:`Held.check`.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        raised(py, self.core.0.check())
    }

    /// Makes at least ``ttl`` remain, or ``by`` more than remains now. See :meth:`Held.extend`.
    #[pyo3(signature = (ttl=None, *, by=None))]
    fn extend(slf: Py<Self>, py: Python<'_>, ttl: Option<Py<PyAny>>, by: Option<Py<PyAny>>) -> Operation {
        let kept = slf.clone_ref(py);
        let call = move |py: Python<'_>| {
            let bind = |value: &Option<Py<PyAny>>| value.as_ref().map(|value| value.bind(py).clone());
            slf.get().core.extend(bind(&ttl).as_ref(), bind(&by).as_ref())
        };
        Operation::new("extend", call, move |py, ()| {
            let _kept = kept;
            Ok(py.None())
        })
    }

    /// Waits, at most ``timeout`` seconds, until the lock is lost. See :meth:`Held.wait_lost`.
    #[pyo3(signature = (timeout=None))]
    fn wait_lost(slf: &Bound<'_, Self>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let timeout = timeout.map(|timeout| seconds("timeout", timeout)).transpose()?.map(|timeout| timeout.as_secs_f64());
        let ended = Self::operation(slf, "wait_lost", locktender::Held::ended, |py, loss| match loss {
            Some(loss) => Ok(Py::new(py, Loss::from(loss))?.into_any()),
            None => Ok(py.None()),
        });
        Ok(own::call(slf.py(), "_asyncio", "wait_lost", (ended, timeout))?.unbind())
    }

    /// Gives the lock back. Once started it goes on, also if the task is cancelled. See :meth:`Held.release`.
    fn release(slf: &Bound<'_, Self>) -> Operation {
        Self::operation(slf, "release", locktender::Held::release, |py, release| {
            Ok(Py::new(py, Release::from(release))?.into_any())
        })
    }

    /// Ends this hold without releasing. See :meth:`Held.hand_over`.
    fn hand_over(slf: Py<Self>) -> Operation {
        Operation::ready("hand_over", move |py| {
            let ticket = raised(py, py.detach(|| slf.get().core.0.hand_over()))?;
            Ok(ticket.into_pyobject(py)?.into_any().unbind())
        })
    }

    fn __aenter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        Ok(own::call(slf.py(), "_asyncio", "enter", (slf,))?.unbind())
    }

    fn __aexit__(slf: &Bound<'_, Self>, _kind: Py<PyAny>, error: Py<PyAny>, _traceback: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let body = slf.get().body.take();
        Ok(own::call(slf.py(), "_asyncio", "leave", (slf, body, error))?.unbind())
    }

    /// Begins a body.
    fn _enter(&self, py: Python<'_>) -> PyResult<()> {
        self.core.enter(py).map(drop)
    }

    /// `release()` as the end of a body does it.
    fn _leave(slf: &Bound<'_, Self>) -> Operation {
        Self::operation(slf, "__aexit__", locktender::Held::leave, |py, ()| Ok(py.None()))
    }

    /// The same for a body that can't wait.
    fn _give_back(&self) {
        self.core.give_back();
    }

    /// Notes the open body. Has `told` called on the running loop when the lock is lost; gives what `_unwatch` takes.
    fn _watch(&self, py: Python<'_>, body: Py<PyAny>, told: Py<PyAny>) -> PyResult<Option<u64>> {
        drop(self.body.replace(Some(body)));
        let Some(event_loop) = context::running_loop(py)? else { return Ok(None) };
        let drain = drain_of(&event_loop)?;
        let (number, signal) = drain.get().signal();
        drain.get().expect_callback(number, told);
        self.core.0.on_lost(move |_| signal.raise());
        Ok(Some(number))
    }

    fn _unwatch(&self, py: Python<'_>, number: u64) -> PyResult<()> {
        if let Some(event_loop) = context::running_loop(py)? {
            drain_of(&event_loop)?.get().forget(number);
        }
        Ok(())
    }

    /// Whether a loss cancels the body.
    #[getter]
    fn _cancels(&self) -> bool {
        self.cancels
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        self.body.traverse(|body| visit.call(body))
    }

    fn __clear__(&self) {
        drop(self.body.take());
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(self.core.not_picklable())
    }

    fn __repr__(&self) -> String {
        self.core.shown("AsyncHeld")
    }
}
