//! The whole system at one moment: N servers, A attempts, and what is in flight between them.

use crate::server::{ATTEMPTS, Fence, Owner, Server};

/// The most servers a model can have.
pub const SERVERS: usize = 5;

/// What one attempt's client has to do with one server. What is in flight stays in flight until it arrives, if it ever does:
/// a message that is never delivered is a lost one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Call {
    /// The acquire is unanswered: it may be applied at any time.
    #[default]
    Pending,
    /// It cast this vote, and the token is not chosen yet.
    Voted(Fence),
    /// It is answered: with a vote below the token, or with a refusal. Once granted, also with the token itself.
    Answered,
    /// The vote is the token, or the token was confirmed.
    Attests,
    /// The vote is above the token: never counted, and released.
    Above,
    /// The client gave up waiting for the answer; the acquire may be applied all the same.
    Failed,
}

/// Where an attempt stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Not asked for yet.
    #[default]
    Idle,
    /// The acquires are out, no token is chosen.
    Asking,
    /// The token is chosen and must be attested.
    Confirming,
    /// Granted, and valid.
    Held,
    /// Given up, released or lost. Its releases may arrive at any time from now on.
    Ended,
    /// Handed over: no release is sent.
    HandedOver,
}

/// One attempt, and the hold it may become. An attempt is one *round* of the acquire loop: its owner value is its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// Where it stands.
    pub phase: Phase,
    /// The owner whose key counts as free.
    pub adopt: Option<Owner>,
    /// The token, once chosen.
    pub token: Fence,
    /// History: the largest fence granted before this attempt was asked for.
    pub floor: Fence,
    /// History: it was granted.
    pub granted: bool,
    /// A majority confirmed an extension: heals may be in flight.
    pub heals: bool,
    /// How many deadlines of rounds that were sent lie ahead, the hold's own validity included.
    pub sent: u8,
    /// How many of them lie within validity.
    pub confirmed: u8,
}

/// A server and, per attempt, its dealings with that server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// The server.
    pub server: Server,
    /// Each attempt's acquire.
    pub calls: [Call; ATTEMPTS],
    /// Whether each attempt's extension under way was answered with Ok.
    pub extended: [bool; ATTEMPTS],
}

/// The state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The servers; those beyond N are unused.
    pub columns: [Column; SERVERS],
    /// The attempts; those beyond A are unused.
    pub attempts: [Attempt; ATTEMPTS],
    /// How many servers there are.
    pub servers: usize,
    /// How many attempts there are.
    pub count: usize,
}

impl State {
    /// Nothing was asked for yet, and the servers have these fences.
    #[must_use]
    pub fn new(servers: usize, attempts: usize, fences: &[Fence]) -> Self {
        let mut columns = [Column::default(); SERVERS];
        for (column, fence) in columns.iter_mut().zip(fences) {
            column.server.fence = *fence;
        }
        Self { columns, attempts: [Attempt::default(); ATTEMPTS], servers, count: attempts }
    }

    /// The servers there are.
    pub fn servers(&self) -> impl Iterator<Item = &Column> {
        self.columns[..self.servers].iter()
    }

    /// The attempts there are.
    pub fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts[..self.count].iter()
    }

    /// Whether a grant is still possible: without one no promise can be broken any more.
    #[must_use]
    pub fn can_grant(&self) -> bool {
        self.attempts().any(|attempt| attempt.phase.may_be_granted())
    }

    /// Calls `each` with every fence of the state.
    pub fn for_each_fence(&mut self, mut each: impl FnMut(&mut Fence)) {
        for column in &mut self.columns[..self.servers] {
            each(&mut column.server.fence);
            for call in &mut column.calls[..self.count] {
                if let Call::Voted(vote) = call {
                    each(vote);
                }
            }
        }
        for attempt in &mut self.attempts[..self.count] {
            each(&mut attempt.token);
            each(&mut attempt.floor);
        }
    }
}

impl Phase {
    /// Whether the attempt may be granted, now or later.
    #[must_use]
    pub const fn may_be_granted(self) -> bool {
        matches!(self, Self::Idle | Self::Asking | Self::Confirming)
    }

    /// Whether nobody believes in the attempt any more.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::HandedOver)
    }

    /// Whether a token is chosen and somebody waits for the outcome.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Asking | Self::Confirming | Self::Held)
    }
}
