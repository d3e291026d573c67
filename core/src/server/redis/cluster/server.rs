//! The server: a cluster as one lock server.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::clock::Tick;
use crate::error::Error;
use crate::io::reactor::LazyReactor;
use crate::name::slot::slot_of;
use crate::name::{Keys, LEADERS};
use crate::options::ClientOptions;
use crate::server::redis::cluster::cluster::Cluster;
use crate::server::redis::cluster::nodes::Nodes;
use crate::server::redis::cluster::routed::Routed;
use crate::server::redis::cluster::target::ClusterTarget;
use crate::server::redis::connection::server_state::ServerState;
use crate::server::redis::listening::Listening;
use crate::server::redis::listening::pub_sub::{Channel, Kind};
use crate::server::redis::transport::provided::{Change, Provided, Renewal};
use crate::server::{Completion, Listener, Request, Server};
use crate::sync::Mutex;

/// A cluster. Each node in use has a connection for each kind of caller.
pub(crate) struct ClusterServer {
    cluster: Arc<Cluster>,
    /// The task that asks for new credentials in time.
    renewal: Mutex<Option<Renewal>>,
}

impl ClusterServer {
    /// A cluster at `url`: `redis+cluster://` or `rediss+cluster://`. Reads the certificate files of `options`, but does no network
    /// I/O. The other arguments are those of a [`RedisServer`](crate::server::redis::RedisServer).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a URL or a certificate file that can't be used. Passwords are never shown.
    pub(crate) fn new(
        url: &str,
        options: &ClientOptions,
        response_timeout: Duration,
        host: &Handle,
        reactor: &Arc<LazyReactor>,
        on_state: impl Fn(ServerState) + Send + Sync + 'static,
    ) -> Result<Arc<Self>, Error> {
        let target = ClusterTarget::parse(url, options)?;
        let provided = options.credentials.as_ref();
        let provided = provided.map(|provider| Provided::new(provider, &target.address, options.connect_timeout, host));
        let cluster = Arc::new(Cluster {
            target,
            options: options.clone(),
            response_timeout,
            provided: provided.clone(),
            host: host.clone(),
            reactor: Arc::clone(reactor),
            nodes: Nodes::default(),
            mapping: Mutex::default(),
            refreshing: Mutex::default(),
            listening: Listening::new(host, options.connect_timeout, response_timeout),
            on_state: Box::new(on_state),
        });
        let renewal = provided.map(|provided| {
            provided.renew(&cluster, |cluster, change| match change {
                Change::Login => cluster.log_in(),
                Change::Trouble(failure) => (cluster.on_state)(ServerState::Warning(failure.message)),
            })
        });
        Ok(Arc::new(Self { cluster, renewal: Mutex::new(renewal) }))
    }
}

impl Server for ClusterServer {
    fn address(&self) -> &str {
        &self.cluster.target.address
    }

    fn submit(&self, request: Request, completion: Completion) {
        self.cluster.submit(Routed::new(request, completion));
    }

    /// The clock that is furthest behind: a proposal for a fence is ahead of no node then.
    fn clock(&self, at: Tick) -> Option<u64> {
        self.cluster.nodes.all().iter().filter_map(|node| node.routes.clock(at)).min()
    }

    fn keep_warm(&self) {
        self.cluster.nodes.all().iter().for_each(|node| node.routes.keep_warm());
    }

    fn node_of(&self, keys: &Keys) -> Option<String> {
        let primary = self.cluster.mapping.lock().primary_of(slot_of(keys.lock()));
        primary.map(|primary| primary.to_string())
    }

    fn notifies_by_lock(&self) -> bool {
        true
    }

    /// Listens on one more connection to the node of the channel, which carries the subscriptions to all channels there. What leaders
    /// announce crosses to every node.
    fn listen(&self, channel: &str, listener: Listener) -> bool {
        let kind = if channel.starts_with(LEADERS) { Kind::Plain } else { Kind::Sharded };
        self.cluster.listen(Channel { name: channel.into(), kind }, &listener)
    }

    fn cancel(&self) {
        self.cluster.cancel();
    }

    fn close(&self) {
        drop(self.renewal.lock().take());
        self.cluster.close();
    }
}

impl Drop for ClusterServer {
    fn drop(&mut self) {
        self.close();
    }
}
