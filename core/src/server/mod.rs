//! One independent lock server.
//!
//! A server is one method: [`Server::submit`] takes an operation and calls a completion once. Who drives the I/O, and what
//! kind of waiter stands behind the completion (a task's waker, a parked thread, a host language's queue, a simulation),
//! is not the protocol's concern. The operations mean what [`machine`](crate::machine) says, whatever the transport.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::clock::Tick;
use crate::error::Remaining;
use crate::name::Keys;

pub mod memory;
pub mod redis;
#[cfg(feature = "testing")]
pub mod scripted;

/// An operation on one server. Every one is atomic there, and described in [`machine`](crate::machine).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// Take the lock if it is free, and cast a vote for a fence.
    Acquire {
        /// The lock.
        keys: Arc<Keys>,
        /// The value to write.
        owner: Arc<str>,
        /// The key's time to live, milliseconds.
        ttl_ms: u64,
        /// The fence the client would like, microseconds since the epoch.
        proposal: u64,
        /// The key of exactly this owner counts as free.
        adopt: Option<Arc<str>>,
        /// Whether to queue by principle: behind every waiter there is, also while the lock is free.
        fair: bool,
        /// Where to line up if the lock is another's; `None` for one attempt.
        place: Option<Place>,
        /// The quorum the server belongs to; `None` for a client of one server.
        fleet: Option<Fleet>,
    },
    /// Raise the fence to `token`, for a vote below it.
    Confirm {
        /// The lock.
        keys: Arc<Keys>,
        /// Our value.
        owner: Arc<str>,
        /// The attested fence.
        token: u64,
    },
    /// Make at least `ttl_ms` remain.
    Extend {
        /// The lock.
        keys: Arc<Keys>,
        /// Our value.
        owner: Arc<str>,
        /// What shall remain, milliseconds.
        ttl_ms: u64,
        /// Our fence.
        token: u64,
    },
    /// Write the key again on a server that lost it; sent only after a majority confirmed the extension.
    Heal {
        /// The lock.
        keys: Arc<Keys>,
        /// Our value.
        owner: Arc<str>,
        /// The key's time to live, milliseconds.
        ttl_ms: u64,
        /// Our fence.
        token: u64,
    },
    /// Delete the key if it is ours, and tell the next waiter.
    Release {
        /// The lock.
        keys: Arc<Keys>,
        /// Our value.
        owner: Arc<str>,
        /// A waiter's entry that leaves the queue; what it was told is told to the next one.
        leave: Option<Arc<str>>,
        /// Whether this server alone decides who is next, and may keep the lock for a waiter.
        grants: bool,
    },
    /// Look, change nothing.
    Inspect {
        /// The lock.
        keys: Arc<Keys>,
    },
    /// Look at the marker: does this server belong to the quorum the client thinks it does?
    Greet {
        /// The quorum the client believes in; `None` for a client of one server.
        fleet: Option<Fleet>,
    },
    /// Tell what the server is: the reply's `holder` has the fields version, role, persistence and eviction.
    Examine,
    /// Try what the scripts do, on keys that no lock has: the reply's `holder` has a line for each right that is missing.
    Probe {
        /// [`Keys::of_no_lock`].
        keys: Arc<Keys>,
    },
    /// Write the marker as trusted since for ever: the server votes at once.
    Trust {
        /// The quorum it belongs to.
        fleet: Fleet,
    },
}

impl Op {
    /// Whether the operation is about the servers themselves, and so waits for the next attempt to connect instead of being
    /// told why the last one failed.
    #[must_use]
    pub const fn asks_afresh(&self) -> bool {
        matches!(self, Self::Examine | Self::Probe { .. } | Self::Trust { .. })
    }

    /// Whether the operation may wait for a reconnect: only a release may, everything else dies with its round.
    #[must_use]
    pub fn survives_reconnect(&self) -> bool {
        matches!(self, Self::Release { .. })
    }

    /// The operation as it is spelled in messages, and in the names of the scripts.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Acquire { .. } => "acquire",
            Self::Confirm { .. } => "confirm",
            Self::Extend { .. } => "extend",
            Self::Heal { .. } => "heal",
            Self::Release { .. } => "release",
            Self::Inspect { .. } => "inspect",
            Self::Greet { .. } => "greet",
            Self::Examine => "examine",
            Self::Probe { .. } => "probe",
            Self::Trust { .. } => "trust",
        }
    }

    /// The lock it is about; `None` for what is about the server.
    #[must_use]
    pub const fn keys(&self) -> Option<&Arc<Keys>> {
        match self {
            Self::Acquire { keys, .. }
            | Self::Confirm { keys, .. }
            | Self::Extend { keys, .. }
            | Self::Heal { keys, .. }
            | Self::Release { keys, .. }
            | Self::Inspect { keys } => Some(keys),
            Self::Greet { .. } | Self::Examine | Self::Probe { .. } | Self::Trust { .. } => None,
        }
    }

    /// On whose behalf it is done, if on anybody's.
    #[must_use]
    pub const fn owner(&self) -> Option<&Arc<str>> {
        match self {
            Self::Acquire { owner, .. }
            | Self::Confirm { owner, .. }
            | Self::Extend { owner, .. }
            | Self::Heal { owner, .. }
            | Self::Release { owner, .. } => Some(owner),
            Self::Inspect { .. } | Self::Greet { .. } | Self::Examine | Self::Probe { .. } | Self::Trust { .. } => None,
        }
    }
}

/// A waiter's place in the queue of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The waiter, `<f|b>:<client>:<number> <who>`.
    pub entry: Arc<str>,
    /// When it first arrived there, by the server's clock in microseconds; 0 for a newcomer.
    pub arrival: u64,
    /// More wait under the same entry: once the lock is granted it goes to the tail.
    pub stays: bool,
}

/// What a reply tells of the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Queued {
    /// Nothing.
    #[default]
    Nothing,
    /// Acquire: where the waiter stands.
    At {
        /// How many are before it.
        rank: u64,
        /// When it arrived, by the server's clock in microseconds.
        arrival: u64,
    },
    /// Inspect: who waits.
    Waiters {
        /// How many.
        count: u64,
        /// The first of them.
        first: Vec<String>,
    },
    /// Release: the next waiter could not be told, and why.
    Untold(String),
}

/// The quorum a server belongs to, as the client is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// The number of servers.
    pub servers: u32,
    /// The longest time a hold may remain, milliseconds.
    pub max_ttl_ms: u64,
}

impl fmt::Display for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n={} max_ttl={}", self.servers, self.max_ttl_ms)
    }
}

/// What the server decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Acquire: the lock is ours here, `fence` is the vote.
    Vote,
    /// Acquire: the lock is `holder`'s.
    Held,
    /// Done.
    Ok,
    /// The lock is not ours (see `holder`), or its fence is newer than ours.
    No,
    /// A key holds something else than it should; `holder` names the type found.
    Conflict,
    /// Acquire: the server is new or lost its data, and votes after `remaining`.
    Quarantine,
    /// The marker says another quorum; `holder` is its `n=… max_ttl=…`.
    Mismatch,
    /// Inspect, examine: this is what there is.
    Info,
}

/// A server's answer. One shape for all operations; what a verdict doesn't use is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// What the server decided.
    pub verdict: Verdict,
    /// The server's clock, microseconds since the epoch.
    pub time_us: u64,
    /// The lock's fence counter after the operation, 0 if there is none.
    pub fence: u64,
    /// The value of the lock key after the operation, if there is one.
    pub holder: Option<String>,
    /// How long the key remains.
    pub remaining: Remaining,
    /// The server's run id, where the transport knows it: two servers of a quorum with the same one are the same server.
    pub run_id: Option<Arc<str>>,
    /// Whether the operation was also sent on a connection that broke, and may have been done then.
    pub repeated: bool,
    /// What there is to say of the lock's queue.
    pub queued: Queued,
}

impl Reply {
    /// A reply.
    #[must_use]
    pub fn new(verdict: Verdict, time_us: u64, fence: u64, holder: Option<String>, remaining: Remaining) -> Self {
        Self { verdict, time_us, fence, holder, remaining, run_id: None, repeated: false, queued: Queued::Nothing }
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The connection was refused.
    Refused,
    /// The name could not be resolved.
    Dns,
    /// The TLS handshake failed.
    Tls,
    /// No answer within the response timeout, or no connection within the connect timeout.
    Timeout,
    /// The connection broke.
    Disconnected,
    /// What answers is not a Redis, or answers what was not asked.
    Protocol,
    /// The server is loading its data.
    Loading,
    /// The server is a replica.
    ReadOnly,
    /// The server refuses writes because it can't persist them.
    Misconfigured,
    /// The server is out of memory.
    OutOfMemory,
    /// The cluster is down, or the slot is moving.
    ClusterDown,
    /// Wrong or missing credentials, or rights.
    Denied,
    /// The server is new or lost its data and doesn't vote yet.
    Quarantine,
    /// The server's marker says another quorum.
    Mismatch,
    /// The operation's deadline passed before it was sent.
    TooLate,
    /// The client is closing.
    Closed,
    /// Something else.
    Other,
}

impl FailureKind {
    /// Every kind.
    pub const ALL: [Self; 17] = [
        Self::Refused,
        Self::Dns,
        Self::Tls,
        Self::Timeout,
        Self::Disconnected,
        Self::Protocol,
        Self::Loading,
        Self::ReadOnly,
        Self::Misconfigured,
        Self::OutOfMemory,
        Self::ClusterDown,
        Self::Denied,
        Self::Quarantine,
        Self::Mismatch,
        Self::TooLate,
        Self::Closed,
        Self::Other,
    ];

    /// The kind that [`as_str`](Self::as_str) spells like that.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The kind as it is spelled in every language.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Dns => "dns",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Disconnected => "disconnected",
            Self::Protocol => "protocol",
            Self::Loading => "loading",
            Self::ReadOnly => "read_only",
            Self::Misconfigured => "misconfigured",
            Self::OutOfMemory => "out_of_memory",
            Self::ClusterDown => "cluster_down",
            Self::Denied => "denied",
            Self::Quarantine => "quarantine",
            Self::Mismatch => "mismatch",
            Self::TooLate => "too_late",
            Self::Closed => "closed",
            Self::Other => "other",
        }
    }
}

/// An operation without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// What happened.
    pub kind: FailureKind,
    /// One sentence, without credentials.
    pub message: String,
    /// Whether the server may have applied the operation. `false` is a promise that it did not and will not.
    pub maybe_applied: bool,
}

impl Failure {
    /// A failure after which the operation may have been applied.
    #[must_use]
    pub fn unknown(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), maybe_applied: true }
    }

    /// A failure of an operation that never reached the server, or that the server refused as a whole.
    #[must_use]
    pub fn not_applied(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), maybe_applied: false }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A server's answer, or why there is none.
pub type Answer = Result<Reply, Failure>;

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

    /// Lets go of connections. Operations still under way are completed with [`FailureKind::Closed`], after the releases
    /// among them had a moment to leave.
    fn close(&self) {}
}
