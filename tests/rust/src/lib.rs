//! Fixtures of the Rust tests: real servers that live as long as a value, and a network that fails on command.
//!
//! A fixture that can't do its work panics: the test has failed, and no caller could handle an error.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a broken fixture fails its test at once")]

mod binary;
mod checkout;
mod clock;
mod cluster;
mod connection;
mod events;
mod link;
mod options;
mod patience;
mod proxy;
mod server;
mod terminator;
mod tether;

pub use binary::Binary;
pub use checkout::{certificate, checkout};
pub use clock::run_ahead;
pub use cluster::{Cluster, ClusterOptions, SLOTS};
pub use connection::{Connection, Reply};
pub use events::Events;
pub use link::Fault;
pub use options::ServerOptions;
pub use patience::{LENIENT, PATIENCE, PROMPTLY, TOLERANCE, TTL, eventually};
pub use proxy::Proxy;
pub use server::RealServer;

/// Whether the long tests run, as `tests/run all` does.
pub fn long() -> bool {
    std::env::var_os("LOCKTENDER_LONG").is_some()
}
