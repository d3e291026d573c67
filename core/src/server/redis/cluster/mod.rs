//! Cluster: a Redis or Valkey Cluster as one lock server.
//!
//! The `topology` says which node serves the `slot` of a lock, and each node in use has the connections of a single server
//! (`nodes`, `joining`). What a node reports instead of an answer (`MOVED`, `ASK`) is followed where the answer is read
//! (`sending`): by the caller's thread, if that does its I/O. While a slot moves, an operation is `split` into parts on single keys.
//! A wrong `mapping` is asked for again (`refreshing`, `asking`), and so it is behind a list of all keys (`scanning`, `scanned`). Waiters are notified in the slot of their lock, by the `node_map`.

mod asking;
#[allow(clippy::module_inception, reason = "the room is called after what it is for")]
mod cluster;
mod facts;
mod joining;
mod mapping;
mod node_map;
mod nodes;
mod refreshing;
mod routed;
mod scanned;
mod scanning;
mod sending;
mod server;
mod split;
pub(crate) mod target;
mod topology;

pub(crate) use self::server::ClusterServer;
