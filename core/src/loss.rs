//! The loss of a hold: why, to whom, and how late it was noticed.

use std::fmt;
use std::time::Duration;

use crate::quoted::quoted;

/// Why a hold ended without its holder's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// Validity ran out before a majority confirmed a renewal.
    Expired,
    /// The key is gone from the servers.
    Missing,
    /// Somebody else holds the key, or has held it since.
    Taken,
    /// The key is ours but a newer fence was issued.
    Superseded,
    /// A key of the lock holds what no lock writes there.
    Conflict,
    /// `max_hold` has passed.
    MaxHold,
    /// The client was closed.
    Closed,
}

impl LossReason {
    /// The reason as it is spelled in every language.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Missing => "missing",
            Self::Taken => "taken",
            Self::Superseded => "superseded",
            Self::Conflict => "conflict",
            Self::MaxHold => "max_hold",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a hold was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// Why.
    pub reason: LossReason,
    /// The readable owner value of who holds the key now, if the servers showed one.
    pub rival: Option<String>,
    /// The fence of the latest hold that came between, if the servers prove that there was one. Without a `rival` that hold has
    /// ended since. A fence is about the microsecond in which it was issued, so it also says since when.
    pub rival_fence: Option<u64>,
    /// With [`LossReason::Conflict`]: what was found, and where.
    pub found: Option<String>,
    /// How long the holder went on after its validity had ended, by this machine's clock.
    pub overrun: Duration,
}

impl Loss {
    /// A loss of which no more is known.
    pub(crate) const fn new(reason: LossReason, overrun: Duration) -> Self {
        Self { reason, rival: None, rival_fence: None, found: None, overrun }
    }
}

impl Loss {
    /// What was found where it doesn't belong, on one line.
    pub(crate) fn finding(&self) -> Option<String> {
        self.found.as_deref().map(quoted)
    }
}

/// Who else had the lock, in words.
pub(crate) fn others(rival: Option<&str>, fence: Option<u64>) -> Option<String> {
    match (rival, fence) {
        (Some(rival), Some(fence)) => Some(format!("it is held by \"{}\" (fence {fence})", quoted(rival))),
        (Some(rival), None) => Some(format!("it is held by \"{}\"", quoted(rival))),
        (None, Some(fence)) => Some(format!("another hold (fence {fence}) came between, and has ended since")),
        (None, None) => None,
    }
}
