//! `Lock`: a name and options; what it acquires is a `Hold`, or an `AsyncHold`.

mod acquired;
mod kind;
mod named;

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};

pub(crate) use self::kind::Kind;
use self::named::Name;
pub(crate) use self::named::checked;
use crate::arguments::{refuse, text};
use crate::async_hold::AsyncHold;
use crate::client::Client;
use crate::entries::{Entered, Entries};
use crate::errors::NotHeldError;
use crate::garbage::Farewell;
use crate::guarded::Refer;
use crate::hold::Hold;
use crate::hold_inner::settle;
use crate::lock_values::LockInfo;
use crate::members::missing;
use crate::not_taken::{NoArguments, NoOptions};
use crate::operation::Operation;
use crate::options::LockChoice;
use crate::visit::Visit;
use crate::{context, default, frames, own, waiting};

/// A lock: a name and options. Made by :meth:`Client.lock` or :func:`lock`; does no I/O by itself.
///
/// It may be shared by threads and tasks, and used again, also at the same time. Not re-entrant: a thread, task or greenlet that
/// would wait for a lock which it holds in a ``with`` gets a :exc:`DeadlockError` at once, with the line that took it. One
/// attempt (``try_acquire()``, ``wait=0``) finds the lock busy instead. Where the ``with`` is in a suspended generator, another thread
/// may end it: there it waits, and after 5 s an event ``warning`` says that it may wait for itself.
///
///     with lock as hold: ...            # blocks; LockLostError at the end if it was lost meanwhile
///     async with lock as hold: ...      # the body is cancelled if it is lost
///     @lock
///     def locked(): ...                 # around every call; {parameter} in the name is filled from the arguments
///
/// As a decorator, and only there, the name is a template (``{{tag}}`` is a literal ``{tag}``) or a callable that makes the name from
/// the arguments. A :exc:`LockLostError` of a decorated function carries what it had returned as ``result``. A function that returns
/// before its work is done is refused: a generator, a context manager, one that returns a coroutine, a task or a future.
///
/// It pickles by its name and options, with its client: by the client's ``name``, or else by its configuration, **passwords
/// included**. See :class:`Client`. A lock of the default client becomes one of the other process's default client.
#[pyclass(module = "locktender", frozen, weakref)]
pub(crate) struct Lock {
    /// `None`: the default client, whichever that is when it is needed.
    client: Option<Py<Client>>,
    kind: Kind,
    name: Name,
    choice: LockChoice,
    /// The core's lock, checked, once it is known of which client.
    core: PyOnceLock<locktender::Lock>,
    /// As they were given: what it pickles with.
    options: Option<Py<PyDict>>,
    entries: Entries<Hold>,
    async_entries: Entries<AsyncHold>,
    farewell: Farewell,
}

say_farewell!(Lock);

/// Makes what Python gets from what the core's lock gave.
type Convert<T> = fn(Python<'_>, &Lock, Py<Client>, T) -> PyResult<Py<PyAny>>;

impl Lock {
    pub(crate) fn new(
        client: Option<Py<Client>>,
        kind: Kind,
        name: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = name.py();
        let choice = LockChoice::parse(py, options)?;
        let options = options.map(|options| options.clone().unbind());
        let name = if name.is_callable() {
            own::call(py, |own| &own.refuse_bare, (name, false))?;
            Name::Maker(name.clone().unbind())
        } else {
            Name::Text(checked(name, client.as_ref().map(|client| client.get().core()), kind, &choice)?)
        };
        if let Some(text) = choice.suspicion() {
            own::call(py, |own| &own.warn, (&client, name.text(), text))?;
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
        let name = match &self.name {
            Name::Text(name) => name,
            Name::Maker(maker) => return Err(refuse("name", maker.bind(py), "a callable names locks only in a decorator")),
        };
        let _visit = Visit::begin(py)?;
        let client = client.get();
        client.listen(py)?;
        let make = || {
            let lock = self.kind.of(client.core(), name).settings(self.choice.settings.clone());
            // Its outcome is kept: who acquires doesn't check again. What is wrong is said by the operation.
            let _ = lock.validate();
            lock
        };
        let lock = match self.core.get(py) {
            Some(lock) => lock.clone(),
            None => {
                let lock = make();
                // The default client may be another one tomorrow.
                if self.client.is_some() {
                    let _ = self.core.set(py, lock.clone());
                }
                lock
            }
        };
        Ok(lock.caller_in(context::current(py)?, |body| frames::runs(py, body)))
    }

    /// An operation of this lock: `call` starts it when it is awaited.
    fn operation<T: Send + 'static>(
        slf: &Bound<'_, Self>,
        name: &'static str,
        call: impl FnOnce(&locktender::Lock) -> locktender::Call<T> + Send + 'static,
        convert: Convert<T>,
    ) -> PyResult<Operation> {
        let client = slf.get().client(slf.py())?;
        let (lock, used) = (slf.clone().unbind(), client.clone_ref(slf.py()));
        let kept = slf.clone().unbind();
        let call = move |py: Python<'_>| Ok(call(&lock.get().core(used.bind(py))?));
        Ok(Operation::new(name, call, move |py, value| convert(py, kept.get(), client, value)))
    }

    /// What the exit of the calling task or thread ends.
    fn closing<T: Entered>(&self, py: Python<'_>, entries: &Entries<T>) -> PyResult<Py<T>> {
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
        Ok(own::call(slf.py(), |own| &own.decorate, (slf, name, function, when_busy))?.unbind())
    }
}

#[pymethods]
impl Lock {
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
    fn acquire(&self, py: Python<'_>, _arguments: NoArguments, _options: Option<NoOptions>) -> PyResult<Py<Hold>> {
        self.acquired(py)
    }

    /// :meth:`acquire`, under asyncio. Cancelling the task gives the attempt up, and leaves nothing behind.
    #[pyo3(signature = (*_arguments, **_options), text_signature = "($self)")]
    fn acquire_async(slf: &Bound<'_, Self>, _arguments: NoArguments, _options: Option<NoOptions>) -> PyResult<Operation> {
        Self::operation(slf, "acquire_async", locktender::Lock::acquire, |py, lock, client, held| {
            Ok(lock.async_hold(py, client, held)?.into_any())
        })
        .map(Operation::acquiring)
    }

    /// Tries once: ``None`` if the lock is busy. Raises what :meth:`acquire` raises, but :exc:`AcquireTimeoutError`.
    ///
    ///     if hold := client.lock("nightly").try_acquire():
    ///         with hold: ...
    #[pyo3(signature = (*_arguments, **_options), text_signature = "($self)")]
    fn try_acquire(&self, py: Python<'_>, _arguments: NoArguments, _options: Option<NoOptions>) -> PyResult<Option<Py<Hold>>> {
        self.tried(py)
    }

    /// :meth:`try_acquire`, under asyncio.
    #[pyo3(signature = (*_arguments, **_options), text_signature = "($self)")]
    fn try_acquire_async(slf: &Bound<'_, Self>, _arguments: NoArguments, _options: Option<NoOptions>) -> PyResult<Operation> {
        Self::operation(slf, "try_acquire_async", locktender::Lock::try_acquire, |py, lock, client, held| {
            held.map_or_else(|| Ok(py.None()), |held| Ok(lock.async_hold(py, client, held)?.into_any()))
        })
        .map(Operation::acquiring)
    }

    /// Looks who holds the lock: ``None`` if nobody does. Changes nothing.
    ///
    ///     if info := client.lock("orders:42").inspect():
    ///         print(info.owner, info.remaining)
    ///
    /// Raises :exc:`UnavailableError`, :exc:`DeniedError`, :exc:`KeyConflictError`, :exc:`InvalidArgumentError`, :exc:`ClosedError`.
    fn inspect(&self, py: Python<'_>) -> PyResult<Option<LockInfo>> {
        let client = self.client(py)?;
        let info = waiting::block(py, self.core(client.bind(py))?.inspect())?;
        info.map(|info| LockInfo::new(py, info)).transpose()
    }

    /// :meth:`inspect`, under asyncio.
    fn inspect_async(slf: &Bound<'_, Self>) -> PyResult<Operation> {
        Self::operation(slf, "inspect_async", locktender::Lock::inspect, |py, _, _, info| LockInfo::or_none(py, info))
    }

    /// Ends the hold of the lock, whatever process has it: for an operator, when a holder hangs and still renews. Returns what was ended, or
    /// ``None`` if there was nothing to end. With ``owner`` only the hold with this owner value is ended. A value that no locktender wrote is
    /// ended only if it is given so: else it is a :exc:`KeyConflictError`.
    ///
    ///     info = client.lock("orders:42").inspect()
    ///     if info and input(f"{info.owner} holds it. End that? ") == "yes":
    ///         client.lock("orders:42").force_release(owner=info.owner)
    ///
    /// **The holder continues until it notices**: its next renewal is refused, at most a third of its ttl later, and its hold is then lost.
    /// Until then two programs may work at the same time. Only a resource that compares fences is safe from that.
    ///
    /// Raises :exc:`UnavailableError` (the hold may have ended nevertheless), :exc:`DeniedError`, :exc:`KeyConflictError`,
    /// :exc:`InvalidArgumentError`, :exc:`ClosedError`.
    #[pyo3(signature = (*, owner=None), text_signature = "($self, *, owner=None)")]
    fn force_release(&self, py: Python<'_>, owner: Option<&Bound<'_, PyAny>>) -> PyResult<Option<LockInfo>> {
        let owner = owner.map(|owner| text("owner", owner)).transpose()?;
        let client = self.client(py)?;
        let ended = waiting::block(py, self.core(client.bind(py))?.force_release(owner.as_deref()))?;
        ended.map(|info| LockInfo::new(py, info)).transpose()
    }

    /// :meth:`force_release`, under asyncio.
    #[pyo3(signature = (*, owner=None), text_signature = "($self, *, owner=None)")]
    fn force_release_async(slf: &Bound<'_, Self>, owner: Option<&Bound<'_, PyAny>>) -> PyResult<Operation> {
        let owner = owner.map(|owner| text("owner", owner)).transpose()?;
        let begin = move |lock: &locktender::Lock| lock.force_release(owner.as_deref());
        Self::operation(slf, "force_release_async", begin, |py, _, _, info| LockInfo::or_none(py, info))
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

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<Hold>> {
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
            Ok(held.into_any())
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
        AsyncHold::leave(self.closing(py, &self.async_entries)?.bind(py), error)
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
            own::call(slf.py(), |own| &own.refuse_bare, (name, true))?;
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

    /// The same lock by another name.
    #[pyo3(signature = (name, template=None))]
    fn _named(&self, py: Python<'_>, name: &Bound<'_, PyAny>, template: Option<&str>) -> PyResult<Self> {
        let client = self.client.as_ref().map(|client| client.clone_ref(py));
        let options = self.options.as_ref().map(|options| options.clone_ref(py));
        let (name, mut choice) = (Name::Text(text("name", name)?), self.choice.refer(py));
        choice.count_under(template);
        Ok(Self::made(client, self.kind, name, choice, options))
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
        own::call(py, |own| &own.reduced_lock, parts)?.extract()
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// The name; ``None`` if a callable makes it.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.name.text()
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        missing(slf, name)
    }

    fn __repr__(&self) -> String {
        self.name().map_or_else(|| "<locktender.Lock>".to_owned(), |name| format!("<locktender.Lock {name:?}>"))
    }
}
