//! Release: the outcome that its caller gets.

use std::time::Duration;

use crate::error::loss::{conflict, others};
use crate::error::{Loss, LossReason};
use crate::wording::words;

words! {
    /// The outcome of a release.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum Outcome;
    /// The outcome's spelling, which is the same in every language.
    fn as_str;
    /// The lock was ours and is free now.
    Released = "released",
    /// The lock had expired. It has no holder, and no other hold is seen to have come between. Or no server could be asked until
    /// its ttl had ended, or one of its keys holds what no lock writes there.
    Expired = "expired",
    /// Another program holds the lock, or held it in between.
    Taken = "taken",
}

/// The result of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Release {
    /// The outcome.
    pub outcome: Outcome,
    /// With [`Outcome::Taken`]: the owner value of who has the lock instead, or had it in between; `None` if that is unknown.
    pub next_owner: Option<String>,
    /// With [`Outcome::Taken`]: the fence of that hold, if the servers show it. A fence is about the
    /// microsecond in which it was issued, so it also shows when that hold began.
    pub next_fence: Option<u64>,
    /// The time from the end of validity to the first request of the release, by this machine's clock.
    pub overrun: Duration,
    /// Whether the hold of the next owner has ended since.
    pub(crate) next_has_ended: bool,
    /// With [`Outcome::Expired`]: whether it is certain that no other hold came between.
    pub(crate) is_excluded: bool,
    /// What one of its keys holds, if no lock writes that there.
    pub(crate) conflict: Option<String>,
    /// With [`Outcome::Released`]: for how long nobody else gets the lock, because of its [`min_hold`](crate::Lock::min_hold).
    pub kept: Duration,
}

impl Release {
    /// The release of a lock that was ours.
    pub(super) fn ours(overrun: Duration, kept: Duration) -> Self {
        Self { kept, ..Self::of(Outcome::Released, overrun) }
    }

    /// A release with an outcome and no details.
    pub(super) fn of(outcome: Outcome, overrun: Duration) -> Self {
        let (next_owner, next_fence, conflict, kept) = (None, None, None, Duration::ZERO);
        Self { outcome, next_owner, next_fence, next_has_ended: false, is_excluded: false, conflict, overrun, kept }
    }

    /// Whether it is certain that no other hold came between.
    #[doc(hidden)]
    #[must_use]
    pub const fn excludes_others(&self) -> bool {
        self.is_excluded
    }

    /// The release after a loss. A next owner that the loss showed stays true, even if no server shows it any more.
    pub(super) fn after(mut self, loss: Option<&Loss>) -> Self {
        if let Some(loss) = loss.filter(|loss| loss.reason == LossReason::Taken && self.outcome != Outcome::Released) {
            (self.outcome, self.is_excluded) = (Outcome::Taken, false);
            self.next_fence = self.next_fence.max(loss.next_fence);
        }
        self
    }

    /// The release in words, if there is more to say than the outcome.
    pub(super) fn sentence(&self) -> Option<String> {
        match self.outcome {
            Outcome::Released => None,
            Outcome::Expired if self.conflict.is_some() => self.conflict.as_deref().map(conflict),
            Outcome::Expired if self.is_excluded => Some("its key had gone, and no other hold came between".to_owned()),
            Outcome::Expired => Some("its key had gone, and no other hold is seen to have come between".to_owned()),
            Outcome::Taken => {
                let ended = || "another client held it in between, and holds it no more".to_owned();
                Some(others(self.next_owner.as_deref(), self.next_fence, self.next_has_ended).unwrap_or_else(ended))
            }
        }
    }
}
