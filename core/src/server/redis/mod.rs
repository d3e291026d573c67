//! Redis: a Redis or Valkey server.
//!
//! A `connection` is decided without I/O, and a `transport` opens its sockets and moves its bytes. `commands` has the bytes of
//! commands and the meaning of replies. The `routes` are the server: they choose the connection that an operation takes. The crate `redis` appears nowhere outside this directory.

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
mod pauses;
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
pub use self::connection::in_flight::InFlight;
pub use self::connection::input::Input;
pub use self::connection::primary::Primary;
pub use self::connection::server_state::{Failover, ServerState};
pub use self::listening::pub_sub::{Channel, ChannelEvent, Kind, PubSub};
pub(crate) use self::redacted::redacted;
pub use self::routes::Routes as RedisServer;
pub use self::settings::Settings;
use self::url::Target;
pub(crate) use self::url::{is_of_cluster, is_of_sentinel, speaks_tls};
use crate::error::Error;
use crate::options::ClientOptions;

/// Checks a URL and the certificate files without making a server.
pub(crate) fn check_url(url: &str, options: &ClientOptions) -> Result<(), Error> {
    if is_of_cluster(url) { ClusterTarget::parse(url, options).map(|_| ()) } else { Target::parse(url, options).map(|_| ()) }
}
