//! Holds: what a case keeps under a name, and what its steps run inside of.

use locktender::{Attempt, Begun, Error, Leadership, Release};
use serde_json::Value;

use crate::seen::{look, look_at, look_at_term};

/// A hold that a case keeps.
pub(super) enum Hold {
    Lock(locktender::Hold),
    Attempt(Attempt),
    Leadership(Leadership),
}

impl Hold {
    pub(super) fn as_body(&self) -> Body<'_> {
        match self {
            Self::Lock(held) => Body::Lock(held),
            Self::Attempt(attempt) => Body::Attempt(attempt),
            Self::Leadership(leadership) => Body::Leadership(leadership),
        }
    }
}

/// The hold under which the steps of a body run.
#[derive(Clone, Copy)]
pub(super) enum Body<'a> {
    Lock(&'a locktender::Hold),
    Attempt(&'a Attempt),
    Leadership(&'a Leadership),
}

impl<'a> Body<'a> {
    pub(super) fn held(self) -> &'a locktender::Hold {
        match self {
            Self::Lock(held) => held,
            Self::Attempt(attempt) => attempt,
            Self::Leadership(leadership) => leadership,
        }
    }

    pub(super) fn resign(self) -> Result<Release, Error> {
        match self {
            Self::Leadership(leadership) => leadership.resign_blocking(),
            _ => panic!("this hold is no leadership"),
        }
    }

    pub(super) fn seen(self) -> Value {
        match self {
            Self::Lock(held) => look(held),
            Self::Attempt(attempt) => look_at(attempt),
            Self::Leadership(leadership) => look_at_term(leadership),
        }
    }
}

/// The result of an acquire, or of a begin: `None` if the job is done.
pub(super) type Got = Option<Hold>;

pub(super) fn begun(begun: Begun) -> Got {
    if let Begun::Attempt(attempt) = begun { Some(Hold::Attempt(attempt)) } else { None }
}
