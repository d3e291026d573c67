//! Operations: what a server can be asked to do, and what it answers. Servers, the protocol and the machine share these words.

mod failure;
pub mod history;
pub(crate) mod holder;
pub mod job;
mod part;
mod reply;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::failure::Redirect;
pub use self::failure::{Failure, FailureKind};
pub use self::history::{Beside, HistoryEntry, HistoryNote, HoldState};
pub use self::part::{Part, PartOp};
pub use self::reply::{ClusterFacts, Cursor, Inside, Queued, Reply, SentinelFacts, ServerFacts, Verdict};
use crate::mutant::mutant;
use crate::name::{Keys, Kind, Listed, LockKind};
use crate::op::job::{Ending, OpenAttempt, Terms};

/// A server's answer, or why there is none.
pub type Answer = Result<Reply, Failure>;

/// An operation on one server. Every one is atomic there, and described in [`machine`](crate::machine).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// About one lock.
    Lock(LockOp),
    /// A part of an operation on one lock.
    Part(Box<PartOp>),
    /// Look at the marker: does this server belong to the quorum the client thinks it does?
    Greet {
        /// The quorum the client believes in; `None` for a client of one server.
        quorum_config: Option<QuorumConfig>,
    },
    /// Describe the server.
    Examine,
    /// Try what the scripts do, on keys that no lock has, and report which rights are missing.
    Probe {
        /// Keys that no lock has, under the client's prefix.
        keys: Arc<Keys>,
    },
    /// Show a part of the keys of locks, or of jobs. What was there all the time is shown at least once.
    Scan {
        /// Which keys.
        listed: Listed,
        /// Where the part begins: what the answer to the part before says, and the default for the first one.
        cursor: Cursor,
        /// A part of the lock's key. The server may leave out locks whose keys don't contain it.
        part: Arc<str>,
    },
    /// Show whether the value of a key begins as that of a lock of this library.
    Peek {
        /// The key.
        key: Arc<str>,
    },
    /// Note in the history how a hold stands.
    Log(Box<HistoryNote>),
    /// Show the latest entries of the history, the last one first.
    History {
        /// Up to the entry before this id; `None` for the last one.
        before: Option<(u64, u64)>,
        /// No entry that was written earlier than this, by the server's clock in milliseconds.
        since_ms: u64,
        /// At most so many.
        count: u32,
    },
    /// Publish on a channel.
    Publish {
        /// The channel.
        channel: Arc<str>,
        /// The message.
        message: Arc<str>,
    },
    /// Wait until replicas have confirmed all that was written before on the same connection.
    AwaitReplicas {
        /// How many replicas.
        replicas: u32,
        /// The longest wait, in milliseconds.
        timeout_ms: u64,
    },
    /// Show the marker, whatever it says, or delete it.
    Marker {
        /// Whether it is deleted: the server belongs to no quorum then.
        remove: bool,
    },
    /// Write the marker as trusted from the beginning: the server votes at once.
    Trust {
        /// The quorum it belongs to.
        quorum_config: QuorumConfig,
    },
}

/// An operation on one lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockOp {
    /// The lock.
    pub keys: Arc<Keys>,
    /// On whose behalf it is done: the owner value of a hold, or the entry of a waiter that leaves. Empty for a look.
    pub by: Arc<str>,
    /// What is done.
    pub verb: Verb,
}

/// What is done with a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verb {
    /// Take the lock if it is free, and write the owner value. On a quorum it casts a vote for a fence, and on one server it gets one.
    Acquire {
        /// The key's time to live, milliseconds.
        ttl_ms: u64,
        /// On a quorum the fence the client would like: its clock, microseconds since the epoch, or one more than the last fence it saw.
        /// On one server the fence that it has seen, which the new one has to be above, or 0.
        proposal: u64,
        /// The hold to take over, of another process.
        adopt: Option<Adoption>,
        /// Whether the lock is fair: then a newcomer stands behind every waiter there is, also while the lock is free.
        fair: bool,
        /// Where to enqueue if the lock is another's; `None` for one attempt.
        place: Option<QueuePlace>,
        /// The quorum the server belongs to; `None` for a client of one server.
        quorum_config: Option<QuorumConfig>,
        /// For a job: its terms. The acquire begins an attempt then.
        job: Option<Box<Terms>>,
    },
    /// Raise the fence to `fence`, for a vote below it.
    Confirm {
        /// The attested fence.
        fence: u64,
    },
    /// Make at least `ttl` remain.
    Extend {
        /// What shall remain, milliseconds.
        ttl_ms: u64,
        /// Our fence.
        fence: u64,
    },
    /// Write the key again on a server that lost it; sent only after a majority confirmed the extension.
    Heal {
        /// The key's time to live, milliseconds.
        ttl_ms: u64,
        /// Our fence.
        fence: u64,
    },
    /// Delete the key if it is ours, and notify the next waiter.
    Release {
        /// A waiter's entry that leaves the queue. If that waiter was notified of a release, the next one is notified instead.
        leave: Option<Arc<str>>,
        /// For how long the lock is kept from everybody, instead of being free; milliseconds.
        kept_ms: u64,
    },
    /// Take a waiter out of the queue. If it was notified of a release, the next one is notified instead.
    Leave,
    /// End an attempt of a job: note in its record how, and do what a release does.
    EndAttempt {
        /// How it ends.
        ending: Ending,
        /// Which attempt that is.
        attempt: OpenAttempt,
        /// A waiter's entry that leaves the queue.
        leave: Option<Arc<str>>,
    },
    /// Forget the record of a job, unless an attempt runs.
    Reset,
    /// Look, change nothing.
    Inspect,
    /// Look at a job's record, change nothing.
    JobStatus,
}

impl Verb {
    /// Whether it only looks, or is about no hold: then there is nobody on whose behalf it is done.
    const fn is_nobodys(&self) -> bool {
        matches!(self, Self::Inspect | Self::JobStatus | Self::Reset)
    }
}

impl Op {
    /// A look at a lock.
    #[must_use]
    pub fn inspect(keys: Arc<Keys>) -> Self {
        Self::on_nobodys_behalf(keys, Verb::Inspect)
    }

    /// An operation on a lock that is no holder's and no waiter's.
    #[must_use]
    pub fn on_nobodys_behalf(keys: Arc<Keys>, verb: Verb) -> Self {
        Self::Lock(LockOp { keys, by: Arc::from(""), verb })
    }

    /// The operation on a lock, if it is one.
    #[must_use]
    pub const fn on_lock(&self) -> Option<&LockOp> {
        match self {
            Self::Lock(op) => Some(op),
            Self::Part(op) => Some(&op.whole),
            _ => None,
        }
    }

    /// What is done with a lock, if it is about one.
    #[must_use]
    pub fn verb(&self) -> Option<&Verb> {
        self.on_lock().map(|op| &op.verb)
    }

    /// Whether the operation is about the servers themselves, and so waits for the next attempt to connect instead of being
    /// given the error of the last one.
    #[must_use]
    pub const fn asks_afresh(&self) -> bool {
        matches!(self, Self::Examine | Self::Probe { .. } | Self::Trust { .. } | Self::Scan { .. } | Self::Peek { .. })
    }

    /// Whether the operation may wait for a reconnect: only what gives back may, everything else dies with its round.
    #[must_use]
    pub fn survives_reconnect(&self) -> bool {
        matches!(self.verb(), Some(Verb::Release { .. } | Verb::Leave | Verb::EndAttempt { .. }))
    }

    /// Whether an answer counts whenever it comes, until the operation's deadline: a hold counts an extension from its sending.
    #[must_use]
    pub fn counts_late(&self) -> bool {
        matches!(self.verb(), Some(Verb::Extend { .. }))
    }

    /// How long the server may keep its answer back, as it was asked to.
    #[must_use]
    pub const fn waits_for(&self) -> Duration {
        if let Self::AwaitReplicas { timeout_ms, .. } = self { Duration::from_millis(*timeout_ms) } else { Duration::ZERO }
    }

    /// Whether a transaction may do it in place of a script: it takes a plain lock for a newcomer. The term of a leader has to stand behind its
    /// owner value at once, and so do the words of a waiter who is known already.
    #[doc(hidden)]
    #[must_use]
    pub fn takes_if_free(&self) -> bool {
        let Self::Lock(LockOp { keys, verb, .. }) = self else { return false };
        let Verb::Acquire { adopt: None, fair: false, place, quorum_config: None, job: None, .. } = verb else { return false };
        let is_plain = keys.kind() == Kind::Exclusive && keys.label().kind == LockKind::Lock;
        is_plain && place.as_ref().is_none_or(|QueuePlace { arrival, stays, .. }| *arrival == 0 && !stays)
    }

    /// What undoes whatever the operation may have written, and the waiter that it may have enqueued: for a client that goes
    /// before the answer comes. `None` for what leaves nothing behind. To be sent behind the operation on the same connection, for
    /// only there it can't be overtaken.
    #[must_use]
    pub fn undo(&self) -> Option<Self> {
        if mutant!(CloseLeavesSent) {
            return None;
        }
        let LockOp { keys, by, verb } = self.on_lock()?;
        let leave = match verb {
            Verb::Acquire { place, .. } => place.as_ref().map(|place| Arc::clone(&place.entry)),
            // Nobody waits for a key that was missing.
            Verb::Heal { .. } => None,
            _ => return None,
        };
        let verb = match keys.kind() {
            Kind::Exclusive | Kind::Quorum | Kind::Read | Kind::Semaphore(_) | Kind::Several => {
                Verb::Release { leave, kept_ms: 0 }
            }
            Kind::Job => Verb::EndAttempt { ending: Ending::GivenBack, attempt: OpenAttempt::default(), leave },
        };
        Some(Self::Lock(LockOp { keys: Arc::clone(keys), by: Arc::clone(by), verb }))
    }

    /// Whether this operation undoes something that `undo` undoes: the same value, or the same place in the queue.
    pub(crate) fn undoes(&self, undo: &Self) -> bool {
        let (Self::Lock(ours), Self::Lock(LockOp { keys, by: value, verb })) = (self, undo) else { return false };
        let (Verb::Release { leave: place, .. } | Verb::EndAttempt { leave: place, .. }) = verb else { return false };
        let undoes = match &ours.verb {
            Verb::Release { leave, .. } | Verb::EndAttempt { leave, .. } => {
                ours.by == *value || leave.is_some() && leave == place
            }
            Verb::Leave => place.as_ref() == Some(&ours.by),
            _ => false,
        };
        undoes && ours.keys == *keys
    }

    /// The operation as it is spelled in messages, and in the names of the scripts: a leave is what a release does beside its own.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Lock(op) => match op.verb {
                Verb::Acquire { .. } => "acquire",
                Verb::Confirm { .. } => "confirm",
                Verb::Extend { .. } => "extend",
                Verb::Heal { .. } => "heal",
                Verb::Release { .. } | Verb::Leave => "release",
                Verb::EndAttempt { .. } => "end",
                Verb::Reset => "reset",
                Verb::Inspect => "inspect",
                Verb::JobStatus => "status",
            },
            Self::Part(op) => match op.part {
                Part::Take => "take",
                Part::Tick => "tick",
                Part::CountAttempt { .. } => "count",
                Part::Extend => "extend",
                Part::Release => "release",
                Part::EndAttempt => "note",
                Part::Look => "look",
                Part::Status => "status",
                Part::Reset { .. } => "forget",
            },
            Self::Marker { .. } => "marker",
            Self::Greet { .. } => "greet",
            Self::Examine => "examine",
            Self::Probe { .. } => "probe",
            Self::Trust { .. } => "trust",
            Self::Scan { .. } => "scan",
            Self::Peek { .. } => "peek",
            Self::Log(_) => "log",
            Self::History { .. } => "history",
            Self::Publish { .. } => "publish",
            Self::AwaitReplicas { .. } => "wait",
        }
    }

    /// The lock it is about; `None` for what is about the server.
    #[must_use]
    pub fn keys(&self) -> Option<&Arc<Keys>> {
        self.on_lock().map(|op| &op.keys)
    }

    /// On whose behalf it is done, if on anybody's: the owner of a hold, or a waiter.
    #[must_use]
    pub fn owner(&self) -> Option<&Arc<str>> {
        self.on_lock().filter(|op| !op.verb.is_nobodys()).map(|op| &op.by)
    }
}

/// A waiter's place in the queue of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePlace {
    /// The waiter, `<f|b>:<client>:<number> <who>`.
    pub entry: Arc<str>,
    /// When it first arrived there, by the server's clock in microseconds; 0 for a newcomer.
    pub arrival: u64,
    /// More wait under the same entry: once the lock is granted it goes to the tail.
    pub stays: bool,
}

/// A hold in whose place, or beside which, a new one begins: one that another process has handed over, a writer's that becomes a reader's, or
/// a reader's of the same task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// Its owner value: the key of exactly this owner counts as free.
    pub owner: Arc<str>,
    /// Whether the lock may also be acquired where that value isn't there; else the server refuses then, also if the lock is free.
    pub or_acquire: bool,
    /// Whether a reader's new hold begins beside it, past every waiter. Then it must still be held.
    pub beside: bool,
}

/// The quorum a server belongs to, as the client is configured.
///
/// A client of a single server has none, or one of one server, for quarantine after a failover. `Option<QuorumConfig>` is how the code
/// distinguishes the two, everywhere; where only the number matters it is passed on as `single_server`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuorumConfig {
    /// The number of servers.
    pub servers: u32,
    /// The longest time a hold may remain, milliseconds.
    pub max_ttl_ms: u64,
}

impl fmt::Display for QuorumConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n={} max_ttl={}", self.servers, self.max_ttl_ms)
    }
}

#[cfg(test)]
mod tests;
