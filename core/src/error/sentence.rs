//! Sentences: the message of each error, and what its reader can do. Every language has its own words.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Code, Error, Holder, Inner, Loss, Remaining, ServerFailure};
use crate::error::quoted::{on_one_line, quoted};
use crate::op::FailureKind;
use crate::wording::{Part, Text};

/// The longest part of a given value that is shown, in bytes.
const MAX_SHOWN: usize = 80;

impl Error {
    fn new(code: Code, lock: Option<&str>, message: Text) -> Self {
        Self::build(code, lock, message, |_| ())
    }

    fn build(code: Code, lock: Option<&str>, message: Text, fill: impl FnOnce(&mut Inner)) -> Self {
        let lock = lock.map(str::to_owned);
        let mut inner =
            Inner { code, message, argument: None, lock, holder: None, rank: None, loss: None, servers: Vec::new(), dead: None };
        fill(&mut inner);
        Self(Arc::new(inner))
    }

    /// `INVALID_ARGUMENT`: `argument` was given as `given`, and `why` it is refused.
    #[doc(hidden)]
    #[must_use]
    pub fn invalid(argument: &str, given: impl fmt::Debug, why: impl Into<Text>) -> Self {
        let mut given = format!("{given:?}");
        if given.len() > MAX_SHOWN {
            let end = (0..=MAX_SHOWN - 3).rev().find(|&at| given.is_char_boundary(at)).unwrap_or(0);
            given.truncate(end);
            given.push_str("...");
        }
        Self::refused(argument, Part::Words(given), why.into())
    }

    /// `INVALID_ARGUMENT`: the time `span` was given; it is shown in the reader's unit.
    #[doc(hidden)]
    #[must_use]
    pub fn invalid_time(argument: &str, span: Duration, why: impl Into<Text>) -> Self {
        Self::refused(argument, Part::Time(span), why.into())
    }

    fn refused(argument: &str, given: Part, why: Text) -> Self {
        let parts = [Part::Name(argument.to_owned().into()), Part::Text(why), given];
        let message = Text::new("{}: {} (given: {})", parts);
        Self::build(Code::InvalidArgument, None, message, |inner| inner.argument = Some(argument.into()))
    }

    /// `DEADLOCK`: the task that asks for `lock` already holds it, in a body that began at `place`.
    pub(crate) fn deadlock(lock: &str, place: Option<&str>) -> Self {
        let since = place.map(|place| format!(" since {place}")).unwrap_or_default();
        let message = Text::new(
            "lock {}: this task holds it already{}, and would wait for itself; locks are not re-entrant: pass the hold down",
            [named(lock), Part::Words(since)],
        );
        Self::new(Code::Deadlock, Some(lock), message)
    }

    pub(crate) fn acquire_timeout(lock: &str, waited: Duration, holder: Holder, rank: Option<u64>) -> Self {
        let remaining = match holder.remaining {
            Remaining::For(left) => Text::new("{} remain", [Part::whole_ms(left)]),
            Remaining::Forever => "its key has no expiry".to_owned().into(),
            Remaining::Gone => "its key has just gone".to_owned().into(),
        };
        let before = match rank {
            Some(rank @ 1..) => format!("; {rank} more waited before this one"),
            _ => String::new(),
        };
        let owner = Part::Words(quoted(&holder.owner));
        let message = Text::new(
            "lock {} was not acquired {}: it is held by \"{}\" ({}){}; try later, or wait longer ({wait})",
            [named(lock), within(waited), owner, Part::Text(remaining), Part::Words(before)],
        );
        Self::build(Code::AcquireTimeout, Some(lock), message, |inner| {
            inner.holder = Some(holder);
            inner.rank = rank;
        })
    }

    /// `ACQUIRE_TIMEOUT`: the next attempt of the job may begin only after `left`.
    pub(crate) fn not_due(lock: &str, waited: Duration, left: Duration, error: &str) -> Self {
        let message = Text::new(
            "job {} did not begin {}: its next attempt may begin in {}, after the last one failed (\"{}\"); try later, or wait longer \
             ({wait})",
            [named(lock), within(waited), Part::whole_ms(left), Part::Words(quoted(error))],
        );
        Self::new(Code::AcquireTimeout, Some(lock), message)
    }

    /// `JOB_DEAD`: the job's last attempt failed or died.
    pub(crate) fn job_dead(lock: &str, attempts: u32, error: String) -> Self {
        let begun = if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
        let message = Text::new(
            "job {} is dead after {}: \"{}\"; fix the cause, then call {reset}() to run it again",
            [named(lock), Part::Words(begun), Part::Words(quoted(&error))],
        );
        Self::build(Code::JobDead, Some(lock), message, |inner| inner.dead = Some((attempts, error)))
    }

    /// `LOCK_LOST`: the hold of `lock` was lost with `loss`.
    #[doc(hidden)]
    #[must_use]
    pub fn lost(lock: &str, loss: Loss) -> Self {
        let message = Text::new(
            "lock {} was lost: {}; do not trust work done since then; acquire it again before you continue",
            [named(lock), Part::Text(loss.sentence())],
        );
        Self::build(Code::LockLost, Some(lock), message, |inner| inner.loss = Some(loss))
    }

    pub(crate) fn not_held(lock: &str, why: &str) -> Self {
        let message = Text::new(
            "lock {} is not held by this handle: {}; only the hold that acquire() returned can release or extend it, and only once",
            [named(lock), Part::Words(why.to_owned())],
        );
        Self::new(Code::NotHeld, Some(lock), message)
    }

    /// `NOT_HELD`: `lock` was released before.
    #[doc(hidden)]
    #[must_use]
    pub fn released(lock: &str) -> Self {
        Self::not_held(lock, "it was already released")
    }

    /// `UNAVAILABLE`: these of all `count` servers failed.
    pub(crate) fn unavailable(lock: Option<&str>, count: usize, servers: Vec<ServerFailure>) -> Self {
        let advice = match servers.iter().any(|error| error.kind == FailureKind::Quarantine) {
            true => {
                "a server that is new votes after {max_ttl}; if no lock may be held, {initialize_quorum}() lets it vote at once; \
                 in tests a small {max_ttl} will do"
            }
            false => "trying again is safe",
        };
        Self::servers_failed(Code::Unavailable, lock, unusable(count), advice, servers)
    }

    /// The same error. If the only server gave no answer, and is a cluster, it says which node that was.
    pub(crate) fn of_silent_node(self, node: impl FnOnce() -> Option<String>) -> Self {
        match self.servers() {
            [silent] if self.code() == Code::Unavailable && silent.message.starts_with("no answer within") => {
                let Some(node) = node() else { return self };
                let silent = ServerFailure { message: format!("{node}: {}", silent.message), ..silent.clone() };
                Self::unavailable(self.0.lock.as_deref(), 1, vec![silent])
            }
            _ => self,
        }
    }

    /// `UNAVAILABLE`: these of all `count` servers did not answer the release of `lock`, which continues.
    pub(crate) fn not_released(lock: &str, count: usize, servers: Vec<ServerFailure>) -> Self {
        let advice = "the release continues in the background, and at the latest its ttl ends the key";
        Self::servers_failed(Code::Unavailable, Some(lock), unusable(count), advice, servers)
    }

    pub(crate) fn denied(lock: Option<&str>, servers: Vec<ServerFailure>) -> Self {
        let what = "the server denied access".to_owned();
        Self::servers_failed(Code::Denied, lock, what, "check the user, the password, and the user's rights", servers)
    }

    fn servers_failed(code: Code, lock: Option<&str>, what: String, advice: &'static str, servers: Vec<ServerFailure>) -> Self {
        let parts = [subject(lock), Part::Words(what), Part::Words(each(&servers)), Part::Text(Text::new(advice, []))];
        let message = Text::new("{}{} ({}); {}", parts);
        Self::build(code, lock, message, |inner| inner.servers = servers)
    }

    pub(crate) fn key_conflict(lock: &str, found: &str) -> Self {
        if let Some((kind, clock)) = found.split_once(" at ").filter(|(_, key)| key.ends_with(":~lt:clock")) {
            return Self::no_clock(lock, kind, clock);
        }
        let message = Text::new(
            "lock {}: its key holds a {}, not a lock, and was not changed; choose another name, or a {prefix}",
            [named(lock), Part::Words(quoted(found))],
        );
        Self::new(Code::KeyConflict, Some(lock), message)
    }

    /// `KEY_CONFLICT`: the key of the clock that gives the lock's fences is no stream, or its ids are too large for a fence.
    fn no_clock(lock: &str, kind: &str, clock: &str) -> Self {
        let (kind, key) = (quoted(kind), quoted(clock));
        let what = match &*kind {
            "stream" => format!(
                "gives no fence any more, because its ids are 2^53 or more; set it back by XSETID {key} 0-0, or DEL {key}"
            ),
            _ => format!("is a {kind}, not a clock, and was not changed; delete it by DEL {key}"),
        };
        let message = Text::new(
            "lock {}: the clock of its slot, {}, {}: then the fences of this slot begin at the server's time again",
            [named(lock), Part::Words(key), Part::Words(what)],
        );
        Self::new(Code::KeyConflict, Some(lock), message)
    }

    /// `KEY_CONFLICT`: the key of the history holds something else.
    pub(crate) fn no_history(found: &str) -> Self {
        let message = Text::new("the history of the server can't be read: there is a {}", [Part::Words(quoted(found))]);
        Self::new(Code::KeyConflict, None, message)
    }

    /// `KEY_CONFLICT`: no locktender wrote the value of the key, which is to be ended by force.
    #[doc(hidden)]
    #[must_use]
    pub fn foreign_value(lock: &str, value: &str) -> Self {
        let message = Text::new(
            "lock {}: no locktender wrote the value of its key, \"{}\", and it was left as it is; to end it all the same, give it as {owner}",
            [named(lock), Part::Words(quoted(value))],
        );
        Self::new(Code::KeyConflict, Some(lock), message)
    }

    pub(crate) fn closed(lock: Option<&str>) -> Self {
        Self::new(Code::Closed, lock, Text::new("{}the client is closed; make a new one", [subject(lock)]))
    }

    pub(crate) fn forked(lock: &str) -> Self {
        let message = Text::new(
            "lock {} is held by the parent process; this handle was inherited through a fork: acquire it here, or hand it over \
             ({hand_over})",
            [named(lock)],
        );
        Self::new(Code::Forked, Some(lock), message)
    }

    /// `INVALID_ARGUMENT`: a blocking call on a thread where it would block the core itself.
    pub(crate) fn waits_in_callback() -> Self {
        let text = "an event sink or a callback must not wait for an operation: it runs on a thread that brings the results; \
            use `then`, or a task or thread of your own";
        Self::new(Code::InvalidArgument, None, text.into())
    }

    /// `INVALID_ARGUMENT`: a test moves the clock, which the server at `address` does not follow.
    #[cfg(feature = "testing")]
    pub(crate) fn clock_of_its_own(address: &str) -> Self {
        let text = format!(
            "the clock can't be moved while a lock is held or waited for on {address}, which has a clock of its own: use memory:// \
             or a scripted server"
        );
        Self::new(Code::InvalidArgument, None, text.into())
    }

    /// `INVALID_ARGUMENT`: another test has the process's clock.
    #[cfg(feature = "testing")]
    pub(crate) fn clock_is_taken() -> Self {
        let text = "a test of this process has the clock already: drop or close that one before you take it again";
        Self::new(Code::InvalidArgument, None, text.into())
    }

    /// `INVALID_ARGUMENT`: a test released the clock before.
    #[cfg(feature = "testing")]
    pub(crate) fn clock_is_closed() -> Self {
        Self::new(Code::InvalidArgument, None, "the clock was given back: take it again to move it".into())
    }

    /// `INTERNAL`: a bug of this library.
    #[doc(hidden)]
    #[must_use]
    pub fn internal(lock: Option<&str>, what: &str) -> Self {
        Self::new(Code::Internal, lock, Text::from(format!("internal error, please report it: {what}")))
    }
}

/// The errors of servers, on one line.
pub(crate) fn each(servers: &[ServerFailure]) -> String {
    let failures: Vec<_> = servers.iter().map(|error| on_one_line(&error.to_string())).collect();
    failures.join("; ")
}

/// What failed, of so many servers.
fn unusable(count: usize) -> String {
    match count {
        0 | 1 => "the server could not be used".to_owned(),
        count => format!("no majority of the {count} servers could be used"),
    }
}

fn named(name: &str) -> Part {
    Part::Words(format!("{name:?}"))
}

/// How long was waited: `within 5s`, or `at once`.
fn within(waited: Duration) -> Part {
    match Part::whole_ms(waited) {
        Part::Time(none) if none.is_zero() => Part::Words("at once".to_owned()),
        time => Part::Text(Text::new("within {}", [time])),
    }
}

fn subject(lock: Option<&str>) -> Part {
    Part::Words(lock.map(|lock| format!("lock {lock:?}: ")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wording::Language;

    #[test]
    fn every_error_is_one_sentence_with_the_name_and_the_numbers() {
        let holder = Holder { owner: "host=web-3 pid=1".into(), remaining: Remaining::For(Duration::from_micros(740_500)) };
        let error = Error::acquire_timeout("orders:{42}", Duration::from_millis(5_000), holder, Some(0));
        for (language, reports, remain, wait) in [
            (Language::Rust, "5s", "740ms", "wait"),
            (Language::Python, "5 s", "0.74 s", "wait"),
            (Language::Node, "5000 ms", "740 ms", "waitMs"),
        ] {
            assert_eq!(
                error.in_words_of(language),
                format!(
                    "lock \"orders:{{42}}\" was not acquired within {reports}: it is held by \"host=web-3 pid=1\" ({remain} remain); \
                     try later, or wait longer ({wait})"
                )
            );
        }
        assert_eq!((error.code().as_str(), error.lock_name()), ("ACQUIRE_TIMEOUT", Some("orders:{42}")));
    }

    #[test]
    fn an_attempt_that_waits_for_nothing_fails_at_once() {
        for (micros, words) in [(0, "at once"), (999, "at once"), (1_000, "within 1ms")] {
            let (waited, holder) = (Duration::from_micros(micros), Holder { owner: "a".into(), remaining: Remaining::Gone });
            let error = Error::acquire_timeout("b", waited, holder, None);
            assert!(error.to_string().starts_with(&format!("lock \"b\" was not acquired {words}: it is held by")), "{error}");
            let error = Error::not_due("b", waited, Duration::from_secs(1), "c");
            assert!(error.to_string().starts_with(&format!("job \"b\" did not begin {words}: its next attempt")), "{error}");
        }
    }

    #[test]
    fn a_broken_clock_is_named_with_its_cure() {
        for (found, words) in [
            (
                "string at {7}:~lt:clock",
                "lock \"a\": the clock of its slot, {7}:~lt:clock, is a string, not a clock, and was not changed; delete it by DEL \
                 {7}:~lt:clock: then the fences of this slot begin at the server's time again",
            ),
            (
                "stream at {7}:~lt:clock",
                "lock \"a\": the clock of its slot, {7}:~lt:clock, gives no fence any more, because its ids are 2^53 or more; set it back \
                 by XSETID {7}:~lt:clock 0-0, or DEL {7}:~lt:clock: then the fences of this slot begin at the server's time again",
            ),
            (
                "string at {a}:~lt:fence",
                "lock \"a\": its key holds a string at {a}:~lt:fence, not a lock, and was not changed; choose another name, or a prefix",
            ),
        ] {
            let error = Error::key_conflict("a", found);
            assert_eq!((error.to_string().as_str(), error.code()), (words, Code::KeyConflict));
        }
    }

    #[test]
    fn what_was_given_is_shown_but_not_at_length() {
        let error = Error::invalid("name", "é".repeat(300), "too long".to_owned());
        assert!(error.to_string().len() < 120, "{error}");
    }

    #[test]
    fn one_server_is_no_majority() {
        assert!(!Error::unavailable(Some("a"), 1, Vec::new()).to_string().contains("majority"));
        assert!(Error::unavailable(None, 3, Vec::new()).to_string().contains("no majority of the 3 servers"));
    }
}
