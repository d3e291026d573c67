//! Found: what the lock's key showed before the operation.

use std::sync::Arc;
use std::time::Duration;

use super::cut::cut;
use super::state::{State, Value};
use crate::error::Remaining;
use crate::name::Keys;
use crate::op::holder::{Gate, claim, fence_of, gate_of, owner_of, shows_waiters};
use crate::op::{Reply, Verdict};

/// The state of a lock before the operation.
pub(super) struct Found {
    /// The value of the key, with everything that stands behind the owner.
    pub(super) value: Option<Arc<str>>,
    /// `None` without a holder, and for one without expiry.
    pub(super) left_ms: Option<u64>,
    pub(super) now_us: u64,
}

impl Found {
    pub(super) fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// The gate that the value is, if it is one.
    pub(super) fn gate(&self) -> Option<Gate> {
        self.value().and_then(gate_of)
    }

    /// The owner in the value.
    pub(super) fn owner(&self) -> Option<&str> {
        self.value().map(owner_of)
    }

    pub(super) fn is_held(&self) -> bool {
        self.value.is_some()
    }

    /// Whether the value has this owner.
    pub(super) fn is_owned_by(&self, owner: &str) -> bool {
        self.owner() == Some(owner)
    }

    /// Whether the lock is kept for this waiter.
    pub(super) fn is_claimed_by(&self, entry: &str) -> bool {
        self.value() == Some(&claim(entry))
    }

    /// Whether the value shows that a client waits.
    pub(super) fn shows_waiters(&self) -> bool {
        self.value().is_some_and(shows_waiters)
    }

    pub(super) fn no(&self) -> Reply {
        self.reply(Verdict::No { holder: self.shown(), remaining: self.remaining() })
    }

    pub(super) fn reply(&self, verdict: Verdict) -> Reply {
        Reply::new(verdict, self.now_us, self.value().and_then(fence_of).unwrap_or_default())
    }

    /// The reply to a look: of readers it shows the fence of their period.
    pub(super) fn seen(&self, verdict: Verdict) -> Reply {
        let reply = self.reply(verdict);
        if let Some(Gate::Read(period)) = self.gate() { Reply { fence: period, ..reply } } else { reply }
    }

    /// The part of the owner that a reply shows.
    pub(super) fn shown(&self) -> Option<String> {
        self.owner().map(|owner| cut(owner).to_owned())
    }

    pub(super) fn remaining(&self) -> Remaining {
        match (&self.value, self.left_ms) {
            (None, _) => Remaining::Gone,
            (Some(_), None) => Remaining::Forever,
            (Some(_), Some(left)) => Remaining::For(Duration::from_millis(left)),
        }
    }
}

/// Looks at the lock's key.
///
/// # Errors
/// The refusal, if it is no string.
pub(super) fn look(state: &State, keys: &Keys, now_us: u64) -> Result<Found, Reply> {
    let Some(entry) = state.get(keys.lock(), now_us) else { return Ok(Found { value: None, left_ms: None, now_us }) };
    match &entry.value {
        Value::Text(text) => Ok(Found { value: Some(text.clone()), left_ms: entry.left_ms(now_us), now_us }),
        foreign => Err(conflict(0, foreign.type_name().to_owned(), now_us)),
    }
}

pub(super) fn conflict(fence: u64, found: String, now_us: u64) -> Reply {
    Reply::new(Verdict::Conflict { found }, now_us, fence)
}
