//! Results: what a release, an inspection and a report of the servers find.

use napi_derive::napi;

use crate::date::Date;
use crate::error::{ServerFailure, ms, remaining_ms};

/// What one server really guarantees.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct ServerReport {
    pub server: String,
    pub failure: Option<ServerFailure>,
    pub version: Option<String>,
    pub role: Option<String>,
    pub persistence: Option<String>,
    pub eviction: Option<String>,
    pub clock_offset_ms: Option<i64>,
    pub denied: Option<Vec<String>>,
    pub warnings: Vec<String>,
}

impl From<locktender::ServerReport> for ServerReport {
    fn from(report: locktender::ServerReport) -> Self {
        let failure = report.failure.as_ref().map(ServerFailure::from);
        let locktender::ServerReport { server, version, role, persistence, eviction, clock_offset_ms, denied, warnings, .. } =
            report;
        Self { server, failure, version, role, persistence, eviction, clock_offset_ms, denied, warnings }
    }
}

/// What a release found.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct Release {
    pub outcome: String,
    pub next_owner: Option<String>,
    pub next_fence: Option<f64>,
    pub overrun_ms: f64,
    pub kept_ms: f64,
}

impl From<locktender::Release> for Release {
    fn from(release: locktender::Release) -> Self {
        let locktender::Release { outcome, next_owner, next_fence, overrun, kept, .. } = release;
        let next_fence = next_fence.map(|fence| fence as f64);
        Self { outcome: outcome.as_str().to_owned(), next_owner, next_fence, overrun_ms: ms(overrun), kept_ms: ms(kept) }
    }
}

/// What an inspection found.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct LockInfo {
    pub name: String,
    pub owner: String,
    pub fields: Option<OwnerFields>,
    pub remaining_ms: f64,
    pub fence: Option<f64>,
    pub holder_count: f64,
    pub holders: Vec<String>,
    pub available: Option<f64>,
    pub waiters: f64,
    pub queue: Vec<String>,
}

/// A hold of a client.
#[napi(object, object_from_js = false)]
pub struct HoldInfo {
    pub name: String,
    pub kind: String,
    pub owner: String,
    pub fence: f64,
    pub held_for_ms: f64,
    pub remaining_ms: f64,
}

impl From<locktender::HoldInfo> for HoldInfo {
    fn from(hold: locktender::HoldInfo) -> Self {
        let locktender::HoldInfo { name, kind, owner, fence, held_for, remaining, .. } = hold;
        let kind = kind.as_str().to_owned();
        Self { name, kind, owner, fence: fence as f64, held_for_ms: ms(held_for), remaining_ms: ms(remaining) }
    }
}

/// The fields of an owner value.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct OwnerFields {
    pub app: Option<String>,
    pub host: Option<String>,
    pub pid: Option<u32>,
    pub at: Option<Date>,
    pub id: Option<String>,
}

impl From<locktender::OwnerFields> for OwnerFields {
    fn from(fields: locktender::OwnerFields) -> Self {
        let locktender::OwnerFields { app, host, pid, at, id, .. } = fields;
        Self { app, host, pid, at: at.map(Date), id }
    }
}

/// A hold that its holder has noted in the history.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct Grant {
    pub name: String,
    pub owner: String,
    pub fields: Option<OwnerFields>,
    pub fence: f64,
    pub began: Date,
    pub ended: Option<Date>,
    pub state: &'static str,
    pub is_shared: bool,
}

impl From<locktender::Grant> for Grant {
    fn from(grant: locktender::Grant) -> Self {
        let locktender::Grant { name, owner, fields, fence, began, ended, state, is_shared, .. } = grant;
        Self {
            name,
            owner,
            fields: fields.map(OwnerFields::from),
            fence: fence as f64,
            began: Date(began),
            ended: ended.map(Date),
            state: state.as_str(),
            is_shared,
        }
    }
}

impl From<locktender::LockInfo> for LockInfo {
    fn from(info: locktender::LockInfo) -> Self {
        Self {
            fields: info.fields.map(OwnerFields::from),
            remaining_ms: remaining_ms(info.remaining),
            fence: info.fence.map(|fence| fence as f64),
            holder_count: info.holder_count as f64,
            holders: info.holders,
            available: info.available.map(|available| available as f64),
            waiters: info.waiters as f64,
            queue: info.queue,
            owner: info.owner,
            name: info.name,
        }
    }
}
