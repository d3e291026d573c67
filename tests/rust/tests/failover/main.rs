//! Failovers: replicas of real servers, promoted or not, behind a proxy that plays a name or a virtual address.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails where it can't go on, or prints for another"
)]

mod back;
mod fences;
mod isolated;
mod load;
mod oracle;
mod overlaps;
mod pair;
#[path = "../peer/mod.rs"]
mod peer;
mod quarantine;
mod reached;
mod replicas;
mod replids;
mod roles;
mod sentinel;
mod sentinel_wrong;
mod trio;
mod watched;
