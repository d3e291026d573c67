//! Waiting for a busy or unreachable lock: when to try again.

use std::time::Duration;

use crate::clock::Tick;
use crate::error::Remaining;

/// The first pause between two polls of a busy lock.
const FIRST_POLL: Duration = Duration::from_millis(16);

/// The longest pause between two polls: a holder of another library announces nothing.
const LAST_POLL: Duration = Duration::from_millis(200);

/// The first pause after a round without a majority.
const FIRST_RETRY: Duration = Duration::from_millis(20);

/// The longest pause after a round without a majority.
const LAST_RETRY: Duration = Duration::from_millis(500);

/// Grows from `first` to `last` by half each time.
fn grown(first: Duration, last: Duration, times: u32) -> Duration {
    (first * 3u32.saturating_pow(times.min(16)) / 2u32.pow(times.min(16))).min(last)
}

/// Between half of `pause` and all of it, so that waiters don't march in step.
fn jittered(pause: Duration, rng: &mut fastrand::Rng) -> Duration {
    pause / 2 + pause.mul_f64(rng.f64() / 2.0)
}

/// When to try a busy lock again: by polling, or when the holder's key expires, whichever is first.
pub(crate) fn after_busy(now: Tick, holder: Remaining, polls: u32, rng: &mut fastrand::Rng) -> Tick {
    let poll = now.after(jittered(grown(FIRST_POLL, LAST_POLL, polls), rng));
    match holder {
        // The server tells whole milliseconds; one more, and the key is surely gone. Up to one more keeps waiters apart.
        Remaining::For(left) => {
            poll.min(now.after(left + Duration::from_millis(1) + Duration::from_millis(1).mul_f64(rng.f64())))
        }
        Remaining::Forever | Remaining::Gone => poll,
    }
}

/// When to try again after a round without a majority, or one whose votes were split.
pub(crate) fn after_failure(now: Tick, failures: u32, rng: &mut fastrand::Rng) -> Tick {
    now.after(jittered(grown(FIRST_RETRY, LAST_RETRY, failures), rng))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn pauses_grow_to_their_bound() {
        let mut rng = fastrand::Rng::with_seed(1);
        let origin = Tick::default();
        for (polls, low, high) in [(0, 8, 16), (1, 12, 24), (20, 100, 200), (u32::MAX, 100, 200)] {
            let pause = after_busy(origin, Remaining::Forever, polls, &mut rng).since(origin);
            assert!(pause >= ms(low) && pause <= ms(high), "{polls}: {pause:?}");
        }
        assert!(after_failure(origin, 99, &mut rng).since(origin) <= LAST_RETRY);
    }

    #[test]
    fn a_waiter_is_there_when_the_holder_expires() {
        let mut rng = fastrand::Rng::with_seed(1);
        let origin = Tick::default();
        let pause = after_busy(origin, Remaining::For(ms(3)), 20, &mut rng).since(origin);
        assert!(pause > ms(3) && pause <= ms(5), "{pause:?}");
    }
}
