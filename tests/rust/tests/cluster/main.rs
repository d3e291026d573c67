//! A cluster as one lock server: locks on all of its nodes, slots that move, and primaries that fail, on real servers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod confirmed;
mod everyday;
mod failed;
mod moved;
mod multi;
mod named;
mod reached;
mod rights;
mod tokens;
mod whole;
mod woken;
