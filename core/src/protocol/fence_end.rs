//! Fence end: which extensions have to touch the fence, so that it outlives the lock by a day.

use std::time::Duration;

use crate::clock::Tick;
use crate::mutant::mutant;

/// The time for which a fence needn't be touched. The servers keep it for 25 hours after the lock, so a day is left.
const SPARE: Duration = Duration::from_secs(45 * 60);

/// The latest end of a lock whose fence is kept for a day longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct FenceEnd(Tick);

impl FenceEnd {
    /// Behind a grant that was asked for at `sent`.
    pub(super) fn of_grant(sent: Tick) -> Self {
        Self(sent.after(SPARE))
    }

    /// Whether the fence is kept long enough if the lock ends at `end`.
    pub(super) fn is_behind(self, end: Tick) -> bool {
        end <= self.0 || mutant!(FenceForgotten)
    }

    /// The servers keep the fence longer, since they keep the lock until `end`.
    pub(super) fn move_behind(&mut self, end: Tick) {
        self.0 = self.0.max(end.after(SPARE));
    }
}
