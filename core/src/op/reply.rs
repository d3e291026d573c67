//! Replies: what a server answers.

use std::sync::Arc;

use crate::error::Remaining;
use crate::machine;

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
    /// The value of the lock key after the operation, if there is one; of another's no more than the first
    /// [`SHOWN_BYTES`](crate::machine::SHOWN_BYTES).
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

    /// Who has the lock instead of whoever asked; nobody has one that is kept for a waiter.
    pub(crate) fn rival(&self) -> Option<&str> {
        self.holder.as_deref().filter(|holder| !machine::is_claim(holder))
    }
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
