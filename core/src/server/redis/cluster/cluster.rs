//! Cluster: what the operations under way share with the server.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::io::reactor::LazyReactor;
use crate::options::ClientOptions;
use crate::server::redis::cluster::mapping::Mapping;
use crate::server::redis::cluster::nodes::Nodes;
use crate::server::redis::cluster::target::ClusterTarget;
use crate::server::redis::connection::server_state::ServerState;
use crate::server::redis::listening::Listening;
use crate::server::redis::transport::provided::Provided;
use crate::sync::Mutex;

/// A cluster in use: the nodes, the map, and what is listened to.
pub(super) struct Cluster {
    pub(super) target: ClusterTarget,
    pub(super) options: ClientOptions,
    pub(super) response_timeout: Duration,
    pub(super) provided: Option<Arc<Provided>>,
    pub(super) host: Handle,
    pub(super) reactor: Arc<LazyReactor>,
    pub(super) nodes: Nodes,
    pub(super) mapping: Mutex<Mapping>,
    /// The task that asks nodes for the map.
    pub(super) refreshing: Mutex<Option<AbortHandle>>,
    pub(super) listening: Listening,
    pub(super) on_state: Box<dyn Fn(ServerState) + Send + Sync>,
}
