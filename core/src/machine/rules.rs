//! Rules: the operations of one kind of lock.

use super::State;
use crate::op::{LockOp, Reply};

/// A kind of lock. The table of [`machine`](crate::machine) says when an operation is refused, and what it does.
pub(super) trait Rules {
    /// Applies an operation.
    ///
    /// # Errors
    /// A reply, too: the refusal that ended the operation early.
    fn apply(&self, state: &mut State, op: &LockOp, now_us: u64) -> Result<Reply, Reply>;
}
