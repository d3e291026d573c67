//! Credentials that a provider gives: they change, are refused, and end, on the oldest and the newest real server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod connections;
mod failing;
mod rotating;
mod tokens;
