//! Ears: the connections of a cluster that listen.

use std::collections::HashMap;

use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

use crate::server::redis::address::Address;
use crate::server::redis::cluster::channels::Order;

/// The connections that listen.
#[derive(Default)]
pub(super) struct Ears(pub(super) HashMap<Address, Ear>);

/// The connection to one node.
pub(super) struct Ear {
    pub(super) orders: UnboundedSender<Order>,
    pub(super) task: AbortHandle,
}
