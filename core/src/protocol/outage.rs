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
    /// Ends the outage: a majority answered.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Joins an outage that another waiter of this process has met before.
    pub(super) fn join(&mut self, since: Tick) {
        self.since.get_or_insert(since);
    }

    /// Moves the begin of the outage by the time in which this process did not run, because it asked no server then. Gives the
    /// new begin.
    pub(super) fn extend_for_pause(&mut self, late: Duration) -> Option<Tick> {
        self.since = self.since.map(|since| since.after(late));
        self.since
    }

    /// Takes note of a round that failed of the outage, whose servers were silent since `silent_since`. Gives the begin of the
    /// outage.
    pub(super) fn fail(&mut self, silent_since: Tick) -> Tick {
        *self.since.get_or_insert(silent_since)
    }

    /// The next try: the last one is at the end of the tolerated time, or of the wait. `None` after the end.
    pub(super) fn next_try(&mut self, recipe: &Recipe, deadline: Tick, now: Tick, rng: &mut fastrand::Rng) -> Option<Tick> {
        let gives_up = self.since?.after(recipe.unavailable_after);
        if now >= deadline || now >= gives_up {
            return None;
        }
        let next_try = wait::after_failure(now, self.failures, rng).min(deadline).min(gives_up);
        self.failures = self.failures.saturating_add(1);
        Some(next_try)
    }
}

#[cfg(test)]
#[path = "outage_tests.rs"]
mod tests;
