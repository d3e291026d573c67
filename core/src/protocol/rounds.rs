//! The extension rounds of a hold: the one under way, and earlier ones whose answers may still come.
//!
//! A round that timed out is not over: on a slow link its requests were applied, and their answers are on their way. It counts as
//! soon as its own majority has answered, and from the time of its own request. A later answer of a server withdraws the earlier
//! one.

use std::sync::Arc;

use crate::clock::Tick;
use crate::error::ServerFailure;
use crate::error::sentence::each;
use crate::mutant::mutant;
use crate::op::Answer;
use crate::protocol::extension::{Extension, Progress};
use crate::validity::Reading;

/// The rounds of one hold. A short hold has none, so they are kept apart from it.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    current: Option<Box<Extension>>,
    /// The rounds that timed out, in the order of their requests.
    earlier: Vec<Extension>,
    /// The last round that ended without a majority, unless one was confirmed since.
    failed: Option<Box<Extension>>,
    /// The last confirmed round: a server that lost its key may report that after the majority confirmed.
    confirmed: Option<Box<Extension>>,
}

/// The effect of an answer.
pub(super) enum RoundAnswer {
    /// Nothing that matters.
    Nothing,
    /// The progress of a round that is not over, and whether it is the one under way.
    Open(Progress, bool),
    /// A majority has confirmed this round.
    Confirmed(Extension),
    /// A server reports, after the majority of its round, that it has no key.
    Forgot,
}

impl Rounds {
    /// The round under way.
    pub(super) fn current(&self) -> Option<&Extension> {
        self.current.as_deref()
    }

    pub(super) fn begin(&mut self, round: Extension) {
        self.current = Some(Box::new(round));
    }

    /// Ends all rounds: no further answer matters.
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }

    /// The time at which the round under way times out.
    pub(super) fn times_out(&self) -> Option<Tick> {
        self.current.as_ref().map(|round| round.times_out)
    }

    /// The errors of the servers that failed in the round under way, or have not answered yet.
    pub(super) fn failures(&self, servers: &[String]) -> Vec<ServerFailure> {
        self.current.as_ref().map(|round| round.failures(servers)).unwrap_or_default()
    }

    /// The last errors of the servers since the last confirmed round, in words. Those of a round under way may be still to come.
    pub(super) fn silence(&self, servers: &[String]) -> String {
        let last = self.failed.as_ref().or(self.current.as_ref());
        last.map(|round| each(&round.failures(servers))).unwrap_or_default()
    }

    /// The last confirmed round.
    pub(super) fn confirmed(&self) -> Option<&Extension> {
        self.confirmed.as_deref()
    }

    /// Ends the round under way without a majority. A round that only timed out still gets its answers.
    pub(super) fn end_current(&mut self) -> Option<Extension> {
        let round = *self.current.take()?;
        self.failed = Some(Box::new(round.clone()));
        if round.is_open() && !mutant!(TimedOutForgotten) {
            self.earlier.push(round.clone());
        }
        Some(round)
    }

    /// Takes a server's answer to the round with the number `number`.
    pub(super) fn answer(
        &mut self,
        (server, number): (usize, u32),
        now: Tick,
        owner: &Arc<str>,
        answer: Answer,
        readings: &mut [Option<Reading>],
    ) -> RoundAnswer {
        if let Some(confirmed) = self.confirmed.as_mut().filter(|confirmed| confirmed.round == number) {
            confirmed.answer(server, now, owner, answer, readings);
            let (forgot, ended) = (confirmed.is_forgetful(server), confirmed.ended_before(server));
            self.withdraw(server, ended);
            return if forgot { RoundAnswer::Forgot } else { RoundAnswer::Nothing };
        }
        let is_behind = self.confirmed.as_ref().is_some_and(|confirmed| confirmed.round > number);
        let is_current = self.current.as_ref().is_some_and(|round| round.round == number) || mutant!(EarlierRoundCounts);
        let found =
            if is_current { self.current.as_deref_mut() } else { self.earlier.iter_mut().find(|round| round.round == number) };
        let Some(round) = found else { return RoundAnswer::Nothing };
        let progress = round.answer(server, now, owner, answer, readings);
        let ended = round.ended_before(server);
        if mutant!(HealWithoutMajority) && round.is_forgetful(server) {
            self.confirmed = Some(Box::new(round.clone()));
            return RoundAnswer::Forgot;
        }
        self.withdraw(server, ended);
        if progress == Progress::Confirmed {
            return self.confirm(number, is_current);
        }
        if !is_current && (progress == Progress::Unknown || is_behind && progress != Progress::Open) {
            self.earlier.retain(|round| round.round != number);
        }
        // A refusal in a round before a confirmed one is older than the confirmation.
        if is_behind && !mutant!(StaleRefusal) { RoundAnswer::Nothing } else { RoundAnswer::Open(progress, is_current) }
    }

    /// Withdraws a server's answers to the rounds that were sent before `before`.
    fn withdraw(&mut self, server: usize, before: Option<Tick>) {
        let Some(before) = before.filter(|_| !mutant!(EarlierYesStands)) else { return };
        let others = self.earlier.iter_mut().chain(self.current.as_deref_mut());
        others.filter(|other| other.sent < before).for_each(|other| other.withdraw(server));
    }

    /// Confirms a round. It ends earlier rounds, except those that reach further.
    fn confirm(&mut self, number: u32, is_current: bool) -> RoundAnswer {
        let round = if is_current {
            self.current.take().map(|round| *round)
        } else {
            self.earlier.iter().position(|round| round.round == number).map(|at| self.earlier.remove(at))
        };
        let Some(round) = round else { return RoundAnswer::Nothing };
        self.failed = None;
        let reaches_further = |earlier: &Extension| earlier.reach() > round.reach() && !mutant!(LongerRoundForgotten);
        self.earlier.retain(|earlier| earlier.round > round.round || reaches_further(earlier) || mutant!(StaleRefusal));
        if self.confirmed.as_ref().is_none_or(|last| last.round < round.round) {
            self.confirmed = Some(Box::new(round.clone()));
        }
        RoundAnswer::Confirmed(round)
    }
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
