//! Hints: the notices of servers to a waiter.

use std::time::Duration;

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
    /// Whether the waiter is a fair one.
    pub fair: bool,
    /// The waiter's number.
    pub number: u64,
    /// The key of the lock.
    pub lock: &'a str,
}

impl<'a> Hinted<'a> {
    /// Parses `<free|claim|next> <ms> <f|b><number> <lock key>`; `None` for any other message, such as one of a later version.
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
        let (fair, number) = match waiter.split_at_checked(1)? {
            ("f", number) => (true, number),
            ("b", number) => (false, number),
            _ => return None,
        };
        Some(Self { hint, fair, number: number.parse().ok()?, lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read() {
        let next = Hinted { hint: Hint::Next(Duration::from_millis(200)), fair: true, number: 17, lock: "a b" };
        assert_eq!(Hinted::parse("next 200 f17 a b"), Some(next));
        assert_eq!(Hinted::parse("free 200 b0 x").map(|hinted| hinted.hint), Some(Hint::Free));
        for other in
            ["", "free", "free 200 b0", "later 200 b0 x", "free soon b0 x", "free 200 x0 x", "free 200  x", "free 200 b x"]
        {
            assert_eq!(Hinted::parse(other), None, "{other:?}");
        }
    }
}
