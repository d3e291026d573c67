//! Cluster: a Redis or Valkey Cluster as one lock server.
//!
//! The `topology` says which node serves the `slot` of a lock, and each node in use has the connections of a single server
//! (`nodes`, `joining`). What a node reports instead of an answer (`MOVED`, `ASK`) is followed where the answer is read
//! (`sending`): by the caller's own thread, if that does its I/O. While a slot moves, an operation is `split` into parts on single
//! keys. The `mapping` is asked for again when it proves wrong (`refreshing`, `asking`). Waiters are notified on channels in the
//! slot of their lock: the `node_map` says where those are.

mod asking;
#[allow(clippy::module_inception, reason = "the room is called after what it is for")]
mod cluster;
mod facts;
mod gathered;
mod joining;
mod mapping;
mod node_map;
mod nodes;
mod refreshing;
mod routed;
mod scanned;
mod sending;
mod server;
mod split;
pub(crate) mod target;
mod topology;

pub(crate) use self::server::ClusterServer;
