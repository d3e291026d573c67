//! Tag: which operation of an acquisition an answer belongs to. The server gives it back with the answer.

use crate::clock::Tick;

/// The operation to which an answer belongs. It comes back with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The round, unique within an acquisition.
    pub round: u32,
    /// The step of the round.
    pub step: Step,
    /// The time of the request.
    pub sent: Tick,
}

/// The step of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Step {
    Acquire,
    Confirm,
    Extend,
    Heal,
    Release,
    Leave,
    Look,
}
