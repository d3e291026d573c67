//! Listening: the connections that carry subscriptions and nothing else, one to each node that has a channel of this client.
//!
//! `channels` says who listens to what, and at which node; `pub_sub` is the conversation on one socket, and `idle_check` finds out
//! whether it is dead. Both decide without I/O. A `task` runs each connection. A server that is no cluster is `one_server`, with
//! one node.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;

use crate::op::Failure;
use crate::server::Listener;
use crate::server::redis::address::Address;
use crate::server::redis::settings::Settings;
use crate::sync::Mutex;

mod channels;
mod idle_check;
mod listener;
pub(crate) mod one_server;
pub(crate) mod pub_sub;
mod task;

pub(crate) use self::channels::Moved;
use self::channels::{Channels, Order};
use self::listener::Notices;
use self::pub_sub::Channel;

/// Where the nodes of a server are.
pub(crate) trait NodeMap: Send + Sync + 'static {
    /// What this client listens to there.
    fn listening(&self) -> &Listening;

    /// How to connect to a node.
    ///
    /// # Errors
    /// Why nobody can connect to it.
    fn settings_of(&self, node: &Address) -> Result<Arc<Settings>, Failure>;

    /// The node that serves a slot, if it is known.
    fn node_of_slot(&self, slot: u16) -> Option<Address>;

    /// The number of the server's replication id. A connection of an earlier one leads to a node that publishes nothing any more.
    fn replid(&self) -> u64;

    /// A node reports that a slot is at another node; gives whether the client goes there.
    fn moved(&self, slot: u16, from: &Address, to: (&str, u16)) -> bool;

    /// The map may be wrong.
    fn look_again(self: &Arc<Self>);

    /// A failure of a node, as the client receives it.
    fn about(&self, node: &Address, failure: Failure) -> Failure;
}

/// The channels of one client at one server or cluster, and the connections to them.
pub(crate) struct Listening {
    host: Handle,
    connect_timeout: Duration,
    response_timeout: Duration,
    channels: Mutex<Channels>,
    /// `None` after the close.
    connections: Mutex<Option<HashMap<Address, Connection>>>,
}

/// The connection to one node.
struct Connection {
    orders: UnboundedSender<Order>,
    task: AbortHandle,
}

impl Listening {
    /// The tasks run on `host`.
    pub(crate) fn new(host: &Handle, connect_timeout: Duration, response_timeout: Duration) -> Self {
        let connections = Mutex::new(Some(HashMap::new()));
        Self { host: host.clone(), connect_timeout, response_timeout, channels: Mutex::default(), connections }
    }

    /// Has every connection send the newest credentials.
    pub(crate) fn log_in(&self) {
        self.notify_all(|| Order::LogIn);
    }

    /// Has every connection look whether the server has another replication id.
    pub(crate) fn wake(&self) {
        self.notify_all(|| Order::Wake);
    }

    fn notify_all(&self, order: impl Fn() -> Order) {
        for connection in self.connections.lock().iter().flat_map(HashMap::values) {
            // One that has ended begins with the newest of both.
            let _ = connection.orders.send(order());
        }
    }

    /// Ends all connections, also those that would come.
    pub(crate) fn close(&self) {
        let connections = self.connections.lock().take();
        connections.into_iter().flatten().for_each(|(_, connection)| connection.task.abort());
    }
}

/// Has the listener get the messages of a channel, at the node of the channel's slot; returns whether the server is open.
pub(crate) fn listen<M: NodeMap>(map: &Arc<M>, channel: Channel, listener: &Listener) -> bool {
    if map.listening().connections.lock().is_none() {
        return false;
    }
    let mut out = Vec::new();
    map.listening().channels.lock().listen(channel, listener, &mut out);
    notify(out);
    place_channels(map, Moved::Nothing);
    true
}

/// Has each channel be at the node that serves its slot.
pub(crate) fn place_channels<M: NodeMap>(map: &Arc<M>, moved: Moved) {
    let mut out = Vec::new();
    let orders = map.listening().channels.lock().place(moved, |slot| map.node_of_slot(slot), &mut out);
    notify(out);
    send(map, orders);
}

fn send<M: NodeMap>(map: &Arc<M>, orders: Vec<(Address, Order)>) {
    if orders.is_empty() {
        return;
    }
    let listening = map.listening();
    let mut connections = listening.connections.lock();
    let Some(connections) = &mut *connections else { return };
    for (address, order) in orders {
        let is_subscription = matches!(order, Order::Subscribe(_));
        let is_sent = connections.get(&address).is_some_and(|connection| connection.orders.send(order).is_ok());
        // A new connection begins with all channels of its node.
        if !is_sent && is_subscription {
            let (orders, inbox) = unbounded_channel();
            let task = listening.host.spawn(task::run(Arc::downgrade(map), address.clone(), inbox)).abort_handle();
            connections.insert(address, Connection { orders, task });
        }
    }
}

fn notify(out: Notices) {
    out.into_iter().for_each(|(listener, notice)| listener(notice));
}
