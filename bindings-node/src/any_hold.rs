//! A hold: of a lock, an attempt of a job, or a term of a leader.

use std::ops::Deref;

use locktender::{Attempt, Hold, Leadership};

/// A hold of JavaScript's: of a lock, an attempt of a job, or a term of a leader.
pub(crate) enum AnyHold {
    Lock(Hold),
    Attempt(Attempt),
    Leadership(Leadership),
}

impl Deref for AnyHold {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        match self {
            Self::Lock(held) => held,
            Self::Attempt(attempt) => attempt,
            Self::Leadership(leadership) => leadership,
        }
    }
}
