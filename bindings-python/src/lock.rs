//! `Lock` and `MultiLock`: names and options; what they acquire is a hold, for threads or for tasks.

mod acquired;
mod kind;
mod multi;
mod named;
mod one;

use locktender::host::Place;
use pyo3::PyClass;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

pub(crate) use self::kind::Kind;
pub(crate) use self::multi::MultiLock;
use self::named::Name;
pub(crate) use self::named::checked;
pub(crate) use self::one::Lock;
use crate::arguments::refuse;
use crate::async_hold::TaskHold;
use crate::client::Client;
use crate::entries::Entries;
use crate::errors::NotHeldError;
use crate::garbage::Farewell;
use crate::guarded::Refer;
use crate::hold::ThreadHold;
use crate::hold_inner::{BaseHold, settle};
use crate::members::missing;
use crate::not_taken::{NoArguments, NoOptions};
use crate::operation::Operation;
use crate::options::LockChoice;
use crate::visit::Visit;
use crate::{context, default, frames, own};

/// What one lock and several have in common.
#[pyclass(module = "locktender._native", name = "_BaseLock", frozen, weakref, subclass)]
pub(crate) struct BaseLock {
    /// `None`: the default client, whichever that is when it is needed.
    client: Option<Py<Client>>,
    kind: Kind,
    name: Name,
    choice: LockChoice,
    /// The core's lock, checked, once it is known of which client.
    core: PyOnceLock<locktender::Lock>,
    /// As they were given: what it pickles with.
    options: Option<Py<PyDict>>,
    entries: Entries<ThreadHold>,
    async_entries: Entries<TaskHold>,
    farewell: Farewell,
}

say_farewell!(BaseLock);

impl BaseLock {
    fn new(
        client: Option<Py<Client>>,
        kind: Kind,
        name: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = name.py();
        let choice = LockChoice::parse(py, options, Place::Lock)?;
        let options = options.map(|options| options.clone().unbind());
        let name = if name.is_callable() {
            own::call(py, "_not_run", "refuse_bare", (name, false))?;
            Name::Maker(name.clone().unbind())
        } else {
            Name::checked(name, client.as_ref().map(|client| client.get().core()), kind, &choice)?
        };
        if let Some(text) = choice.suspicion() {
            own::call(py, "_warnings", "warn", (&client, name.shown(), text))?;
        }
        Ok(Self::made(client, kind, name, choice, options))
    }

    fn made(client: Option<Py<Client>>, kind: Kind, name: Name, choice: LockChoice, options: Option<Py<PyDict>>) -> Self {
        let (entries, async_entries) = (Entries::default(), Entries::default());
        Self {
            client,
            kind,
            name,
            choice,
            core: PyOnceLock::new(),
            options,
            entries,
            async_entries,
            farewell: Farewell::default(),
        }
    }

    fn client(&self, py: Python<'_>) -> PyResult<Py<Client>> {
        self.client.as_ref().map_or_else(|| default::client(py), |client| Ok(client.clone_ref(py)))
    }

    /// The core's lock, for this caller.
    fn core(&self, client: &Bound<'_, Client>) -> PyResult<locktender::Lock> {
        let py = client.py();
        if let Name::Maker(maker) = &self.name {
            return Err(refuse("name", maker.bind(py), "a callable names locks only in a decorator"));
        }
        let _visit = Visit::begin(py)?;
        let client = client.get();
        client.listen(py)?;
        let lock = match self.core.get(py) {
            Some(lock) => lock.clone(),
            None => {
                let lock = self.kind.of(client.core(), self.name.texts()).settings(self.choice.settings.clone());
                // Its outcome is kept: who acquires doesn't check again. What is wrong is said by the operation.
                let _ = lock.validate();
                // The default client may be another one tomorrow.
                if self.client.is_some() {
                    let _ = self.core.set(py, lock.clone());
                }
                lock
            }
        };
        Ok(lock.caller_in(context::current(py)?, |body| frames::runs(py, body)))
    }

    /// An operation of this lock: `call` starts it when it is awaited, and `convert` makes what Python gets of what the core gave.
    fn operation<T: Send + 'static, R: for<'py> IntoPyObject<'py> + 'static>(
        slf: &Bound<'_, Self>,
        name: &'static str,
        call: impl FnOnce(&locktender::Lock) -> locktender::Call<T> + Send + 'static,
        convert: fn(Python<'_>, &Self, Py<Client>, T) -> PyResult<R>,
    ) -> PyResult<Operation> {
        let client = slf.get().client(slf.py())?;
        let used = client.clone_ref(slf.py());
        let call = move |lock: &Bound<'_, Self>| Ok(call(&lock.get().core(used.bind(lock.py()))?));
        Ok(Operation::of(slf, name, call, move |lock, value| convert(lock.py(), lock.get(), client, value)))
    }

    /// What the exit of the calling task or thread ends.
    fn closing<T: PyClass<BaseType = BaseHold>>(&self, py: Python<'_>, entries: &Entries<T>) -> PyResult<Py<T>> {
        let caller = frames::caller(py)?;
        entries.close(py, caller.task, caller.frame.as_ref()).ok_or_else(|| {
            NotHeldError::new_err(format!(
                "{}: which of its holds this exit would end is unknown: use `with lock.acquire() as held`",
                self.__repr__()
            ))
        })
    }

    /// The decorated function; `when_busy` says what a call does while the lock is held.
    fn decorated(slf: &Bound<'_, Self>, function: Py<PyAny>, when_busy: &str) -> PyResult<Py<PyAny>> {
        let name = slf.get().name.object(slf.py())?;
        Ok(own::call(slf.py(), "_decorator", "decorate", (slf, name, function, when_busy))?.unbind())
    }
}

#[pymethods]
impl BaseLock {
    /// Acquires the lock, waiting for it at most ``wait``. Ctrl-C ends the wait, and leaves nothing behind.
    ///
    ///     hold = client.lock("orders:42", wait=5).acquire()
    ///     try:
    ///         write(row, fence=hold.fence)
    ///     finally:
    ///         hold.release()
    ///
    /// Raises :exc:`AcquireTimeoutError`, :exc:`UnavailableError`, :exc:`DeniedError`, :exc:`KeyConflictError`,
    /// :exc:`InvalidArgumentError`, :exc:`ClosedError`.
    #[pyo3(signature = (*_arguments, **_options), text_signature = "($self)")]
    fn acquire(&self, py: Python<'_>, _arguments: NoArguments, _options: Option<NoOptions>) -> PyResult<Py<ThreadHold>> {
        self.acquired(py)
    }

    /// :meth:`acquire`, under asyncio. Cancelling the task ends the wait, and leaves nothing behind.
    #[pyo3(signature = (*_arguments, **_options), text_signature = "($self)")]
    fn acquire_async(slf: &Bound<'_, Self>, _arguments: NoArguments, _options: Option<NoOptions>) -> PyResult<Operation> {
        Self::operation(slf, "acquire_async", locktender::Lock::acquire, |py, lock, client, held| {
            lock.async_hold(py, client, held)
        })
        .map(Operation::acquiring)
    }

    /// Tries once: ``None`` if the lock is busy. Raises what :meth:`acquire` raises, but :exc:`AcquireTimeoutError`.
    ///
    ///     if hold := client.lock("nightly").try_acquire():
    ///         with hold: ...
    #[pyo3(signature = (*_arguments, **_options), text_signature = "($self)")]
    fn try_acquire(
        &self,
        py: Python<'_>,
        _arguments: NoArguments,
        _options: Option<NoOptions>,
    ) -> PyResult<Option<Py<ThreadHold>>> {
        self.tried(py)
    }

    /// :meth:`try_acquire`, under asyncio.
    #[pyo3(signature = (*_arguments, **_options), text_signature = "($self)")]
    fn try_acquire_async(slf: &Bound<'_, Self>, _arguments: NoArguments, _options: Option<NoOptions>) -> PyResult<Operation> {
        Self::operation(slf, "try_acquire_async", locktender::Lock::try_acquire, |py, lock, client, held| {
            held.map(|held| lock.async_hold(py, client, held)).transpose()
        })
        .map(Operation::acquiring)
    }

    /// Not here: ``release()`` is a method of what ``acquire()`` returned. Always raises :exc:`NotHeldError`.
    #[pyo3(signature = (*_arguments, **_options))]
    fn release(&self, _arguments: &Bound<'_, PyAny>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        Err(self.not_held("release"))
    }

    /// Not here: ``extend()`` is a method of what ``acquire()`` returned. Always raises :exc:`NotHeldError`.
    #[pyo3(signature = (*_arguments, **_options))]
    fn extend(&self, _arguments: &Bound<'_, PyAny>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        Err(self.not_held("extend"))
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<ThreadHold>> {
        let held = self.acquired(py)?;
        let caller = held.get().begin(py)?;
        self.entries.open(caller.task, caller.frame, held.clone_ref(py));
        Ok(held)
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, error: Option<Bound<'_, PyAny>>, _traceback: Py<PyAny>) -> PyResult<()> {
        match self.closing(py, &self.entries) {
            Ok(held) => held.get().leave(py, error),
            Err(unknown) => settle(py, Err(unknown), error),
        }
    }

    fn __aenter__(slf: &Bound<'_, Self>) -> PyResult<Operation> {
        Self::operation(slf, "__aenter__", locktender::Lock::acquire, |py, lock, client, held| {
            let held = lock.async_hold(py, client, held)?;
            let caller = held.get().begin(py)?;
            lock.async_entries.open(caller.task, caller.frame, held.clone_ref(py));
            Ok(held)
        })
        .map(Operation::acquiring)
    }

    fn __aexit__(
        &self,
        py: Python<'_>,
        _kind: Py<PyAny>,
        error: Option<Bound<'_, PyAny>>,
        _traceback: Py<PyAny>,
    ) -> PyResult<Operation> {
        TaskHold::leave(self.closing(py, &self.async_entries)?.bind(py), error)
    }

    /// The decorator.
    #[pyo3(signature = (*arguments, **options))]
    fn __call__(
        slf: &Bound<'_, Self>,
        arguments: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let function = arguments.get_item(0).ok().filter(|_| arguments.len() == 1 && options.is_none());
        if let Name::Maker(name) = &slf.get().name
            && !function.as_ref().is_some_and(|function| function.is_callable())
        {
            // The function under a bare @lock, which the program calls.
            own::call(slf.py(), "_not_run", "refuse_bare", (name, true))?;
        }
        let function = function.ok_or_else(|| PyTypeError::new_err("a lock is called with one function, which it decorates"))?;
        Self::decorated(slf, function.unbind(), "wait")
    }

    /// The decorator that runs nothing, and returns ``None``, when the lock is busy. It tries once; ``wait`` doesn't count.
    ///
    ///     @lock("nightly").skip_if_busy
    ///     def nightly() -> None: ...
    #[pyo3(signature = (function, /))]
    fn skip_if_busy(slf: &Bound<'_, Self>, function: Py<PyAny>) -> PyResult<Py<PyAny>> {
        Self::decorated(slf, function, "skip")
    }

    /// As :meth:`skip_if_busy`, but the answer distinguishes "it didn't run" from "it returned ``None``": a :class:`TryOutcome`.
    ///
    ///     @lock("nightly").try_run
    ///     def nightly() -> int: ...
    ///
    ///     if (answer := nightly()).ran:
    ///         print(answer.result)
    #[pyo3(signature = (function, /))]
    fn try_run(slf: &Bound<'_, Self>, function: Py<PyAny>) -> PyResult<Py<PyAny>> {
        Self::decorated(slf, function, "try_run")
    }

    /// The same lock by another name, or the same locks by others.
    #[pyo3(signature = (name, template=None))]
    fn _named(&self, py: Python<'_>, name: &Bound<'_, PyAny>, template: Option<&str>) -> PyResult<Py<Self>> {
        let client = self.client.as_ref().map(|client| client.clone_ref(py));
        let options = self.options.as_ref().map(|options| options.clone_ref(py));
        let (name, mut choice) = (Name::given(name, self.kind)?, self.choice.refer(py));
        choice.count_under(template);
        let named = Self::made(client, self.kind, name, choice, options);
        match self.kind {
            Kind::Several => Ok(MultiLock::of(py, named)?.into_bound(py).into_super().unbind()),
            _ => Ok(Lock::of(py, named)?.into_bound(py).into_super().unbind()),
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(&self.options)?;
        self.choice.on_lost.as_ref().map_or(Ok(()), |on_lost| on_lost.traverse(&visit))?;
        if let Name::Maker(maker) = &self.name {
            visit.call(maker)?;
        }
        self.entries.traverse(&visit)?;
        self.async_entries.traverse(&visit)
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let parts = (&self.client, self.kind.method(), self.name.object(py)?, &self.options, self.kind.permits());
        own::call(py, "_pickle", "reduced", parts)?.extract()
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        missing(slf, name)
    }

    fn __repr__(&self) -> String {
        let class = if let Kind::Several = self.kind { "MultiLock" } else { "Lock" };
        let name = self.name.shown().map(|name| format!(" {name:?}")).unwrap_or_default();
        format!("<locktender.{class}{name}>")
    }
}
