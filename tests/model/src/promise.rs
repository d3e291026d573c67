//! Promises: they are checked at every grant, the only moment at which a promise can be broken.

use crate::scenario::Scenario;
use crate::state::{Phase, State};

/// A promise that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A hold was granted before this one was asked for, and its fence isn't smaller.
    Order,
    /// Another hold has the same fence.
    Uniqueness,
    /// Another hold is valid.
    Exclusion,
}

/// Judges the grant of attempt `a`. A hold never becomes valid again, and its fence never changes: so whoever overlaps, or
/// comes in the wrong order, is found when the later of the two is granted.
#[must_use]
pub fn judge(state: &State, scenario: &Scenario, a: usize) -> Option<Violation> {
    let hold = &state.attempts[a];
    if scenario.promises_order() && hold.token <= hold.floor {
        return Some(Violation::Order);
    }
    if scenario.promises_order() && state.attempts().any(|other| other.granted && other.token == hold.token) {
        return Some(Violation::Uniqueness);
    }
    (scenario.promises_exclusion() && state.attempts().any(|other| other.phase == Phase::Held)).then_some(Violation::Exclusion)
}
