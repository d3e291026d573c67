//! Deadline: until when answers are waited for by a process that may stand still itself.
//!
//! A machine is suspended, a container is frozen, a process is stopped, or there are too many processes for its processors. A
//! process that continues after such a pause finds overdue timers, and answers that it has not read yet. A server on the same
//! machine had no time to answer either. None of that is the servers' silence.

use std::time::Duration;

use crate::clock::Tick;

/// The end of the time in which answers are waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    ends: Tick,
    excused: bool,
}

impl Deadline {
    pub(crate) fn until(ends: Tick) -> Self {
        Self { ends, excused: false }
    }

    pub(crate) fn ends(&self) -> Tick {
        self.ends
    }

    /// Extends an overdue deadline for the pause of this process, at most by `most`, and gives how late the call was. To be called
    /// each time when the owner of the deadline runs. It extends a deadline only once: on a machine that is always late it would
    /// never end.
    pub(crate) fn extend_for_pause(&mut self, now: Tick, most: Duration) -> Duration {
        let late = now.since(self.ends);
        if !late.is_zero() {
            let more = if self.excused { Duration::ZERO } else { late.min(most) };
            *self = Self { ends: now.after(more), excused: true };
        }
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    const fn at(n: u64) -> Tick {
        Tick::from_micros(n * 1_000)
    }

    #[test]
    fn what_was_overslept_is_added_once_and_within_bounds() {
        // When the client looked, how late that was, and when deadline ended from then on.
        for looks in [
            vec![(0, 0, 1_000), (999, 0, 1_000), (1_000, 0, 1_000)],
            vec![(1_001, 1, 1_002), (1_002, 0, 1_002), (1_003, 1, 1_003)],
            vec![(1_300, 300, 1_600), (1_500, 0, 1_600), (1_700, 100, 1_700), (9_000, 7_300, 9_000)],
            vec![(3_600_000, 3_599_000, 3_601_000)],
        ] {
            let mut deadline = Deadline::until(at(1_000));
            for (now, late, ends) in looks.clone() {
                assert_eq!(
                    (deadline.extend_for_pause(at(now), ms(1_000)), deadline.ends()),
                    (ms(late), at(ends)),
                    "{looks:?} {now}"
                );
            }
        }
    }
}
