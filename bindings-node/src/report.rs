//! Reports: what each server of a client can guarantee.

use napi_derive::napi;

use crate::error::ServerFailure;

/// The report on one server.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct ServerReport {
    pub server: String,
    pub error: Option<ServerFailure>,
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
        Self {
            error: report.error.as_ref().map(ServerFailure::from),
            server: report.server,
            version: report.version,
            role: report.role,
            persistence: report.persistence,
            eviction: report.eviction,
            clock_offset_ms: report.clock_offset_ms,
            denied: report.denied,
            warnings: report.warnings,
        }
    }
}
