//! Release: the outcome that its caller gets.

use std::time::Duration;

use crate::error::loss::others;
use crate::error::{Loss, LossReason};

/// How a release ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The lock was ours and is free now.
    Released,
    /// It had expired; nobody has it, and nobody is seen to have had it meanwhile.
    Expired,
    /// Somebody else has it, or had it in between.
    Taken,
}

impl Outcome {
    /// The outcome as it is spelled in every language.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Taken => "taken",
        }
    }
}

/// What a release found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Release {
    /// How it ended.
    pub outcome: Outcome,
    /// With [`Outcome::Taken`]: the value of the key now. `None` if that hold has ended since.
    pub rival: Option<String>,
    /// With [`Outcome::Taken`]: the fence of the latest hold that came between, if the servers show it. A fence is about the
    /// microsecond in which it was issued, so it also says since when.
    pub rival_fence: Option<u64>,
    /// How long after the end of validity the release was first sent, by this machine's clock.
    pub overrun: Duration,
}

impl Release {
    /// The release of a lock that was ours.
    pub(super) const fn ours(overrun: Duration) -> Self {
        Self { outcome: Outcome::Released, rival: None, rival_fence: None, overrun }
    }

    /// The release after a loss: what that showed stays true, also where no server shows it any more.
    pub(super) fn after(mut self, loss: Option<&Loss>) -> Self {
        if let Some(loss) = loss.filter(|loss| loss.reason == LossReason::Taken && self.outcome != Outcome::Released) {
            self.outcome = Outcome::Taken;
            self.rival_fence = self.rival_fence.max(loss.rival_fence);
        }
        self
    }

    /// The release in words, where there is more to say than the outcome.
    pub(super) fn sentence(&self) -> Option<String> {
        match self.outcome {
            Outcome::Released => None,
            Outcome::Expired => Some("its key had gone, and no other hold is seen to have come between".to_owned()),
            Outcome::Taken => {
                let ended = || "another hold came between, and has ended since".to_owned();
                Some(others(self.rival.as_deref(), self.rival_fence).unwrap_or_else(ended))
            }
        }
    }
}
