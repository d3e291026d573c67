//! Down, connecting or up.

use std::future::pending;
use std::pin::Pin;

use super::link::{Event, Link};
use crate::server::Failure;

/// Whether there is a connection.
pub(super) enum State {
    Down,
    Connecting(Pin<Box<dyn Future<Output = Result<Link, Failure>> + Send>>),
    Up(Link),
}

/// What a state brings.
pub(super) enum News {
    Connected(Result<Link, Failure>),
    Link(Event),
}

impl State {
    /// Waits for what the state brings. Cancel safe.
    pub(super) async fn next(&mut self) -> News {
        match self {
            Self::Down => pending().await,
            Self::Connecting(attempt) => News::Connected(attempt.await),
            Self::Up(link) => News::Link(link.next().await),
        }
    }
}
