//! One server: the only node there is, whose address may change with a failover.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::{Listening, NodeMap};
use crate::op::Failure;
use crate::server::redis::address::Address;
use crate::server::redis::connection::primary::Primary;
use crate::server::redis::settings::Settings;

/// A server that is no cluster.
pub(crate) struct OneServer {
    settings: Arc<Settings>,
    primary: Arc<Primary>,
    node: Address,
    listening: Listening,
}

impl OneServer {
    pub(crate) fn new(settings: &Arc<Settings>, primary: &Arc<Primary>, host: &Handle) -> Arc<Self> {
        let node = Address { host: settings.target.address.clone(), port: 0 };
        let listening = Listening::new(host, settings.connect_timeout, settings.response_timeout);
        Arc::new(Self { settings: Arc::clone(settings), primary: Arc::clone(primary), node, listening })
    }
}

impl NodeMap for OneServer {
    fn listening(&self) -> &Listening {
        &self.listening
    }

    fn settings_of(&self, _node: &Address) -> Result<Arc<Settings>, Failure> {
        Ok(Arc::clone(&self.settings))
    }

    fn node_of_slot(&self, _slot: u16) -> Option<Address> {
        Some(self.node.clone())
    }

    fn replid(&self) -> u64 {
        self.primary.replid_number()
    }

    // A node of a cluster behind a plain URL: its operations say so.
    fn moved(&self, _slot: u16, _from: &Address, _to: (&str, u16)) -> bool {
        false
    }

    fn look_again(self: &Arc<Self>) {}

    fn about(&self, _node: &Address, failure: Failure) -> Failure {
        failure
    }
}
