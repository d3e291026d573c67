//! What operations return: plain values.

use locktender::LossReason;
use locktender::event::Event as CoreEvent;
use pyo3::PyClass;
use pyo3::prelude::*;

use crate::errors::seconds_left;
use crate::events::level_of;

/// How a release ended.
#[pyclass(module = "locktender", frozen, get_all, eq)]
#[derive(PartialEq)]
pub(crate) struct Release {
    outcome: &'static str,
    rival: Option<String>,
    rival_fence: Option<u64>,
    overrun: f64,
}

impl From<locktender::Release> for Release {
    fn from(release: locktender::Release) -> Self {
        let locktender::Release { outcome, rival, rival_fence, overrun, .. } = release;
        Self { outcome: outcome.as_str(), rival, rival_fence, overrun: overrun.as_secs_f64() }
    }
}

#[pymethods]
impl Release {
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        shown(slf, &["outcome", "rival", "rival_fence", "overrun"])
    }
}

/// How a lock was lost.
#[pyclass(module = "locktender", frozen, get_all, eq)]
#[derive(PartialEq)]
pub(crate) struct Loss {
    reason: &'static str,
    rival: Option<String>,
    rival_fence: Option<u64>,
    overrun: f64,
}

impl From<locktender::Loss> for Loss {
    fn from(loss: locktender::Loss) -> Self {
        let locktender::Loss { reason, rival, rival_fence, overrun, .. } = loss;
        Self { reason: reason.as_str(), rival, rival_fence, overrun: overrun.as_secs_f64() }
    }
}

#[pymethods]
impl Loss {
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        shown(slf, &["reason", "rival", "rival_fence", "overrun"])
    }
}

/// The fields of an owner value that locktender wrote.
#[pyclass(module = "locktender", frozen, get_all, eq)]
#[derive(PartialEq)]
pub(crate) struct OwnerFields {
    app: Option<String>,
    host: Option<String>,
    pid: Option<u32>,
    at: Option<String>,
    id: Option<String>,
}

impl From<locktender::OwnerFields> for OwnerFields {
    fn from(fields: locktender::OwnerFields) -> Self {
        Self { app: fields.app, host: fields.host, pid: fields.pid, at: fields.at, id: fields.id }
    }
}

#[pymethods]
impl OwnerFields {
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        shown(slf, &["app", "host", "pid", "at", "id"])
    }
}

/// What a held lock looks like.
#[pyclass(module = "locktender", frozen, get_all)]
pub(crate) struct LockInfo {
    owner: String,
    fields: Option<Py<OwnerFields>>,
    remaining: Option<f64>,
    fence: u64,
    waiters: u64,
    queue: Vec<String>,
}

impl LockInfo {
    pub(crate) fn new(py: Python<'_>, info: locktender::LockInfo) -> PyResult<Self> {
        let fields = info.fields.map(|fields| Py::new(py, OwnerFields::from(fields))).transpose()?;
        let remaining = seconds_left(info.remaining);
        Ok(Self { owner: info.owner, fields, remaining, fence: info.fence, waiters: info.waiters, queue: info.queue })
    }
}

#[pymethods]
impl LockInfo {
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        shown(slf, &["owner", "fields", "remaining", "fence", "waiters", "queue"])
    }
}

/// What one server really guarantees.
#[pyclass(module = "locktender", frozen, get_all)]
pub(crate) struct ServerReport {
    server: String,
    error: Option<String>,
    version: Option<String>,
    role: Option<String>,
    persistence: Option<String>,
    eviction: Option<String>,
    clock_offset: Option<f64>,
    denied: Option<Vec<String>>,
    warnings: Vec<String>,
}

impl From<locktender::ServerReport> for ServerReport {
    fn from(report: locktender::ServerReport) -> Self {
        Self {
            server: report.server,
            error: report.error.map(|error| error.message),
            version: report.version,
            role: report.role,
            persistence: report.persistence,
            eviction: report.eviction,
            clock_offset: report.clock_offset_ms.map(|ms| ms as f64 / 1e3),
            denied: report.denied,
            warnings: report.warnings,
        }
    }
}

#[pymethods]
impl ServerReport {
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        shown(slf, &["server", "error", "version", "role", "persistence", "eviction", "clock_offset", "denied", "warnings"])
    }
}

/// Something that happened.
#[pyclass(module = "locktender", frozen, get_all)]
pub(crate) struct Event {
    kind: &'static str,
    level: u8,
    lock: Option<String>,
    key: Option<String>,
    owner: Option<String>,
    fence: Option<u64>,
    rival: Option<String>,
    rival_fence: Option<u64>,
    reason: Option<&'static str>,
    took: Option<f64>,
    rank: Option<u64>,
    server: Option<String>,
    message: Option<String>,
}

impl From<CoreEvent> for Event {
    fn from(event: CoreEvent) -> Self {
        Self {
            kind: event.kind.as_str(),
            level: level_of(&event),
            lock: event.lock,
            key: event.key,
            owner: event.owner,
            fence: event.fence,
            rival: event.rival,
            rival_fence: event.rival_fence,
            reason: event.reason.map(LossReason::as_str),
            took: event.took.map(|took| took.as_secs_f64()),
            rank: event.rank,
            server: event.server,
            message: event.message,
        }
    }
}

#[pymethods]
impl Event {
    /// One line for a log.
    fn __str__(&self) -> String {
        let mut line = self.kind.to_owned();
        let fence = self.fence.map(|fence| format!("{fence}"));
        let took = self.took.map(|took| format!("{took:.3}"));
        let quoted = |value: &Option<String>| value.as_ref().map(|value| format!("{value:?}"));
        let (key, server, rival) = (quoted(&self.key), quoted(&self.server), quoted(&self.rival));
        for (name, value) in [("key", key), ("fence", fence), ("took", took), ("server", server), ("rival", rival)] {
            line.extend(value.map(|value| format!(" {name}={value}")));
        }
        let reason = self.reason.map(str::to_owned);
        for part in [reason, self.message.clone()].into_iter().flatten() {
            line.push_str(&format!(": {part}"));
        }
        line
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let fields =
            ["kind", "lock", "key", "owner", "fence", "rival", "rival_fence", "reason", "took", "rank", "server", "message"];
        shown(slf, &fields)
    }
}

/// `Class(field=value, ...)`.
pub(crate) fn shown<T: PyClass>(value: &Bound<'_, T>, fields: &[&str]) -> PyResult<String> {
    let value = value.as_any();
    let field = |name: &&str| Ok(format!("{name}={}", value.getattr(*name)?.repr()?));
    let fields = fields.iter().map(field).collect::<PyResult<Vec<_>>>()?;
    Ok(format!("{}({})", value.get_type().name()?, fields.join(", ")))
}
