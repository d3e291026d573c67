//! Server states: the changes of a server that its connections report.

use std::sync::Arc;

use crate::op::Failure;

/// A change in the state of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// The server stopped answering, or answers that it can't serve.
    Failed(Failure),
    /// The server answers again.
    Recovered,
    /// Something that a person should check, while the server continues.
    Warning(String),
    /// A failover: another node answers for the server, or the node was restarted.
    FailedOver(Failover),
}

/// A failover of a server. What was granted last before it may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failover {
    /// The address of the node that answers now.
    pub address: Option<String>,
    /// The replication id before.
    pub old_replid: Arc<str>,
    /// The new replication id.
    pub new_replid: Arc<str>,
}
