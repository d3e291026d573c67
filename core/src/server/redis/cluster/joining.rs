//! Joining: a node is added when a slot of it is first used, and left when it fails and serves nothing any more.

use std::sync::{Arc, Weak};

use crate::op::Failure;
use crate::server::Server;
use crate::server::redis::address::Address;
use crate::server::redis::cluster::cluster::Cluster;
use crate::server::redis::cluster::nodes::{Node, Stage, about};
use crate::server::redis::connection::server_state::{Failover, ServerState};
use crate::server::redis::routes::Routes;
use crate::server::redis::settings::Settings;

impl Cluster {
    /// The node at an address; `None` after the close.
    ///
    /// # Errors
    /// `Tls` for a host that no certificate could have.
    pub(super) fn node(self: &Arc<Self>, address: &Address) -> Result<Option<Arc<Node>>, Failure> {
        if let Some(node) = self.nodes.used(address) {
            return Ok(Some(node));
        }
        let settings = self.settings(address)?;
        let state = self.nodes.state.lock();
        if state.stage == Stage::Closed {
            return Ok(None);
        }
        // Another thread may have been first.
        if let Some(node) = self.nodes.used(address) {
            return Ok(Some(node));
        }
        let (cluster, its_address) = (Arc::downgrade(self), address.clone());
        let on_state = move |state: ServerState| report(&cluster, &its_address, state);
        let lineage = Some(Arc::clone(&self.nodes.lineage));
        let routes = Routes::reporting(settings, lineage, (&self.host, &self.reactor), on_state);
        if state.stage == Stage::Cancelled {
            routes.cancel();
        }
        let node = Arc::new(Node { address: address.clone(), routes });
        let nodes = self.nodes.all().iter().cloned().chain([Arc::clone(&node)]).collect();
        self.nodes.used.store(Arc::new(nodes));
        Ok(Some(node))
    }

    /// The settings of the node at an address.
    ///
    /// # Errors
    /// `Tls` for a host that no certificate could have.
    pub(super) fn settings(&self, address: &Address) -> Result<Settings, Failure> {
        let (target, provided) = (self.target.node(address)?, self.provided.clone());
        Ok(Settings { provided, in_cluster: true, ..Settings::of(target, &self.options, self.response_timeout) })
    }

    /// There is another map: nodes that fail and serve nothing any more are left.
    pub(super) fn retire(&self, primaries: &[Address]) {
        let (retired, recovered) = self.nodes.retire(primaries);
        retired.iter().for_each(|node| node.routes.close());
        if recovered {
            (self.on_state)(ServerState::Recovered);
        }
    }
}

/// Passes a change of one node on. The cluster has recovered when none of its nodes fails.
fn report(cluster: &Weak<Cluster>, address: &Address, state: ServerState) {
    let Some(cluster) = cluster.upgrade() else { return };
    match state {
        ServerState::Failed(failure) => {
            cluster.nodes.state.lock().failing.insert(address.clone());
            cluster.refresh();
            (cluster.on_state)(ServerState::Failed(about(address, failure)));
        }
        ServerState::Recovered => {
            let mut state = cluster.nodes.state.lock();
            let recovered = state.failing.remove(address) && state.failing.is_empty();
            drop(state);
            if recovered {
                (cluster.on_state)(ServerState::Recovered);
            }
        }
        ServerState::FailedOver(failover) => {
            let address = Some(address.to_string());
            (cluster.on_state)(ServerState::FailedOver(Failover { address, ..failover }));
        }
        warning @ ServerState::Warning(_) => (cluster.on_state)(warning),
    }
}
