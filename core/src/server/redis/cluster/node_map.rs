//! Node map: where the channels of a cluster are.

use std::sync::Arc;

use crate::op::Failure;
use crate::server::Listener;
use crate::server::redis::address::Address;
use crate::server::redis::cluster::cluster::Cluster;
use crate::server::redis::cluster::nodes::about;
use crate::server::redis::listening::pub_sub::Channel;
use crate::server::redis::listening::{Listening, NodeMap, listen};
use crate::server::redis::settings::Settings;

impl NodeMap for Cluster {
    fn listening(&self) -> &Listening {
        &self.listening
    }

    fn settings_of(&self, node: &Address) -> Result<Arc<Settings>, Failure> {
        self.settings(node).map(Arc::new)
    }

    fn node_of_slot(&self, slot: u16) -> Option<Address> {
        self.mapping.lock().primary_of(slot)
    }

    /// A node that lost its place ends its subscriptions itself.
    fn replid(&self) -> u64 {
        0
    }

    fn moved(&self, slot: u16, from: &Address, (host, port): (&str, u16)) -> bool {
        self.mapping.lock().moved(slot, &from.elsewhere(host, port));
        true
    }

    fn look_again(self: &Arc<Self>) {
        self.refresh();
    }

    fn about(&self, node: &Address, failure: Failure) -> Failure {
        about(node, failure)
    }
}

impl Cluster {
    /// Has the listener get the messages of a channel; returns whether the cluster is open.
    pub(super) fn listen(self: &Arc<Self>, channel: Channel, listener: &Listener) -> bool {
        let listens = listen(self, channel, listener);
        if listens && self.mapping.lock().primaries().is_none() {
            self.refresh();
        }
        listens
    }

    /// Has every connection send the newest credentials.
    pub(super) fn log_in(&self) {
        self.nodes.all().iter().for_each(|node| node.routes.log_in());
        self.listening.log_in();
    }
}
