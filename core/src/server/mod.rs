//! Server: the interface of one independent lock server.
//!
//! A server is one method: [`Server::submit`] takes an operation and calls a completion once. The protocol doesn't know who
//! drives the I/O. It doesn't know the kind of waiter behind the completion either: a task's waker, a parked thread, a host
//! language's queue, or a simulation. [`machine`](crate::machine) defines the operations for every transport.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::io::reactor::Io;
use crate::op::{Answer, Failure, FailureKind, Op};
use crate::server::tag::Tag;

pub mod memory;
pub(crate) mod own;
pub(crate) mod redis;
#[cfg(feature = "testing")]
pub mod scripted;
pub(crate) mod tag;

pub use crate::clock::Tick;
pub use crate::name::{Keys, Kind, Listed};

/// One operation on its way to a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// The instant after which it is not sent (or sent again).
    pub deadline: Tick,
    /// Of a release that nobody waits behind: the value of the lock's key, as this client knows it. A server that can compare and delete may
    /// do so, and if the value is another one the operation is done as always.
    pub value: Option<Arc<str>>,
    /// Whether an acquire may be refused, without more than that, where it takes more than a free lock: it is sent again then.
    pub(crate) only_if_free: bool,
    /// Who does the I/O.
    pub(crate) io: Io,
}

impl Request {
    /// A request to do `op`, not sent later than `deadline`.
    #[must_use]
    pub fn new(op: Op, deadline: Tick) -> Self {
        Self { op, deadline, value: None, only_if_free: false, io: Io::Background }
    }

    /// The same for an acquire that is of no use unless the lock is free.
    pub(crate) fn if_free(self) -> Self {
        Self { only_if_free: true, ..self }
    }

    /// The same, with its I/O done by `io`.
    pub(crate) fn by(self, io: &Io) -> Self {
        Self { io: io.clone(), ..self }
    }

    /// The same, for a lock whose key has this value.
    #[must_use]
    pub fn of_value(self, value: Option<Arc<str>>) -> Self {
        Self { value, ..self }
    }
}

/// Receives the answer of one operation, exactly once. Dropping it unanswered counts as an unknown outcome.
pub struct Completion(Option<Receive>);

type ReceiveOnce = Box<dyn FnOnce(Answer, &Io) + Send>;

/// Receives an answer, and who does the I/O of what follows from it.
enum Receive {
    By(ReceiveOnce),
    /// An operation of an acquisition on the server of this number.
    Of(Arc<dyn Receives>, usize, Tag),
}

impl Receive {
    fn receive(self, answer: Answer, io: &Io) {
        match self {
            Self::By(receive) => receive(answer, io),
            Self::Of(receiver, server, tag) => receiver.receive(server, tag, answer, io),
        }
    }
}

/// An acquisition, which receives the answers to all its operations. So an operation needs no allocation of its own for that.
pub(crate) trait Receives: Send + Sync {
    /// Takes an answer; `io` does the I/O of what follows.
    fn receive(self: Arc<Self>, server: usize, tag: Tag, answer: Answer, io: &Io);
}

impl Completion {
    /// A completion that calls `receive`. It may be called on any thread, also inside [`Server::submit`], and must not block.
    pub fn new(receive: impl FnOnce(Answer) + Send + 'static) -> Self {
        Self::followed(move |answer, _| receive(answer))
    }

    /// A completion from which more follows.
    pub(crate) fn followed(receive: impl FnOnce(Answer, &Io) + Send + 'static) -> Self {
        Self(Some(Receive::By(Box::new(receive))))
    }

    /// The completion of an operation of an acquisition.
    pub(crate) fn of(receiver: Arc<dyn Receives>, server: usize, tag: Tag) -> Self {
        Self(Some(Receive::Of(receiver, server, tag)))
    }

    /// Delivers the answer.
    pub fn complete(self, answer: Answer) {
        self.complete_by(&Io::of_caller(), answer);
    }

    /// Delivers the answer; `io` does what follows.
    pub(crate) fn complete_by(mut self, io: &Io, answer: Answer) {
        if let Some(receive) = self.0.take() {
            receive.receive(answer, io);
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(receive) = self.0.take() {
            let why = "the operation was dropped without an answer";
            receive.receive(Err(Failure::unknown(FailureKind::Disconnected, why)), &Io::Background);
        }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}

/// A notice of a server for its listener.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// From now on messages arrive. This comes again after every reconnect: earlier messages may be lost.
    Listening,
    /// No messages arrive: the connection broke, or the server doesn't allow it. `Listening` may follow.
    NotListening(Failure),
    /// A message on the channel.
    Message(String),
}

/// Receives the messages that a server publishes. It is called on any thread, also inside of [`Server::listen`], and must not
/// block.
pub type Listener = Arc<dyn Fn(Notice) + Send + Sync>;

/// A listener that its caller keeps.
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

    /// The server's clock at this time, in microseconds since the epoch, as far as it is known; never ahead of what the server
    /// itself shows. Fences are proposed by it. Without it a quorum gets proposals by this machine's clock.
    fn clock(&self, at: Tick) -> Option<u64> {
        let _ = at;
        None
    }

    /// Prepares for operations of the background, for example by opening a connection: something is held, and renewed sooner or
    /// later. It is called again every half a minute while something is held. Must not block.
    fn keep_warm(&self) {}

    /// Starts to listen to `channel`, beside the channels of earlier calls: a client calls it for its own channel, and for each election that
    /// it observes.
    ///
    /// The server holds the listener weakly. The caller keeps it, and gets no more messages after it has dropped it. The same
    /// holds after the server was closed or dropped.
    ///
    /// Returns whether this server has channels; without them, waiters poll.
    fn listen(&self, channel: &str, listener: Listener) -> bool {
        let _ = (channel, listener);
        false
    }

    /// Whether the lock may be free, and this server can say by one request that it isn't. Then an acquire may ask for a free lock first.
    #[doc(hidden)]
    fn may_be_free(&self, keys: &Keys) -> bool {
        let _ = keys;
        false
    }

    /// The address of the node that serves the lock, where the nodes of a cluster share the locks, if it is known.
    #[doc(hidden)]
    fn node_of(&self, keys: &Keys) -> Option<String> {
        let _ = keys;
        None
    }

    /// Whether a waiter is notified of a release on a channel of its lock, and not on the one of its client. Then [`Server::listen`] is
    /// called for each lock that a client waits for, each time again.
    #[doc(hidden)]
    fn notifies_by_lock(&self) -> bool {
        false
    }

    /// Whether the server uses this process's clock, which a test may move ([`testing::Clock`](crate::testing::Clock)).
    #[cfg(feature = "testing")]
    fn moves_with_clock(&self) -> bool {
        false
    }

    /// Accepts only releases from now on: a close has begun. Other operations under way are completed with
    /// [`FailureKind::Closed`]. An acquire or a heal among them may have written a value. It is removed ([`Op::undo`]) on the
    /// same connection, where no request overtakes it.
    fn cancel(&self) {}

    /// Closes the connections. First the releases under way get a moment to be sent. Operations that are still under way are
    /// completed with [`FailureKind::Closed`].
    fn close(&self) {}
}
