//! `Client`: the connection to one server or to a quorum.

pub(crate) mod opening;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use locktender::host::Place;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use crate::arguments::switch;
use crate::async_hold::AsyncHold;
use crate::clients::Callback;
use crate::election::Election;
use crate::garbage::{Farewell, during_a_visit};
use crate::guarded::Guarded;
use crate::hold::Hold;
use crate::job::Job;
use crate::lock::{Kind, Lock, MultiLock};
use crate::lock_values::{Grant, HoldInfo, LockInfo};
use crate::members::missing;
use crate::metrics::Metrics;
use crate::not_taken::{ByName, OneServer};
use crate::operation::Operation;
use crate::options::{LockChoice, OnLost, permits_of};
use crate::parts::Parts;
use crate::values::ServerReport;
use crate::{own, waiting};

#[doc = with_client_options!("Client(servers=None, *")]
#[doc = include_str!("client/client.txt")]
#[pyclass(module = "locktender", frozen, weakref)]
pub(crate) struct Client {
    core: locktender::Client,
    number: u64,
    /// By which it pickles.
    name: Option<String>,
    /// What about its options is probably a mistake.
    suspicion: Option<String>,
    on_lost: Guarded<Option<OnLost>>,
    on_event: Callback,
    credentials: Callback,
    has_callback: Arc<AtomicBool>,
    /// What it was made of: what it pickles as.
    parts: Guarded<Option<Arc<Parts>>>,
    farewell: Farewell,
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (servers=None, *_more, **options), text_signature = None)]
    fn new(
        py: Python<'_>,
        servers: Option<&Bound<'_, PyAny>>,
        _more: OneServer,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Self>> {
        Self::made(py, servers, options)
    }

    #[doc = with_lock_options!("lock($self, name, *")]
    #[doc = include_str!("client/lock.txt")]
    #[pyo3(signature = (name, *_more, **options), text_signature = None)]
    fn lock(slf: Py<Self>, name: &Bound<'_, PyAny>, _more: ByName, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Lock>> {
        Lock::new(Some(slf), Kind::Exclusive, name, options)
    }

    #[doc = with_lock_options!("read_lock($self, name, *")]
    #[doc = include_str!("client/read_lock.txt")]
    #[pyo3(signature = (name, *_more, **options), text_signature = None)]
    fn read_lock(
        slf: Py<Self>,
        name: &Bound<'_, PyAny>,
        _more: ByName,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Lock>> {
        Lock::new(Some(slf), Kind::Read, name, options)
    }

    #[doc = with_lock_options!("semaphore($self, name, *, permits")]
    #[doc = include_str!("client/semaphore.txt")]
    #[pyo3(signature = (name, *_more, permits, **options), text_signature = None)]
    fn semaphore(
        slf: Py<Self>,
        name: &Bound<'_, PyAny>,
        _more: ByName,
        permits: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Lock>> {
        Lock::new(Some(slf), Kind::Semaphore(permits_of(permits)?), name, options)
    }

    #[doc = with_multi_lock_options!("multi_lock($self, names, *")]
    #[doc = include_str!("client/multi_lock.txt")]
    #[pyo3(signature = (names, *_more, **options), text_signature = None)]
    fn multi_lock(
        slf: Py<Self>,
        names: &Bound<'_, PyAny>,
        _more: ByName,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<MultiLock>> {
        MultiLock::new(Some(slf), names, options)
    }

    #[doc = with_job_options!("job($self, name, *")]
    #[doc = include_str!("client/job.txt")]
    #[pyo3(signature = (name, *_more, **options), text_signature = None)]
    fn job(slf: Py<Self>, name: &Bound<'_, PyAny>, _more: ByName, options: Option<&Bound<'_, PyDict>>) -> PyResult<Job> {
        Job::new(Some(slf), name, options, false)
    }

    #[doc = with_cron_job_options!("cron_job($self, name, *")]
    #[doc = include_str!("client/cron_job.txt")]
    #[pyo3(signature = (name, *_more, **options), text_signature = None)]
    fn cron_job(slf: Py<Self>, name: &Bound<'_, PyAny>, _more: ByName, options: Option<&Bound<'_, PyDict>>) -> PyResult<Job> {
        Job::new(Some(slf), name, options, true)
    }

    #[doc = with_lock_options!("election($self, name, *")]
    /// The election ``name``: one leader of any number of candidates. No I/O.
    ///
    /// The options are those of :meth:`lock`. ``ttl`` is how long a leader that dies blocks the next one, ``wait`` how long a campaign
    /// waits while another one leads; :meth:`Election.lead` waits without end unless ``wait`` is given here.
    ///
    ///     with client.election("scheduler", ttl=5).campaign() as leadership:
    ///         print("leads in term", leadership.term)
    ///
    /// Raises :exc:`InvalidArgumentError` for a wrong option or name.
    #[pyo3(signature = (name, *_more, **options), text_signature = None)]
    fn election(
        slf: Py<Self>,
        name: &Bound<'_, PyAny>,
        _more: ByName,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Election> {
        Election::new(Some(slf), name, options)
    }

    #[doc = with_lock_options!("adopt($self, ticket, *, or_acquire=False")]
    /// Takes a lock over from another process, by what its ``hand_over()`` returned. The hold is a new one: new owner, new and
    /// larger fence. The ``ttl`` is that of the lock which was handed over, unless given.
    ///
    ///     hold = client.adopt(ticket)  # what hand_over() returned
    ///
    /// Raises :exc:`LockLostError` with the reason ``ended`` if that hold has ended or was adopted before, also by an attempt of
    /// this call that lost its answer. ``or_acquire=True`` acquires the lock then, like any other: it waits for it, and what that
    /// hold protected may be half done. Otherwise raises what :meth:`Lock.acquire` raises, and :exc:`InvalidArgumentError` for any other
    /// text, or if this client's prefix differs from that of the other client.
    #[pyo3(signature = (ticket, *, or_acquire=None, **options), text_signature = None)]
    fn adopt(
        slf: &Bound<'_, Self>,
        ticket: &Bound<'_, PyAny>,
        or_acquire: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Hold>> {
        let py = slf.py();
        let or_acquire = or_acquire.map(|given| switch("or_acquire", given)).transpose()?;
        Self::adopted(slf, ticket, or_acquire, &LockChoice::parse(py, options, Place::Lock)?)
    }

    #[doc = with_lock_options!("adopt_async($self, ticket, *, or_acquire=False")]
    /// :meth:`adopt`, under asyncio.
    #[pyo3(signature = (ticket, *, or_acquire=None, **options), text_signature = None)]
    fn adopt_async(
        slf: Py<Self>,
        py: Python<'_>,
        ticket: Py<PyAny>,
        or_acquire: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Operation> {
        let or_acquire = or_acquire.map(|given| switch("or_acquire", given)).transpose()?;
        let choice = LockChoice::parse(py, options, Place::Lock)?;
        let origin = Self::origin(slf.clone_ref(py), py, choice.on_lost.as_ref());
        let call = move |py: Python<'_>| Ok(Self::adoption(slf.bind(py), ticket.bind(py), or_acquire, &choice)?.acquire());
        let taken = move |py: Python<'_>, held| AsyncHold::new(py, held, origin);
        Ok(Operation::new("adopt_async", call, taken).acquiring())
    }

    /// Marks the servers of a quorum as trusted, so that they vote at once instead of after ``max_ttl``.
    ///
    ///     client.initialize_quorum()  # once, when the servers are new
    ///
    /// Only for servers that are new, and only while no lock of this quorum may be held anywhere: a server that lost its data is
    /// kept from voting exactly because it may have forgotten a hold. Does nothing with one server.
    fn initialize_quorum(&self, py: Python<'_>) -> PyResult<()> {
        waiting::block(py, self.core.initialize_quorum())
    }

    /// :meth:`initialize_quorum`, under asyncio.
    fn initialize_quorum_async(&self) -> Operation {
        let core = self.core.clone();
        Operation::new("initialize_quorum_async", move |_| Ok(core.initialize_quorum()), |py, ()| Ok(py.None()))
    }

    /// What each server really guarantees; one that doesn't answer has a ``failure`` in its report.
    ///
    ///     for report in client.check_servers():
    ///         print(report.server, report.warnings)
    fn check_servers(&self, py: Python<'_>) -> PyResult<Vec<ServerReport>> {
        waiting::block(py, self.core.check_servers()).map(ServerReport::all)
    }

    /// :meth:`check_servers`, under asyncio.
    fn check_servers_async(&self) -> Operation {
        let core = self.core.clone();
        Operation::new("check_servers_async", move |_| Ok(core.check_servers()), |_, reports| Ok(ServerReport::all(reports)))
    }

    /// The locks that are held, by any client of this library, and whose names match ``pattern``, in the order of their names.
    ///
    ///     for lock in client.locks("orders:*", limit=100):
    ///         print(lock.name, lock.owner, lock.remaining)
    ///
    /// In the pattern ``*`` is any text, and ``?`` any one character. The servers list their keys in batches (``SCAN``),
    /// so that none of them stops for a list; it still costs some time for each key of the server. A lock that is acquired or released
    /// meanwhile may be in the list or not, and in a cluster also one whose slot moves meanwhile. A lock that another library holds
    /// isn't listed: :meth:`Lock.inspect` shows it.
    ///
    /// Raises :exc:`UnavailableError`, :exc:`DeniedError` (the user needs ``SCAN`` and ``GETRANGE``), :exc:`InvalidArgumentError`,
    /// :exc:`ClosedError`.
    #[pyo3(signature = (pattern=None, *, limit=None), text_signature = "($self, pattern='*', *, limit=None)")]
    fn locks(
        &self,
        py: Python<'_>,
        pattern: Option<&Bound<'_, PyAny>>,
        limit: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<LockInfo>> {
        LockInfo::all(py, waiting::block(py, self.listing(pattern, limit)?)?)
    }

    /// :meth:`locks`, under asyncio.
    #[pyo3(signature = (pattern=None, *, limit=None), text_signature = "($self, pattern='*', *, limit=None)")]
    fn locks_async(&self, pattern: Option<&Bound<'_, PyAny>>, limit: Option<&Bound<'_, PyAny>>) -> PyResult<Operation> {
        let call = self.listing(pattern, limit)?;
        Ok(Operation::new("locks_async", move |_| Ok(call), LockInfo::all))
    }

    /// Who has held which lock, the latest first: the holds that their holders have noted on the server.
    ///
    ///     for grant in client.history("orders:42", limit=20):
    ///         print(grant.owner, grant.fence, grant.began, grant.state)
    ///
    /// ``name`` chooses one lock; without it the holds of all locks with this client's prefix are shown. A hold is noted with its
    /// first renewal, and with its end if it lasted a second or had found the lock held. So shorter ones are not shown. Of
    /// readers that were inside together the first one is noted, and of readers and holders of permits each that lost the lock. Holders
    /// don't wait for these notes, and one may be missing. The server keeps the last 10,000 of all locks.
    ///
    /// Raises :exc:`InvalidArgumentError`, also on a quorum, which has no history; :exc:`UnavailableError`, :exc:`DeniedError` (the
    /// user needs ``XREVRANGE`` of ``{~lt}:log``), :exc:`KeyConflictError`, :exc:`ClosedError`.
    #[pyo3(signature = (name=None, *, limit=None), text_signature = "($self, name=None, *, limit=100)")]
    fn history(&self, py: Python<'_>, name: Option<&Bound<'_, PyAny>>, limit: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Grant>> {
        Grant::all(py, waiting::block(py, self.grants(name, limit)?)?)
    }

    /// :meth:`history`, under asyncio.
    #[pyo3(signature = (name=None, *, limit=None), text_signature = "($self, name=None, *, limit=100)")]
    fn history_async(&self, name: Option<&Bound<'_, PyAny>>, limit: Option<&Bound<'_, PyAny>>) -> PyResult<Operation> {
        let call = self.grants(name, limit)?;
        Ok(Operation::new("history_async", move |_| Ok(call), Grant::all))
    }

    /// The locks that this client holds now, in the order of their names. Asks no server; in a forked child there are none.
    ///
    ///     for hold in client.holds():
    ///         print(hold.name, hold.held_for, hold.remaining)
    fn holds(&self) -> Vec<HoldInfo> {
        self.core.holds().into_iter().map(HoldInfo::from).collect()
    }

    /// What this client has counted since it was made, and what it holds and waits for now.
    ///
    ///     print(client.metrics().value("locktender_acquires_total", category="orders", end="acquired"))
    ///
    /// It is always counted; reading it asks no server. In a forked child it begins at zero.
    fn metrics(&self) -> Metrics {
        Metrics { core: self.core.metrics() }
    }

    /// Closes the client: acquires under way raise :exc:`ClosedError`, held locks are lost (reason ``closed``) and released.
    ///
    ///     client.close()  # or: with client: ...
    ///
    /// Takes at most about a response timeout. Closing twice does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        waiting::block(py, self.core.close())
    }

    /// :meth:`close`, under asyncio.
    fn close_async(&self) -> Operation {
        let core = self.core.clone();
        Operation::new("close_async", move |_| Ok(core.close()), |py, ()| Ok(py.None()))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __aenter__(slf: Py<Self>) -> Operation {
        Operation::ready("__aenter__", |_| Ok(slf.into_any()))
    }

    #[pyo3(signature = (*_error))]
    fn __aexit__(&self, _error: &Bound<'_, PyAny>) -> Operation {
        self.close_async()
    }

    #[doc = with_client_options!("from_redis($cls, redis, /, *")]
    /// A client of the server that a redis-py client uses: its address, credentials, database and TLS files are copied.
    ///
    /// Of ``redis.Redis`` or ``redis.asyncio.Redis``, over TCP, TLS or a unix socket, of ``RedisCluster``, of
    /// ``sentinel.master_for(service)``, or of a connection pool; valkey-py's count as well. Nothing else is shared: it makes
    /// connections of its own, takes its own timeouts, and always checks certificates and host names.
    ///
    ///     client = Client.from_redis(redis.Redis.from_url("redis://localhost"))
    ///
    /// Its credential provider becomes the option ``credentials``: it is asked again as passwords change.
    ///
    /// Raises :exc:`InvalidArgumentError` for a client of replicas, a credential provider of its sentinels, an ``address_remap``, and
    /// TLS settings that have no counterpart.
    #[classmethod]
    #[pyo3(signature = (redis, /, **options), text_signature = None)]
    fn from_redis(
        class: &Bound<'_, PyType>,
        redis: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<Self>> {
        Self::like(class.py(), redis, options)
    }

    /// Not here: ``Client(url)`` makes a client of a URL. Always raises :exc:`AttributeError`.
    #[classmethod]
    #[pyo3(signature = (*_arguments, **_options))]
    fn from_url(class: &Bound<'_, PyType>, _arguments: &Bound<'_, PyAny>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        missing(class, &PyString::new(class.py(), "from_url"))
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        if let Some(name) = &self.name {
            return (own::named(py, "_pickle", "client_named")?, (name,)).into_pyobject(py)?.extract();
        }
        let closed = || PyTypeError::new_err("a client that is being collected can't be pickled");
        self.parts.get(py).ok_or_else(closed)?.reduced(py)
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// Emits a `warning`.
    fn _warn(&self, py: Python<'_>, lock: Option<&str>, text: String) -> PyResult<()> {
        self.listen(py)?;
        self.core.warn(lock, text);
        Ok(())
    }

    #[getter]
    fn _is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        missing(slf, name)
    }

    fn __repr__(&self) -> String {
        self.shown()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.parts.traverse(|parts| parts.as_ref().map_or(Ok(()), |parts| parts.traverse(&visit)))?;
        self.on_lost.traverse(|on_lost| on_lost.as_ref().map_or(Ok(()), |on_lost| on_lost.traverse(&visit)))?;
        self.credentials.traverse(|callable| visit.call(callable))?;
        self.on_event.traverse(|callback| visit.call(callback))
    }

    fn __clear__(&self) {
        during_a_visit(|_| drop((self.on_event.take(), self.credentials.take(), self.on_lost.take(), self.parts.take())));
    }
}
