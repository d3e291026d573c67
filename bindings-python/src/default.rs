//! The default client: what `configure` made, else what the environment names, made at the first operation.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::client::Client;
use crate::election::Election;
use crate::guarded::Guarded;
use crate::job::Job;
use crate::lock::{Kind, Lock, MultiLock};
use crate::not_taken::{ByName, OneServer};
use crate::options::permits_of;

static DEFAULT: Guarded<Option<Py<Client>>> = Guarded::new(None);

/// The default client.
pub(crate) fn client(py: Python<'_>) -> PyResult<Py<Client>> {
    loop {
        if let Some(client) = DEFAULT.get(py) {
            return Ok(client);
        }
        let made = Client::made(py, None, None)?;
        // Another thread may have been faster; there is one default client.
        drop(DEFAULT.with(|default| if default.is_none() { default.replace(made) } else { Some(made) }));
    }
}

#[doc = with_client_options!("configure(servers=None, *")]
/// Sets the default client, from the next operation on: the arguments are those of :class:`Client`.
///
///     configure("redis://localhost", prefix="billing:", wait=5)
#[pyfunction]
#[pyo3(signature = (servers=None, *_more, **options), text_signature = None)]
pub(crate) fn configure(
    py: Python<'_>,
    servers: Option<&Bound<'_, PyAny>>,
    _more: OneServer,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<()> {
    let made = Client::made(py, servers, options)?;
    drop(DEFAULT.replace(Some(made)));
    Ok(())
}

#[doc = with_lock_options!("lock(name, *")]
/// A lock of the default client: see :meth:`Client.lock`.
///
/// The default client is made at the first operation, from what :func:`configure` was given or else from the environment's
/// ``LOCKTENDER_URL``.
///
///     from locktender import lock
///
///     @lock("user:{user_id}", wait=2)
///     def charge(user_id: int) -> None: ...
#[pyfunction]
#[pyo3(signature = (name, *_more, **options), text_signature = None)]
pub(crate) fn lock(name: &Bound<'_, PyAny>, _more: ByName, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Lock>> {
    Lock::new(None, Kind::Exclusive, name, options)
}

#[doc = with_lock_options!("read_lock(name, *")]
/// A read lock of the default client: see :meth:`Client.read_lock`. **The writer is** :func:`lock` of the same name.
///
///     from locktender import read_lock
///
///     @read_lock("prices:{shop}")
///     def prices(shop: str) -> dict[str, int]: ...
#[pyfunction]
#[pyo3(signature = (name, *_more, **options), text_signature = None)]
pub(crate) fn read_lock(name: &Bound<'_, PyAny>, _more: ByName, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Lock>> {
    Lock::new(None, Kind::Read, name, options)
}

#[doc = with_lock_options!("semaphore(name, *, permits")]
/// A semaphore of the default client: see :meth:`Client.semaphore`.
///
///     from locktender import semaphore
///
///     @semaphore("renders", permits=5)
///     def render(page: str) -> bytes: ...
#[pyfunction]
#[pyo3(signature = (name, *_more, permits, **options), text_signature = None)]
pub(crate) fn semaphore(
    name: &Bound<'_, PyAny>,
    _more: ByName,
    permits: &Bound<'_, PyAny>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<Lock>> {
    Lock::new(None, Kind::Semaphore(permits_of(permits)?), name, options)
}

#[doc = with_multi_lock_options!("multi_lock(names, *")]
/// Several locks of the default client, acquired together: see :meth:`Client.multi_lock`.
///
///     from locktender import multi_lock
///
///     @multi_lock(["account:{payer}", "account:{payee}"])
///     def pay(payer: int, payee: int) -> None: ...
#[pyfunction]
#[pyo3(signature = (names, *_more, **options), text_signature = None)]
pub(crate) fn multi_lock(
    names: &Bound<'_, PyAny>,
    _more: ByName,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Py<MultiLock>> {
    MultiLock::new(None, names, options)
}

#[doc = with_job_options!("job(name, *")]
/// A job of the default client: see :meth:`Client.job`.
///
///     from locktender import job
///
///     @job("mail:{day}", max_attempts=5)
///     def mail(attempt: Attempt, day: str) -> None: ...
#[pyfunction]
#[pyo3(signature = (name, *_more, **options), text_signature = None)]
pub(crate) fn job(name: &Bound<'_, PyAny>, _more: ByName, options: Option<&Bound<'_, PyDict>>) -> PyResult<Job> {
    Job::new(None, name, options, false)
}

#[doc = with_cron_job_options!("cron_job(name, *")]
/// A job of the default client that runs once per scheduled time: see :meth:`Client.cron_job`.
///
///     from locktender import cron_job
///
///     @cron_job("nightly", every=3600)
///     def nightly(attempt: Attempt) -> None: ...        # nightly() in each replica; one of them runs it
#[pyfunction]
#[pyo3(signature = (name, *_more, **options), text_signature = None)]
pub(crate) fn cron_job(name: &Bound<'_, PyAny>, _more: ByName, options: Option<&Bound<'_, PyDict>>) -> PyResult<Job> {
    Job::new(None, name, options, true)
}

#[doc = with_lock_options!("election(name, *")]
/// An election of the default client: see :meth:`Client.election`. It stays with the client that is the default one at its first
/// use.
///
///     from locktender import election
///
///     scheduler = election("scheduler")                    # scheduler.lead(schedule) campaigns and leads, again and again
#[pyfunction]
#[pyo3(signature = (name, *_more, **options), text_signature = None)]
pub(crate) fn election(name: &Bound<'_, PyAny>, _more: ByName, options: Option<&Bound<'_, PyDict>>) -> PyResult<Election> {
    Election::new(None, name, options)
}
