//! Redis: a Redis or Valkey server.
//!
//! A `connection` is decided without I/O, and a `transport` opens its sockets and moves its bytes. `commands` has the bytes of
//! commands and the meaning of replies. The `routes` choose the connection that an operation takes. [`RedisServer`] only feeds
//! them. The crate `redis` appears nowhere outside this directory.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

mod account;
mod address;
mod address_map;
mod cluster;
mod cluster_url;
mod commands;
mod connection;
mod hosts;
mod known_sentinels;
mod listening;
mod login;
mod mistakes;
mod redacted;
mod replicated;
mod routes;
mod sentinel;
mod sentinel_groups;
mod sentinel_url;
mod settings;
mod tls_names;
mod transport;
mod url;

pub(crate) use self::cluster::ClusterServer;
use self::cluster::target::ClusterTarget;
pub use self::commands::script::Script;
pub use self::connection::buffers::Buffers;
pub use self::connection::connection::Connection;
pub use self::connection::effect::{Effect, Role};
pub use self::connection::handshake::Handshake;
pub use self::connection::input::Input;
pub use self::connection::job::Job;
pub use self::connection::primary::Primary;
pub use self::connection::server_state::{Failover, ServerState};
pub use self::listening::pub_sub::{Channel, Kind, PubSub, Said};
use self::routes::Routes;
pub use self::settings::Settings;
use self::transport::provided::{Change, Provided};
use self::url::Target;
use crate::clock::Tick;
use crate::error::Error;
use crate::io::reactor::LazyReactor;
use crate::op::{Op, QuorumConfig};
use crate::options::ClientOptions;
use crate::server::{Completion, Listener, Request, Server};

/// One Redis or Valkey server, with a connection for each kind of caller. A connection is made when it is first needed, and
/// replaced when it breaks.
pub struct RedisServer {
    address: String,
    routes: Arc<Routes>,
    /// The task that asks for new credentials in time.
    renewal: Option<AbortHandle>,
}

impl RedisServer {
    /// A server at `url`: `redis://`, `rediss://` (TLS), `unix://`, or `redis+sentinel://` for the primary that sentinels name.
    /// Reads the certificate files of `options`, but does no network I/O.
    ///
    /// `quorum_config` is the quorum of the server, `None` if it is the only server. `host` runs the work that no caller does
    /// itself. `on_state` is called once for every change, on any thread; it must not block. An operation whose answer takes longer
    /// than `response_timeout` has an unknown outcome.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a URL or a certificate file that can't be used. Passwords are never shown.
    pub fn new(
        url: &str,
        options: &ClientOptions,
        response_timeout: Duration,
        quorum_config: Option<QuorumConfig>,
        host: Handle,
        on_state: impl Fn(ServerState) + Send + Sync + 'static,
    ) -> Result<Arc<Self>, Error> {
        Self::driven(url, options, response_timeout, quorum_config, &host, &Arc::default(), on_state)
    }

    /// [`RedisServer::new`] for one of several servers, which one blocked thread drives all at once.
    pub(crate) fn driven(
        url: &str,
        options: &ClientOptions,
        response_timeout: Duration,
        quorum_config: Option<QuorumConfig>,
        host: &Handle,
        reactor: &Arc<LazyReactor>,
        on_state: impl Fn(ServerState) + Send + Sync + 'static,
    ) -> Result<Arc<Self>, Error> {
        let mut settings = Settings::new(url, options, response_timeout, quorum_config)?;
        let address = settings.target.address.clone();
        let provided = options.credentials.as_ref();
        let provided = provided.map(|provider| Provided::new(provider, &address, options.connect_timeout, host));
        settings.provided.clone_from(&provided);
        let routes = Routes::reporting(settings, None, (host, reactor), on_state);
        let renewal = provided.map(|provided| {
            let routes = Arc::downgrade(&routes);
            provided.keep(move |change| {
                let Some(routes) = routes.upgrade() else { return };
                match change {
                    Change::Login => routes.log_in(),
                    Change::Trouble(failure) => routes.report(ServerState::Warning(failure.message)),
                }
            })
        });
        Ok(Arc::new(Self { address, routes, renewal }))
    }
}

/// Checks a URL and the certificate files without making a server.
pub(crate) fn check_url(url: &str, options: &ClientOptions) -> Result<(), Error> {
    if is_of_cluster(url) { ClusterTarget::parse(url, options).map(|_| ()) } else { Target::parse(url, options).map(|_| ()) }
}

/// Whether the server at a URL speaks TLS, or one of the sentinels that name it.
pub(crate) fn speaks_tls(url: &str) -> bool {
    self::url::speaks_tls(url)
}

/// Whether sentinels name the server at a URL.
pub(crate) fn is_of_sentinel(url: &str) -> bool {
    self::url::is_of_sentinel(url)
}

/// Whether the server at a URL is a cluster.
pub(crate) fn is_of_cluster(url: &str) -> bool {
    self::url::is_of_cluster(url)
}

/// A URL without its password, for messages.
pub(crate) fn redacted(url: &str) -> String {
    self::redacted::redacted(url)
}

impl Server for RedisServer {
    fn address(&self) -> &str {
        &self.address
    }

    fn submit(&self, request: Request, completion: Completion) {
        let completion = if matches!(request.op, Op::Examine) { self.routes.examined(completion) } else { completion };
        self.routes.submit(Job::new(request, completion));
    }

    fn clock(&self, at: Tick) -> Option<u64> {
        self.routes.clock(at)
    }

    fn warm(&self) {
        self.routes.warm();
    }

    /// Listens on a connection for all channels, which is closed some seconds after the last listener is gone.
    fn listen(&self, channel: &str, listener: Listener) -> bool {
        self.routes.listen(Channel { name: channel.into(), kind: Kind::Both }, &listener)
    }

    fn give_up(&self) {
        self.routes.give_up();
    }

    fn close(&self) {
        self.stop_renewal();
        self.routes.close();
    }
}

impl RedisServer {
    fn stop_renewal(&self) {
        if let Some(task) = &self.renewal {
            task.abort();
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop_renewal();
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisServer").field("address", &self.address).finish_non_exhaustive()
    }
}
