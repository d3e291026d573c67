//! Outage: how long an acquire tolerates that no majority of the servers answers.

use std::time::Duration;

use crate::clock::Tick;
use crate::protocol::Recipe;
use crate::wait;

/// The outage under way, if there is one.
#[derive(Debug, Default)]
pub(super) struct Outage {
    since: Option<Tick>,
    failures: u32,
}

impl Outage {
    /// A majority answered.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Another waiter of this process has met it before.
    pub(super) fn join(&mut self, since: Tick) {
        self.since.get_or_insert(since);
    }

    /// This process did not run for so long: it asked nobody, and heard nobody. Gives since when the outage lasts, without that.
    pub(super) fn extend_for_pause(&mut self, late: Duration) -> Option<Tick> {
        self.since = self.since.map(|since| since.after(late));
        self.since
    }

    /// A round failed of it whose servers had been silent since `silent_since`. Gives since when it lasts.
    pub(super) fn fail(&mut self, silent_since: Tick) -> Tick {
        *self.since.get_or_insert(silent_since)
    }

    /// When to try again: a last time when the time without a majority, or the wait, ends. `None` once it has ended.
    pub(super) fn next_try(&mut self, recipe: &Recipe, deadline: Tick, now: Tick, rng: &mut fastrand::Rng) -> Option<Tick> {
        let patience_ends = self.since?.after(recipe.unavailable_after);
        if now >= deadline || now >= patience_ends {
            return None;
        }
        let next_try = wait::after_failure(now, self.failures, rng).min(deadline).min(patience_ends);
        self.failures = self.failures.saturating_add(1);
        Some(next_try)
    }
}

#[cfg(test)]
#[path = "outage_tests.rs"]
mod tests;
