//! Parts of an operation: what is done on one of a lock's keys alone.
//!
//! While a slot of a cluster moves to another node, some of its keys are there and some are here. Then no node serves an operation on
//! several keys, and one on a single key is served all the time. So an operation is done in parts, one after the other.

use crate::name::Keys;
use crate::op::LockOp;

/// A part of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartOp {
    /// The operation.
    pub whole: LockOp,
    /// Which part of it.
    pub part: Part,
}

/// Which part of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Of an acquire: take the lock's key, without a fence, and enqueue nobody.
    Take,
    /// Of an acquire: ask the clock for the fence.
    Tick,
    /// Of an acquire for a job: count the attempt that begins with this fence, if one may begin.
    CountAttempt {
        /// The fence.
        fence: u64,
    },
    /// An extension of the lock alone.
    Extend,
    /// A release that notifies nobody.
    Release,
    /// Of the end of an attempt: note it in the record.
    EndAttempt,
    /// Of an inspect: show the holder.
    Look,
    /// Of a job's status: show the record.
    Status,
    /// Of a reset: forget the record, unless an attempt of this holder runs.
    Reset {
        /// The value of the lock's key.
        holder: Option<String>,
    },
}

impl PartOp {
    /// The only key that it uses; of a lock that several hold at once the marks are another one.
    #[must_use]
    pub fn key(&self) -> &str {
        let keys: &Keys = &self.whole.keys;
        match self.part {
            Part::Take | Part::Extend | Part::Release | Part::Look => keys.lock(),
            Part::Tick => keys.clock(),
            Part::CountAttempt { .. } | Part::EndAttempt | Part::Status | Part::Reset { .. } => keys.record(),
        }
    }
}
