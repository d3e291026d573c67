//! The watch over a command that holds a lock: when it is to be ended. Pure.

use std::time::Duration;

/// A process that gets SIGKILL is gone within this time. It gets it so long before its lock ends.
pub(super) const DEATH: Duration = Duration::from_millis(100);

/// What to do with the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Look again after this time, or when something happens.
    LookIn(Duration),
    /// Send SIGTERM.
    Terminate,
    /// Send SIGKILL.
    Kill,
}

/// The watch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// The time between SIGTERM and SIGKILL.
    pub(super) kill_after: Duration,
    /// The time since SIGTERM, if it was sent.
    pub(super) terminated_for: Option<Duration>,
    /// Whether SIGKILL was sent.
    pub(super) is_killed: bool,
}

impl Watch {
    /// The next step, by what remains of the lock, and whether it was lost before its time.
    pub(super) fn step(self, remaining: Duration, is_lost: bool) -> Step {
        let Some(terminated_for) = self.terminated_for else {
            let left = remaining.saturating_sub(self.kill_after + DEATH);
            return if is_lost || left.is_zero() { Step::Terminate } else { Step::LookIn(left) };
        };
        if self.is_killed {
            return Step::LookIn(Duration::MAX);
        }
        // A lock that was lost before its time is over: nothing ends sooner by haste, and the command gets its time.
        let until_end = if is_lost { Duration::MAX } else { remaining.saturating_sub(DEATH) };
        let left = self.kill_after.saturating_sub(terminated_for).min(until_end);
        if left.is_zero() { Step::Kill } else { Step::LookIn(left) }
    }
}

/// The default of `--kill-after`.
pub(super) fn default_kill_after(ttl: Duration) -> Duration {
    ttl / 5
}

/// Whether a command could run at all: a renewal comes after a third of the ttl, and one that fails needs time for another try.
pub(super) fn leaves_time(kill_after: Duration, ttl: Duration) -> bool {
    kill_after + DEATH <= ttl / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_command_is_asked_to_end_and_killed_before_its_lock_ends() {
        use Step::{Kill, LookIn, Terminate};
        for (terminated_for, is_killed, remaining, is_lost, step) in [
            (None, false, 10_000, false, LookIn(ms(7_900))),
            (None, false, 2_101, false, LookIn(ms(1))),
            (None, false, 2_100, false, Terminate),
            (None, false, 0, false, Terminate),
            (None, false, 9_000, true, Terminate),
            (Some(0), false, 2_100, false, LookIn(ms(2_000))),
            (Some(500), false, 1_600, false, LookIn(ms(1_500))),
            // This process was stopped in between: the end of the lock comes first.
            (Some(500), false, 700, false, LookIn(ms(600))),
            (Some(500), false, 100, false, Kill),
            (Some(2_000), false, 9_000, false, Kill),
            (Some(500), false, 0, true, LookIn(ms(1_500))),
            (Some(2_000), false, 0, true, Kill),
            (Some(2_000), true, 0, true, LookIn(Duration::MAX)),
        ] {
            let watch = Watch { kill_after: ms(2_000), terminated_for: terminated_for.map(ms), is_killed };
            assert_eq!(watch.step(ms(remaining), is_lost), step, "{watch:?} {remaining} {is_lost}");
        }
    }

    #[test]
    fn the_default_leaves_time() {
        assert!(leaves_time(default_kill_after(ms(10_000)), ms(10_000)));
        assert!(leaves_time(default_kill_after(ms(400)), ms(400)));
        assert!(!leaves_time(ms(5_000), ms(10_000)));
    }
}
