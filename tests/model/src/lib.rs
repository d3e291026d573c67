//! The model.
#![allow(clippy::cast_possible_truncation)]
pub mod action;
pub mod canon;
pub mod client;
pub mod packed;
pub mod promise;
pub mod rules;
pub mod scenario;
pub mod search;
pub mod server;
pub mod state;
pub mod trace;
pub mod visited;
