//! Lock values: what is known of locks that are held.

use std::time::SystemTime;

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::seconds_left;
use crate::members::missing;
use crate::seconds::in_seconds;
use crate::values::value;

value! {
    /// The fields of an owner value that locktender wrote.
    #[pyclass(module = "locktender", frozen, get_all)]
    #[derive(PartialEq)]
    pub(crate) struct OwnerFields {
        /// The application, if the holder named one.
        app: Option<String>,
        /// The holder's host name.
        host: Option<String>,
        /// The holder's process id.
        pid: Option<u32>,
        /// When the holder asked, by its own clock (UTC).
        at: Option<SystemTime>,
        /// The unique id of the acquisition.
        id: Option<String>,
    }

    fn __eq__(&self, other: &Self) -> bool {
        self == other
    }
}

impl From<locktender::OwnerFields> for OwnerFields {
    fn from(fields: locktender::OwnerFields) -> Self {
        Self { app: fields.app, host: fields.host, pid: fields.pid, at: fields.at, id: fields.id }
    }
}

value! {
    /// What the servers show of a held lock.
    #[pyclass(module = "locktender", frozen, get_all)]
    pub(crate) struct LockInfo {
        /// The lock's name, without the client's prefix.
        name: String,
        /// The holder's owner value, or the value that another library wrote, up to its first 1,024 bytes. If several hold the lock, that of
        /// the holder whose hold ends last.
        owner: String,
        /// The value's fields, if locktender wrote it.
        fields: Option<Py<OwnerFields>>,
        /// How many seconds the key remains; ``math.inf`` if it has no expiry.
        remaining: f64,
        /// The fence of the hold if its value shows it, else ``None``: on one server mostly from the first renewal on. On a quorum the last
        /// one issued.
        fence: Option<u64>,
        /// The number of holders: 1, but for a semaphore and for readers.
        holder_count: u64,
        /// The owner values of the holders, the first hundred whose holds end.
        holders: Vec<String>,
        /// The free permits of a semaphore; ``None`` for any other lock.
        available: Option<u64>,
        /// The length of the queue. The waiters of one process count as one unless the lock is a fair one.
        waiters: u64,
        /// The first hundred of them, in the order of the line, each with the readable fields of its process.
        queue: Vec<String>,
    }

    fn __getattr__(slf: &Bound<'_, Self>, name: &Bound<'_, PyString>) -> PyResult<()> {
        missing(slf, name)
    }
}

impl LockInfo {
    fn new(py: Python<'_>, info: locktender::LockInfo) -> PyResult<Self> {
        let fields = info.fields.map(|fields| Py::new(py, OwnerFields::from(fields))).transpose()?;
        let remaining = seconds_left(info.remaining);
        let locktender::LockInfo { name, owner, fence, holder_count, holders, available, waiters, queue, .. } = info;
        Ok(Self { name, owner, fields, remaining, fence, holder_count, holders, available, waiters, queue })
    }

    pub(crate) fn or_none(py: Python<'_>, info: Option<locktender::LockInfo>) -> PyResult<Option<Self>> {
        info.map(|info| Self::new(py, info)).transpose()
    }

    pub(crate) fn all(py: Python<'_>, locks: Vec<locktender::LockInfo>) -> PyResult<Vec<Self>> {
        locks.into_iter().map(|lock| Self::new(py, lock)).collect()
    }
}

value! {
    /// A hold that its holder has noted in the history.
    #[pyclass(module = "locktender", frozen, get_all)]
    pub(crate) struct Grant {
        /// The lock's name, without the client's prefix.
        name: String,
        /// The owner value.
        owner: String,
        /// The fields of the owner value.
        fields: Option<Py<OwnerFields>>,
        /// The fencing token.
        fence: u64,
        /// When the hold began, by the server's clock (UTC).
        began: SystemTime,
        /// When it ended, by the server's clock; ``None`` if it continues, or if its end wasn't noted.
        ended: Option<SystemTime>,
        /// Its state when it was noted last: ``holds``, ``released`` or ``lost``.
        state: &'static str,
        /// Whether others may have had the lock at the same time: it is the hold of a reader, or of a permit.
        is_shared: bool,
    }
}

impl Grant {
    fn new(py: Python<'_>, grant: locktender::Grant) -> PyResult<Self> {
        let fields = grant.fields.map(|fields| Py::new(py, OwnerFields::from(fields))).transpose()?;
        let locktender::Grant { name, owner, fence, began, ended, state, is_shared, .. } = grant;
        Ok(Self { name, owner, fields, fence, began, ended, state: state.as_str(), is_shared })
    }

    pub(crate) fn all(py: Python<'_>, grants: Vec<locktender::Grant>) -> PyResult<Vec<Self>> {
        grants.into_iter().map(|grant| Self::new(py, grant)).collect()
    }
}

value! {
    /// A hold of this client.
    #[pyclass(module = "locktender", frozen, get_all)]
    pub(crate) struct HoldInfo {
        /// The lock's name, without the client's prefix.
        name: String,
        /// What the lock is for: ``lock``, ``job``, ``cron_job``, ``election``, ``semaphore``, ``read_lock`` or ``multi_lock``.
        kind: &'static str,
        /// The owner value: the value of the key on the servers begins with it.
        owner: String,
        /// The fencing token.
        fence: u64,
        /// How many seconds ago the lock was granted.
        held_for: f64,
        /// How many seconds the lock is guaranteed to be held if nothing renews it.
        remaining: f64,
    }
}

impl From<locktender::HoldInfo> for HoldInfo {
    fn from(hold: locktender::HoldInfo) -> Self {
        let locktender::HoldInfo { name, kind, owner, fence, held_for, remaining, .. } = hold;
        let (held_for, remaining) = (in_seconds(held_for), in_seconds(remaining));
        Self { name, kind: kind.as_str(), owner, fence, held_for, remaining }
    }
}
