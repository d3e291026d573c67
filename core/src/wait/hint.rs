//! Hints: the notices of servers to a waiter.

use std::time::Duration;

use crate::name::Kind;

/// What a waiter wants: a lock of a kind, and whether it is fair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// The kind of the lock. The queues don't tell the kinds apart that have one holder.
    pub kind: Kind,
    /// Whether the waiter is a fair one.
    pub fair: bool,
}

/// A waiter for a lock with one holder, fair or not.
impl From<bool> for Mode {
    fn from(fair: bool) -> Self {
        Self { kind: Kind::Exclusive, fair }
    }
}

/// The content of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The lock is free, and the waiter is the first in the queue.
    Free,
    /// The lock is kept for the waiter, for a moment.
    Claim,
    /// The waiter is the second in the queue. It tries when this time has passed, in case the first one has not taken the lock.
    Next(Duration),
}

/// A message of a server, parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hinted<'a> {
    /// The content.
    pub hint: Hint,
    /// What the waiter wants.
    pub mode: Mode,
    /// The waiter's number.
    pub number: u64,
    /// The key of the lock.
    pub lock: &'a str,
}

impl<'a> Hinted<'a> {
    /// Parses `<free|claim|next> <ms> <mode><number> <lock key>`, where `/<limit>` follows the number of a waiter for a permit; `None` for any
    /// other message, such as one of a later version.
    #[must_use]
    pub fn parse(message: &'a str) -> Option<Self> {
        let mut words = message.splitn(4, ' ');
        let (kind, window, waiter, lock) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let window = Duration::from_millis(window.parse().ok()?);
        let hint = match kind {
            "free" => Hint::Free,
            "claim" => Hint::Claim,
            "next" => Hint::Next(window),
            _ => return None,
        };
        let (letter, number) = waiter.split_at_checked(1)?;
        let (number, limit) = number.split_once('/').map_or((number, None), |(number, limit)| (number, Some(limit)));
        let (kind, fair) = match (letter, limit) {
            ("b", None) => (Kind::Exclusive, false),
            ("f", None) => (Kind::Exclusive, true),
            ("r", None) => (Kind::Read, false),
            ("s", None) => (Kind::Read, true),
            ("p", Some(limit)) => (Kind::Semaphore(limit.parse().ok()?), false),
            ("q", Some(limit)) => (Kind::Semaphore(limit.parse().ok()?), true),
            _ => return None,
        };
        Some(Self { hint, mode: Mode { kind, fair }, number: number.parse().ok()?, lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read() {
        let next = Hinted { hint: Hint::Next(Duration::from_millis(200)), mode: true.into(), number: 17, lock: "a b" };
        assert_eq!(Hinted::parse("next 200 f17 a b"), Some(next));
        assert_eq!(Hinted::parse("free 200 b0 x").map(|hinted| hinted.hint), Some(Hint::Free));
        let mode = |message| Hinted::parse(message).map(|hinted| (hinted.mode.kind, hinted.mode.fair, hinted.number));
        assert_eq!(mode("free 200 r3 x"), Some((Kind::Read, false, 3)));
        assert_eq!(mode("claim 200 q3/5 x"), Some((Kind::Semaphore(5), true, 3)));
        for other in [
            "",
            "free",
            "free 200 b0",
            "later 200 b0 x",
            "free soon b0 x",
            "free 200 x0 x",
            "free 200  x",
            "free 200 b x",
            "free 200 b3/x x",
            "free 200 r3/2 x",
            "claim 200 p3 x",
            "claim 200 p3/x x",
        ] {
            assert_eq!(Hinted::parse(other), None, "{other:?}");
        }
    }
}
