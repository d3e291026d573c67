//! Rules: the operations of one kind of lock.

use std::sync::Arc;

use super::State;
use crate::name::Keys;
use crate::op::{Adoption, Place, Reply};

/// A kind of lock. The table of [`machine`](crate::machine) says when an operation is refused, and what it does.
pub(super) trait Rules {
    fn acquire(&self, state: &mut State, keys: &Keys, args: &AcquireArgs<'_>, now_us: u64) -> Reply;
    fn confirm(&self, state: &mut State, keys: &Keys, owner: &str, fence: u64, now_us: u64) -> Reply;
    fn extend(&self, state: &mut State, keys: &Keys, owner: &Arc<str>, ttl_ms: u64, fence: u64, now_us: u64) -> Reply;
    /// Makes at least `ttl_ms` remain of the lock alone. Gives whether the lock is the owner's.
    fn renew(&self, state: &mut State, keys: &Keys, owner: &str, ttl_ms: u64, now_us: u64) -> bool;
    fn heal(&self, state: &mut State, keys: &Keys, owner: &Arc<str>, ttl_ms: u64, fence: u64, now_us: u64) -> Reply;
    fn release(
        &self,
        state: &mut State,
        keys: &Keys,
        owner: &str,
        leave: Option<&str>,
        single_server: bool,
        now_us: u64,
    ) -> Reply;
    fn leave(&self, state: &mut State, keys: &Keys, entry: &str, single_server: bool, now_us: u64) -> Reply;
    fn inspect(&self, state: &State, keys: &Keys, now_us: u64) -> Reply;
}

/// The arguments of an acquire.
pub(super) struct AcquireArgs<'a> {
    pub(super) owner: &'a Arc<str>,
    pub(super) ttl_ms: u64,
    pub(super) proposal: u64,
    pub(super) adopt: Option<&'a Adoption>,
    pub(super) fair: bool,
    pub(super) place: Option<&'a Place>,
    /// Whether this server alone decides which waiter is next.
    pub(super) single_server: bool,
    /// Whether the server is asked for its marker.
    pub(super) has_marker: bool,
}
