//! One connection: to real servers, to false ones, and over a bad network.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "the modules of one program")]

mod connect;
mod driverless;
mod late;
mod link;
mod listen;
mod network;
#[path = "../peer/mod.rs"]
mod peer;
mod proxies;
mod refusals;
mod replies;
mod rights;
mod runtimes;
mod server;
mod wrong_servers;
