//! A hold: of a lock, or an attempt of a job.

use std::ops::Deref;

use locktender::{Attempt, Held};

/// A hold of JavaScript's: of a lock, or an attempt of a job.
pub(crate) enum Hold {
    Lock(Held),
    Attempt(Attempt),
}

impl Deref for Hold {
    type Target = Held;

    fn deref(&self) -> &Held {
        match self {
            Self::Lock(held) => held,
            Self::Attempt(attempt) => attempt,
        }
    }
}
