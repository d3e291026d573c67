//! How long answers are waited for by a process that may stand still itself.
//!
//! A machine is suspended, a container is frozen, a process is stopped, or there are too many for its processors. Whoever goes
//! on then finds its timers overdue, and answers that nobody has read yet; and a server on the same machine had no time to
//! answer either. None of that is the servers' silence.

use std::time::Duration;

use crate::clock::Tick;

/// Until when answers are waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    ends: Tick,
    excused: bool,
}

impl Patience {
    pub(crate) fn until(ends: Tick) -> Self {
        Self { ends, excused: false }
    }

    pub(crate) fn ends(&self) -> Tick {
        self.ends
    }

    /// To be told of every moment in which its owner runs; gives how late that was. Patience that should have ended before goes on
    /// from there for as long as it was overslept, at most for `most`. But only once: on a machine that is always late it would
    /// never end.
    pub(crate) fn overslept(&mut self, now: Tick, most: Duration) -> Duration {
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
        // When somebody looked, how late that was, and when patience ended from then on.
        for looks in [
            vec![(0, 0, 1_000), (999, 0, 1_000), (1_000, 0, 1_000)],
            vec![(1_001, 1, 1_002), (1_002, 0, 1_002), (1_003, 1, 1_003)],
            vec![(1_300, 300, 1_600), (1_500, 0, 1_600), (1_700, 100, 1_700), (9_000, 7_300, 9_000)],
            vec![(3_600_000, 3_599_000, 3_601_000)],
        ] {
            let mut patience = Patience::until(at(1_000));
            for (now, late, ends) in looks.clone() {
                assert_eq!((patience.overslept(at(now), ms(1_000)), patience.ends()), (ms(late), at(ends)), "{looks:?} {now}");
            }
        }
    }
}
