//! A hold: of a lock, an attempt of a job, or a term of a leader.

use std::ops::Deref;

use locktender::{Attempt, Held, Leadership};

/// A hold of JavaScript's: of a lock, an attempt of a job, or a term of a leader.
pub(crate) enum Hold {
    Lock(Held),
    Attempt(Attempt),
    Leadership(Leadership),
}

impl Deref for Hold {
    type Target = Held;

    fn deref(&self) -> &Held {
        match self {
            Self::Lock(held) => held,
            Self::Attempt(attempt) => attempt,
            Self::Leadership(leadership) => leadership,
        }
    }
}
