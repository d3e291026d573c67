//! Replies: what a server answers.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Remaining;
use crate::name::Keys;
use crate::op::HistoryEntry;
use crate::op::holder;
use crate::op::job::{AttemptNumber, EarlierRun, JobEnd, JobRecord};

/// Where a part of a scan begins: at the default the first one does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// What the server says.
    pub own: u64,
    /// Where it counts, for a server of several nodes.
    pub place: u64,
}

/// What the server decided, with what belongs to that. What another client may have written (a holder, what was found, a quorum) is
/// shown up to its first [`SHOWN_BYTES`](crate::machine::SHOWN_BYTES).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Acquire: the lock is ours here, and the reply's fence is the vote.
    Vote,
    /// Acquire: the lock is another's.
    Held {
        /// The value of the lock's key.
        holder: String,
        /// How long the key remains.
        remaining: Remaining,
    },
    /// Done.
    Ok,
    /// The lock is not ours, or its fence is newer than ours.
    No {
        /// The value of the lock's key, if there is one.
        holder: Option<String>,
        /// How long the key remains.
        remaining: Remaining,
    },
    /// A key holds something else than it should.
    Conflict {
        /// The type of the lock's key, or the type and the name of another key.
        found: String,
    },
    /// The server is new or lost its data.
    Quarantine {
        /// When it votes.
        left: Duration,
    },
    /// Acquire: the server has changed its replication id since the client's handshake.
    NewReplid,
    /// The marker says another quorum.
    Mismatch {
        /// That quorum, as a [`QuorumConfig`](crate::op::QuorumConfig) is written: `n=… max_ttl=…`.
        quorum: String,
    },
    /// Inspect: this is what there is.
    Seen {
        /// The value of the lock's key, if there is one.
        holder: Option<String>,
        /// How long the key remains.
        remaining: Remaining,
        /// Those who hold the lock at once, if several may.
        inside: Option<Box<Inside>>,
    },
    /// Acquire: no attempt of the job begins for the client that asks. It is done or dead, or its scheduled time is over.
    Over(Box<JobEnd>),
    /// Acquire: the job's next attempt may not begin yet.
    Later {
        /// When it may.
        left: Duration,
        /// Why the last attempt failed.
        error: String,
    },
    /// Status: this is what the job's record says.
    Recorded(Box<JobRecord>),
    /// Examine: this is what the server is.
    Described(Box<ServerFacts>),
    /// Probe: these rights are missing, a line for each.
    Probed {
        /// Such as `PEXPIRE of :~lt:probe, to renew and extend a lock`.
        missing: Vec<String>,
    },
    /// Scan: this is a part of what there is.
    Scanned {
        /// Where the next part begins; the default after the last one.
        next: Cursor,
        /// The keys. One may be there twice, and others, too.
        keys: Vec<String>,
    },
    /// Await replicas: so many have confirmed.
    Replicated {
        /// The number of replicas.
        count: u64,
    },
    /// Marker: what it says, if there is one.
    Marker(Option<String>),
    /// Peek: whether the value begins as one of this library.
    Peeked(bool),
    /// History: these entries, the last one first.
    Logged(Arc<[HistoryEntry]>),
}

/// Those who hold a lock that several hold at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// How many they are.
    pub holders: u64,
    /// The owner values of the first hundred whose holds end.
    pub owners: Vec<String>,
    /// Of a semaphore: how many more may hold it.
    pub available: Option<u64>,
}

/// What a server reports about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// The product and its version.
    pub version: String,
    /// `master` or `slave`, as the server calls itself.
    pub role: String,
    /// `aof`, `rdb` or `none`.
    pub persistence: String,
    /// The policy for a full memory, such as `noeviction`.
    pub eviction: String,
    /// Whether it is a node of a cluster.
    pub in_cluster: bool,
    /// Whether it shows its replication id, which changes with each failover.
    pub shows_replid: bool,
    /// Whether it is a replica that accepts writes.
    pub is_writable_replica: bool,
    /// The number of replicas that are connected to it.
    pub replicas: u32,
    /// What its sentinels report, if it has some.
    pub sentinels: Option<SentinelFacts>,
    /// If it is a whole cluster, what that is.
    pub cluster: Option<ClusterFacts>,
}

/// What a cluster is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// The number of its primaries.
    pub primaries: usize,
    /// The number of slots that no node serves.
    pub unserved: usize,
}

/// What the sentinels of a server say of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentinelFacts {
    /// The sentinels that are known.
    pub known: usize,
    /// Those of them that know the server.
    pub answered: usize,
    /// The number of sentinels that have to consider the server down before a failover.
    pub quorum: u64,
    /// The time of silence after which a sentinel considers the server down, in milliseconds.
    pub down_after_ms: u64,
    /// Those that answer, and belong to another group: they are not followed.
    pub foreign: Vec<String>,
}

/// A server's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// What the server decided.
    pub verdict: Verdict,
    /// The server's clock, microseconds since the epoch; 0 if the answer doesn't say.
    pub time_us: u64,
    /// The fence of the hold that the operation is about, or that the value in the key shows; 0 if it shows none, and after a
    /// release that is done. On a quorum the lock's fence counter after the operation.
    pub fence: u64,
    /// A release that was refused: the last fence that the clock of the lock's slot has given; 0 if it isn't known.
    pub last_fence: u64,
    /// Whether nothing stands behind the owner in the lock's key: an acquire without a script.
    pub is_bare: bool,
    /// An acquire of a permit: the number of permits that others ask for, if it is another one; else 0.
    pub other_limit: u32,
    /// Whether an extension found that a client waits.
    pub waits: bool,
    /// The server's run id, where the transport knows it: two servers of a quorum with the same one are the same server.
    pub run_id: Option<Arc<str>>,
    /// Whether the server had no replica that could take its place, when the connection was made.
    pub is_alone: bool,
    /// The socket on which it came: the number of those that its connection has had so far, modulo 256; 0 where the transport
    /// counts none.
    pub socket: u8,
    /// Whether the operation was also sent on a connection that broke, and may have been done then.
    pub repeated: bool,
    /// What there is to say of the lock's queue.
    pub queued: Queued,
    /// The number of the attempt that begins with a vote, of a job.
    pub attempt: Option<AttemptNumber>,
    /// The run that the first attempt for a later scheduled time leaves behind.
    pub earlier: Option<Box<EarlierRun>>,
    /// An acquire of several locks: the fence of each, in the order of their names.
    pub fences: Vec<u64>,
    /// An acquire of several locks that is refused: which of them it is about.
    pub at: usize,
}

impl Reply {
    /// A reply.
    #[must_use]
    pub fn new(verdict: Verdict, time_us: u64, fence: u64) -> Self {
        Self {
            verdict,
            time_us,
            fence,
            last_fence: 0,
            is_bare: false,
            other_limit: 0,
            waits: false,
            run_id: None,
            is_alone: false,
            socket: 0,
            repeated: false,
            queued: Queued::Nothing,
            attempt: None,
            earlier: None,
            fences: Vec::new(),
            at: 0,
        }
    }

    /// The locks of which the reply shows a fence, each with that: of several locks all of them or the one that is in the way.
    pub fn shown_fences<'a>(&'a self, keys: &'a Keys) -> impl Iterator<Item = (&'a Keys, u64)> {
        let alone = (self.fence.max(self.last_fence), keys.each().nth(self.at));
        let alone = alone.1.filter(|_| self.fences.is_empty()).map(|keys| (keys, alone.0));
        alone.into_iter().chain(keys.each().zip(self.fences.iter().copied())).filter(|(_, fence)| *fence > 0)
    }

    /// The value of the lock's key, where the reply shows one that may not be ours.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::Held { holder, .. } => Some(holder),
            Verdict::No { holder, .. } | Verdict::Seen { holder, .. } => holder.as_deref(),
            _ => None,
        }
    }

    /// The owner value of another hold than the one that asked; nobody has one that is kept for a waiter.
    pub(crate) fn other_owner(&self) -> Option<&str> {
        self.holder().filter(|holder| !holder::is_claim(holder))
    }
}

/// The part of a reply about the queue.
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
    /// Release: the next waiter could not be notified, and why.
    NotNotified(String),
}
