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
    /// Something that a person should check, while the server goes on.
    Warning(String),
    /// A new era has begun: another node answers for the server, or the node was restarted.
    FailedOver(Failover),
}

/// The begin of a new era of a server. What the old era granted last may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failover {
    /// The address of the node that answers now.
    pub address: Option<String>,
    /// The name of the era before: a replication id.
    pub old_era: Arc<str>,
    /// The name of the new era.
    pub new_era: Arc<str>,
}
