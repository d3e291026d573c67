//! The extension rounds of a hold: the one under way, and those before it whose answers may still come.
//!
//! A round that timed out is not over: on a slow link its requests were applied, and their answers are on their way. It counts
//! as soon as its own majority has answered, and from its own sending. What a server says later withdraws what it said before.

use std::sync::Arc;

use crate::clock::Tick;
use crate::error::ServerError;
use crate::mutant::mutant;
use crate::op::Answer;
use crate::protocol::extension::{Extension, Progress};
use crate::validity::Reading;

/// The rounds of one hold.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    current: Option<Extension>,
    /// Those that timed out, in the order of their sending.
    earlier: Vec<Extension>,
    /// The last confirmed one: a server that lost its key may say so after the majority confirmed.
    confirmed: Option<Extension>,
}

/// What an answer has led to.
pub(super) enum Heard {
    /// Nothing that matters.
    Nothing,
    /// An open round stands so now; whether it is the one under way.
    Open(Progress, bool),
    /// A majority has confirmed this round.
    Confirmed(Extension),
    /// A server says after the majority of its round that it has no key.
    Forgot,
}

impl Rounds {
    /// The round under way.
    pub(super) fn current(&self) -> Option<&Extension> {
        self.current.as_ref()
    }

    pub(super) fn begin(&mut self, round: Extension) {
        self.current = Some(round);
    }

    /// Answers no longer matter.
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }

    /// When the round under way times out.
    pub(super) fn times_out(&self) -> Option<Tick> {
        self.current.as_ref().map(|round| round.times_out)
    }

    /// What failed in the round under way, or has not answered yet.
    pub(super) fn failures(&self, servers: &[String]) -> Vec<ServerError> {
        self.current.as_ref().map(|round| round.failures(servers)).unwrap_or_default()
    }

    /// The last confirmed round.
    pub(super) fn confirmed(&self) -> Option<&Extension> {
        self.confirmed.as_ref()
    }

    /// Ends the round under way without a majority. One that only timed out still waits for its answers.
    pub(super) fn end_current(&mut self) -> Option<Extension> {
        let round = self.current.take()?;
        if round.is_open() && !mutant!(TimedOutForgotten) {
            self.earlier.push(round.clone());
        }
        Some(round)
    }

    /// A server answered to the round with that number.
    pub(super) fn answer(
        &mut self,
        (server, number): (usize, u32),
        now: Tick,
        owner: &Arc<str>,
        answer: Answer,
        readings: &mut [Option<Reading>],
    ) -> Heard {
        if let Some(confirmed) = self.confirmed.as_mut().filter(|confirmed| confirmed.round == number) {
            confirmed.answer(server, now, owner, answer, readings);
            let (forgot, ended) = (confirmed.is_forgetful(server), confirmed.ended_before(server));
            self.withdraw(server, ended);
            return if forgot { Heard::Forgot } else { Heard::Nothing };
        }
        let is_behind = self.confirmed.as_ref().is_some_and(|confirmed| confirmed.round > number);
        let is_current = self.current.as_ref().is_some_and(|round| round.round == number) || mutant!(EarlierRoundCounts);
        let found = if is_current { self.current.as_mut() } else { self.earlier.iter_mut().find(|round| round.round == number) };
        let Some(round) = found else { return Heard::Nothing };
        let progress = round.answer(server, now, owner, answer, readings);
        let ended = round.ended_before(server);
        if mutant!(HealWithoutMajority) && round.is_forgetful(server) {
            self.confirmed = Some(round.clone());
            return Heard::Forgot;
        }
        self.withdraw(server, ended);
        if progress == Progress::Confirmed {
            return self.confirm(number, is_current);
        }
        if !is_current && (progress == Progress::Unknown || is_behind && progress != Progress::Open) {
            self.earlier.retain(|round| round.round != number);
        }
        // What was refused in a round before a confirmed one was so before.
        if is_behind && !mutant!(StaleRefusal) { Heard::Nothing } else { Heard::Open(progress, is_current) }
    }

    /// A server no longer counts for the rounds that were sent before `before`.
    fn withdraw(&mut self, server: usize, before: Option<Tick>) {
        let Some(before) = before.filter(|_| !mutant!(EarlierYesStands)) else { return };
        let others = self.earlier.iter_mut().chain(&mut self.current);
        others.filter(|other| other.sent < before).for_each(|other| other.withdraw(server));
    }

    /// Rounds before a confirmed one have nothing to add, unless they reach further.
    fn confirm(&mut self, number: u32, is_current: bool) -> Heard {
        let round = if is_current {
            self.current.take()
        } else {
            self.earlier.iter().position(|round| round.round == number).map(|at| self.earlier.remove(at))
        };
        let Some(round) = round else { return Heard::Nothing };
        let reaches_further = |earlier: &Extension| earlier.reach() > round.reach() && !mutant!(LongerRoundForgotten);
        self.earlier.retain(|earlier| earlier.round > round.round || reaches_further(earlier) || mutant!(StaleRefusal));
        if self.confirmed.as_ref().is_none_or(|last| last.round < round.round) {
            self.confirmed = Some(round.clone());
        }
        Heard::Confirmed(round)
    }
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
