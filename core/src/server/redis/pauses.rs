//! Pauses between attempts in vain: each is twice as long as the one before, up to the longest.

use std::time::Duration;

/// The pauses of one kind of attempt.
#[derive(Debug)]
pub(crate) struct Pauses {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

impl Pauses {
    /// The pause after so many failures in a row; none after none.
    pub(crate) fn after(&self, failures: u32) -> Duration {
        let doublings = failures.checked_sub(1).map(|doublings| doublings.min(10));
        doublings.map_or(Duration::ZERO, |doublings| self.first.saturating_mul(1 << doublings).min(self.longest))
    }

    /// The same, shorter by up to a half: `chance` (0 to 1) spreads clients that failed together.
    pub(crate) fn spread(&self, failures: u32, chance: f64) -> Duration {
        self.after(failures).mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses = Pauses { first: Duration::from_millis(50), longest: Duration::from_millis(500) };
        for (failures, shortest, longest) in [(0, 0, 0), (1, 25, 50), (2, 50, 100), (4, 200, 400), (5, 250, 500), (99, 250, 500)]
        {
            assert_eq!(pauses.spread(failures, 0.0), Duration::from_millis(shortest), "{failures}");
            assert_eq!(pauses.spread(failures, 1.0), Duration::from_millis(longest), "{failures}");
            assert_eq!(pauses.after(failures), Duration::from_millis(longest), "{failures}");
        }
    }
}
