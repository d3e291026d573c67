//! Pauses: the time of a waiter's next try.

use std::time::Duration;

use crate::clock::Tick;
use crate::error::Remaining;

/// The longest pause between two tries of a waiter that is notified of releases: a notice may be lost.
const LOOK: Duration = Duration::from_secs(1);

/// The longest pause between two tries while the holder uses another library: the waiters of that library ask about as often.
const FOREIGN: Duration = Duration::from_millis(125);

/// The first pause between two polls of a waiter that is not notified of releases.
const FIRST_POLL: Duration = Duration::from_millis(16);

/// The longest pause between two polls: shorter than the time for which a lock is kept for a waiter.
const LAST_POLL: Duration = Duration::from_millis(150);

/// The first pause after a round without a majority.
const FIRST_RETRY: Duration = Duration::from_millis(20);

/// The longest pause after a round without a majority.
const LAST_RETRY: Duration = Duration::from_millis(500);

/// The longest pause after a round whose votes were split among several.
const LAST_SPLIT: Duration = Duration::from_millis(200);

/// The time between the tries of two neighbours in the queue when a hold expires: no server announces an expiry.
const RANK_STEP: Duration = Duration::from_millis(5);

/// The last place in the queue that adds to the pause: all waiters behind it try together.
const LAST_RANK: u32 = 40;

/// The longest wait for a majority's hint when a minority has sent one.
const MINORITY_PAUSE: Duration = Duration::from_millis(5);

/// A pause that begins at `first`, and is half as long again each time, up to `last`.
fn grown(first: Duration, last: Duration, times: u32) -> Duration {
    (first * 3u32.saturating_pow(times.min(16)) / 2u32.pow(times.min(16))).min(last)
}

/// A random time between half of `pause` and all of it, so that waiters don't all try at the same time.
fn jittered(pause: Duration, rng: &mut fastrand::Rng) -> Duration {
    pause / 2 + pause.mul_f64(rng.f64() / 2.0)
}

/// The next try for a busy lock without a notice: after a long pause if servers announce releases, else after a poll's pause.
pub(crate) fn after_busy(now: Tick, is_notified: bool, polls: u32, rng: &mut fastrand::Rng) -> Tick {
    now.after(if is_notified { LOOK - LOOK.mul_f64(rng.f64() / 4.0) } else { jittered(grown(FIRST_POLL, LAST_POLL, polls), rng) })
}

/// The next try for a lock whose holder announces no release.
pub(crate) fn after_foreign(now: Tick, rng: &mut fastrand::Rng) -> Tick {
    now.after(FOREIGN - FOREIGN.mul_f64(rng.f64() * 0.4))
}

/// The next try at the expiry of the key, for the waiter with `rank` others before it.
pub(crate) fn after_expiry(now: Tick, holder: Remaining, rank: u64, rng: &mut fastrand::Rng) -> Tick {
    match holder {
        // The server rounds to whole milliseconds: one more, and the key is surely gone. Up to one more keeps waiters apart.
        Remaining::For(left) => {
            let rank = u32::try_from(rank).unwrap_or(LAST_RANK).min(LAST_RANK);
            now.after(left + Duration::from_millis(1) + Duration::from_millis(1).mul_f64(rng.f64()) + RANK_STEP * rank)
        }
        Remaining::Forever | Remaining::Gone => Tick::NEVER,
    }
}

/// The next try after a round without a majority.
pub(crate) fn after_failure(now: Tick, failures: u32, rng: &mut fastrand::Rng) -> Tick {
    now.after(jittered(grown(FIRST_RETRY, LAST_RETRY, failures), rng))
}

/// The next try after a round whose votes were split among several, so that none had a majority.
pub(crate) fn after_split(now: Tick, times: u32, rng: &mut fastrand::Rng) -> Tick {
    now.after(jittered(grown(FIRST_RETRY, LAST_SPLIT, times), rng))
}

/// The next try of the second waiter: after the first one's `window`.
pub(crate) fn after_hint(now: Tick, window: Duration, rng: &mut fastrand::Rng) -> Tick {
    now.after(window + Duration::from_millis(1) + Duration::from_millis(1).mul_f64(rng.f64()))
}

/// The next try on a minority's hint.
pub(crate) fn soon(now: Tick, rng: &mut fastrand::Rng) -> Tick {
    now.after(jittered(MINORITY_PAUSE, rng))
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
        for (polls, low, high) in [(0, 8, 16), (1, 12, 24), (20, 75, 150), (u32::MAX, 75, 150)] {
            let pause = after_busy(origin, false, polls, &mut rng).since(origin);
            assert!(pause >= ms(low) && pause <= ms(high), "{polls}: {pause:?}");
        }
        assert!(after_failure(origin, 99, &mut rng).since(origin) <= LAST_RETRY);
        assert!(after_split(origin, 99, &mut rng).since(origin) <= LAST_SPLIT);
    }

    #[test]
    fn a_waiter_that_gets_hints_looks_once_a_second_all_the_same() {
        let mut rng = fastrand::Rng::with_seed(1);
        let pause = after_busy(Tick::default(), true, 99, &mut rng).since(Tick::default());
        assert!(pause >= ms(750) && pause <= ms(1_000), "{pause:?}");
    }

    #[test]
    fn a_holder_of_another_library_is_looked_after_ten_times_a_second() {
        let mut rng = fastrand::Rng::with_seed(1);
        let pauses: Vec<_> = (0..1_000).map(|_| after_foreign(Tick::default(), &mut rng).since(Tick::default())).collect();
        assert!(pauses.iter().all(|pause| *pause >= ms(75) && *pause <= ms(125)));
        let mean = pauses.iter().sum::<Duration>() / 1_000;
        assert!(mean >= ms(98) && mean <= ms(102), "{mean:?}");
    }

    #[test]
    fn waiters_come_one_after_the_other_when_the_holder_expires() {
        let mut rng = fastrand::Rng::with_seed(1);
        let origin = Tick::default();
        for (rank, low, high) in [(0, 4, 5), (1, 9, 10), (u64::MAX, 204, 205)] {
            let pause = after_expiry(origin, Remaining::For(ms(3)), rank, &mut rng).since(origin);
            assert!(pause >= ms(low) && pause <= ms(high), "{rank}: {pause:?}");
        }
        assert_eq!(after_expiry(origin, Remaining::Forever, 0, &mut rng), Tick::NEVER);
    }
}
