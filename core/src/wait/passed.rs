//! Passed notices: the locks for which a notice to a waiter that has left was passed on lately.

use std::collections::HashMap;
use std::time::Duration;

use crate::clock::Tick;
use crate::machine::CLAIM_MS;
use crate::mutant::mutant;

/// The most locks that are remembered. Anybody who may publish can name locks, and each costs the server a script.
const MOST: usize = 64;

/// The time for which a lock is remembered: a notified waiter goes first, and after it the next one tries without a notice.
const WINDOW: Duration = Duration::from_millis(CLAIM_MS);

/// The time at which a notice was last passed on, by server and lock.
#[derive(Debug, Default)]
pub(super) struct PassedNotices(HashMap<(usize, Box<str>), Tick>);

impl PassedNotices {
    /// Whether a notice may be passed on: once in a claim window for each server and lock. Remembers a notice that may.
    pub(super) fn may_pass(&mut self, server: usize, lock: &str, now: Tick) -> bool {
        if mutant!(EveryHintPassed) {
            return true;
        }
        if self.0.len() >= MOST {
            self.0.retain(|_, at| now < at.after(WINDOW));
        }
        let key = (server, Box::from(lock));
        let known = self.0.get(&key).map(|at| now >= at.after(WINDOW));
        if !known.unwrap_or(self.0.len() < MOST) {
            return false;
        }
        self.0.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Tick {
        Tick::from_micros(ms * 1_000)
    }

    fn one_hint_is_passed_on_for_each_lock_and_claim_window() {
        let mut notices = PassedNotices::default();
        for (server, lock, now, may) in [
            (0, "a", 1_000, true),
            (0, "a", 1_000, false),
            (0, "a", 1_199, false),
            (0, "b", 1_199, true),
            (1, "a", 1_199, true),
            (0, "a", 1_200, true),
            (0, "a", 1_399, false),
            (0, "a", 9_000, true),
        ] {
            assert_eq!(notices.may_pass(server, lock, at(now)), may, "{server} {lock} {now}");
        }
    }

    fn a_sender_that_names_ever_new_locks_gets_no_further() {
        let mut notices = PassedNotices::default();
        let passed = (0..10_000).filter(|n| notices.may_pass(0, &format!("l{n}"), at(n / 100))).count();
        assert_eq!((passed, notices.0.len()), (MOST, MOST), "ten thousand in a tenth of a second");
        assert!(notices.may_pass(0, "a", at(1_000)), "nobody is kept out for longer than a window");
        assert_eq!(notices.0.len(), 1);
    }

    #[test]
    fn turns_are_passed_on_in_measure() {
        one_hint_is_passed_on_for_each_lock_and_claim_window();
        a_sender_that_names_ever_new_locks_gets_no_further();
    }

    #[test]
    fn planted_bugs_fail_the_tables() {
        crate::mutant::assert_noticed(crate::mutant::Mutant::EveryHintPassed, a_sender_that_names_ever_new_locks_gets_no_further);
    }
}
