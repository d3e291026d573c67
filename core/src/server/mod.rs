//! One independent lock server.
//!
//! A server is one method: [`Server::submit`] takes an operation and calls a completion once. Who drives the I/O, and what
//! kind of waiter stands behind the completion (a task's waker, a parked thread, a host language's queue, a simulation),
//! is not the protocol's concern. The operations mean what [`machine`](crate::machine) says, whatever the transport.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::op::{Answer, Failure, FailureKind, Op};

pub mod memory;
pub(crate) mod own;
pub(crate) mod redis;
#[cfg(feature = "testing")]
pub mod scripted;

pub use crate::clock::Tick;
pub use crate::name::{Keys, Kind};

/// One operation on its way to a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// Not to be sent (or sent again) after this instant.
    pub deadline: Tick,
}

impl Request {
    /// A request to do `op`, not sent later than `deadline`.
    #[must_use]
    pub fn new(op: Op, deadline: Tick) -> Self {
        Self { op, deadline }
    }
}

/// Receives the answer of one operation, exactly once. Dropping it unanswered counts as an unknown outcome.
pub struct Completion(Option<Box<dyn FnOnce(Answer) + Send>>);

impl Completion {
    /// A completion that calls `receive`. It may be called on any thread, also inside [`Server::submit`], and must not block.
    pub fn new(receive: impl FnOnce(Answer) + Send + 'static) -> Self {
        Self(Some(Box::new(receive)))
    }

    /// Delivers the answer.
    pub fn complete(mut self, answer: Answer) {
        if let Some(receive) = self.0.take() {
            receive(answer);
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(receive) = self.0.take() {
            receive(Err(Failure::unknown(FailureKind::Disconnected, "the operation was dropped without an answer")));
        }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}

/// What a server tells its listener.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// From now on messages are heard. Said anew after every reconnect: what was published before then may be missed.
    Listening,
    /// Messages don't come: the connection broke, or the server doesn't allow it. `Listening` may follow.
    Deaf(Failure),
    /// A message on the channel.
    Message(String),
}

/// Receives what a server publishes. Called on any thread, also inside [`Server::listen`]; must not block.
pub type Listener = Arc<dyn Fn(Notice) + Send + Sync>;

/// A listener that belongs to who listens.
pub(crate) type WeakListener = Weak<dyn Fn(Notice) + Send + Sync>;

/// One independent lock server. Implement it to bring your own.
///
/// The contract: operations submitted one after another by one thread reach the server in that order while the connection
/// lives; each completion is called once, in bounded time; `submit` never blocks.
pub trait Server: Send + Sync + 'static {
    /// The server's address for messages and events, without credentials.
    fn address(&self) -> &str;

    /// Starts an operation.
    fn submit(&self, request: Request, completion: Completion);

    /// Makes ready what operations of the background will use, such as a connection: a hold is renewed soon. Must not block.
    fn warm(&self) {}

    /// Starts to hear what is published on `channel`. Asked for once at most by each client.
    ///
    /// The server holds the listener weakly: who listens keeps it, and hears nothing more after dropping it, or after the
    /// server was closed or dropped.
    ///
    /// Returns whether there is such a thing here; without it, waiters poll.
    fn listen(&self, channel: &str, listener: Listener) -> bool {
        let _ = (channel, listener);
        false
    }

    /// Whether the server tells the time by this process's clock, which a test may move ([`testing::Clock`](crate::testing::Clock)).
    #[cfg(feature = "testing")]
    fn moves_with_clock(&self) -> bool {
        false
    }

    /// Takes nothing but releases from now on: a close has begun. Operations under way are completed with [`FailureKind::Closed`],
    /// but for the releases; what an acquire or a heal among them may have written is taken back ([`Op::undo`]), on its own
    /// connection, where nothing overtakes it.
    fn give_up(&self) {}

    /// Lets go of connections. Operations still under way are completed with [`FailureKind::Closed`], after the releases
    /// among them had a moment to leave.
    fn close(&self) {}
}
