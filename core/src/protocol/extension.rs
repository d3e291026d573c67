//! Extension: one extension round over N servers, for a renewal or for a user's extend.

use std::time::Duration;

use crate::clock::Tick;
use crate::error::{LossReason, ServerFailure};
use crate::mutant::mutant;
use crate::op::holder::gate_of;
use crate::op::{Answer, Failure, FailureKind, Reply, Verdict};
use crate::protocol::{Quorum, Recipe};
use crate::validity::{Reading, jumped};

/// The longest pause between two tries of an extension, whatever the ttl.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The shortest time between two tries of an extension. It allows a few dozen tries in a short ttl, and a few a second in a long
/// one. So thousands of holds in trouble don't overload the connection that they wait for.
pub(super) fn least_pause(recipe: &Recipe) -> Duration {
    let longest = if mutant!(ExtendOutlasts) { Duration::MAX } else { LONGEST_PAUSE };
    (recipe.options.ttl / 40).clamp(Duration::from_millis(2), longest)
}

/// The answer of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Response {
    Pending,
    Yes,
    Missing,
    Taken(String),
    /// A key has a value of another type than it should.
    Conflict(String),
    Superseded,
    /// The server confirmed, on a clock that was set forward.
    Jumped,
    Failed(Failure),
}

/// The progress of the round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Open,
    /// A majority extended.
    Confirmed,
    /// So many servers refused that the hold is lost: the reason, and the new holder or the value found.
    Refused(LossReason, Option<String>),
    /// No majority answered, so the outcome is unknown.
    Unknown,
}

/// A round under way.
#[derive(Clone, Debug)]
pub(super) struct Extension {
    pub(super) round: u32,
    pub(super) sent: Tick,
    /// The span that shall remain, as sent.
    pub(super) span: Duration,
    /// The time at which the round stops waiting for answers, and another round may begin.
    pub(super) times_out: Tick,
    quorum: Quorum,
    answers: Vec<Response>,
    /// Whether a server found that a client waits.
    pub(super) waits: bool,
}

impl Extension {
    pub(super) fn new(round: u32, sent: Tick, span: Duration, times_out: Tick, quorum: Quorum) -> Self {
        Self { round, sent, span, times_out, quorum, answers: vec![Response::Pending; quorum.servers()], waits: false }
    }

    /// Takes a server's answer. `readings` are the hold's last readings of the servers' clocks.
    pub(super) fn answer(
        &mut self,
        server: usize,
        now: Tick,
        owner: &str,
        answer: Answer,
        readings: &mut [Option<Reading>],
    ) -> Progress {
        // A server that has given another answer to a later round doesn't count in this one.
        if self.answers[server] != Response::Pending {
            return self.verdict();
        }
        self.answers[server] = match answer {
            Ok(reply) if reply.verdict == Verdict::Ok => {
                self.waits |= reply.waits;
                let before = readings[server];
                if reply.time_us > 0 && before.is_none_or(|before| before.sent <= self.sent) {
                    readings[server] = Some(Reading { sent: self.sent, server_us: reply.time_us });
                }
                // The server's keys expire early by the size of the jump. It counts again when it confirms on the new clock.
                if before.is_some_and(|before| jumped(before, reply.time_us, now)) { Response::Jumped } else { Response::Yes }
            }
            Ok(reply) => Response::no(&reply, owner),
            Err(failure) => Response::Failed(failure),
        };
        self.verdict()
    }

    /// Withdraws a server's answer to this round, because the server has given another answer to a later round.
    pub(super) fn withdraw(&mut self, server: usize) {
        if matches!(self.answers[server], Response::Pending | Response::Yes) {
            self.answers[server] = Response::Failed(Failure::not_applied(FailureKind::Other, "said something else since"));
        }
    }

    /// Whether answers that are still to come may decide the round.
    pub(super) fn is_open(&self) -> bool {
        self.verdict() == Progress::Open
    }

    /// The time until which the servers keep the lock at least.
    pub(super) fn reach(&self) -> Tick {
        self.sent.after(self.span)
    }

    /// The rounds in which the server no longer counts because of its answer to this one: those sent before the time given. A
    /// refusal ends all earlier rounds; a jump of its clock ends all rounds.
    pub(super) fn ended_before(&self, server: usize) -> Option<Tick> {
        match &self.answers[server] {
            Response::Jumped => Some(Tick::NEVER),
            each => each.refuses().then_some(self.sent),
        }
    }

    /// Whether the server answered that it has no key at all.
    pub(super) fn is_forgetful(&self, server: usize) -> bool {
        self.answers[server] == Response::Missing
    }

    /// The errors of the servers that failed or have not answered yet.
    pub(super) fn failures(&self, addresses: &[String]) -> Vec<ServerFailure> {
        let failed = |(server, each): (usize, &Response)| match each {
            Response::Failed(failure) => Some(ServerFailure::of(&addresses[server], failure)),
            Response::Jumped => Some(ServerFailure::new(&addresses[server], FailureKind::Other, "its clock jumped forward")),
            Response::Pending => Some(ServerFailure::new(&addresses[server], FailureKind::Timeout, "had not answered yet")),
            _ => None,
        };
        self.answers.iter().enumerate().filter_map(failed).collect()
    }

    fn verdict(&self) -> Progress {
        let count = |is: fn(&Response) -> bool| self.answers.iter().filter(|each| is(each)).count();
        if count(|each| *each == Response::Yes) >= self.quorum.needed() {
            return Progress::Confirmed;
        }
        let noes = count(if mutant!(SilenceRefuses) {
            |each| !matches!(each, Response::Yes | Response::Pending)
        } else {
            Response::refuses
        });
        if self.quorum.blocked_by(noes) {
            return self.reason();
        }
        let failed = count(|each| matches!(each, Response::Failed(..) | Response::Jumped));
        if self.quorum.blocked_by(noes + failed) { Progress::Unknown } else { Progress::Open }
    }

    fn reason(&self) -> Progress {
        let taken = |each: &Response| if let Response::Taken(owner) = each { Some(owner.clone()) } else { None };
        if let Some(owner) = self.answers.iter().find_map(taken) {
            // The gate of several holders names none of them: the release does.
            return Progress::Refused(LossReason::Taken, Some(owner).filter(|owner| gate_of(owner).is_none()));
        }
        let conflict = |each: &Response| if let Response::Conflict(found) = each { Some(found.clone()) } else { None };
        if let Some(found) = self.answers.iter().find_map(conflict) {
            return Progress::Refused(LossReason::Conflict, Some(found));
        }
        let superseded = self.answers.contains(&Response::Superseded);
        Progress::Refused(if superseded { LossReason::Superseded } else { LossReason::Missing }, None)
    }
}

impl Response {
    fn refuses(&self) -> bool {
        matches!(self, Self::Missing | Self::Taken(_) | Self::Conflict(_) | Self::Superseded)
    }

    fn no(reply: &Reply, owner: &str) -> Self {
        if let Verdict::Conflict { found } = &reply.verdict {
            return Self::Conflict(found.clone());
        }
        match reply.other_owner() {
            None => Self::Missing,
            Some(holder) if holder == owner => Self::Superseded,
            Some(holder) => Self::Taken(holder.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Remaining;
    use crate::op::Failure;

    fn reply(verdict: Verdict) -> Answer {
        Ok(Reply::new(verdict, 0, 1))
    }

    fn no(holder: Option<&str>) -> Answer {
        reply(Verdict::No { holder: holder.map(str::to_owned), remaining: Remaining::Gone })
    }

    fn unknown() -> Answer {
        Err(Failure::unknown(FailureKind::Timeout, "late"))
    }

    fn verdict_of(answers: Vec<Answer>) -> Progress {
        let quorum = Quorum::of(answers.len());
        let mut extension = Extension::new(1, Tick::default(), Duration::from_secs(1), Tick::NEVER, quorum);
        let mut readings = vec![None; answers.len()];
        let mut verdict = Progress::Open;
        for (server, answer) in answers.into_iter().enumerate() {
            verdict = extension.answer(server, Tick::default(), "me", answer, &mut readings);
        }
        verdict
    }

    #[test]
    fn refused_is_loss_at_once_and_unknown_is_not() {
        let yes = || reply(Verdict::Ok);
        let missing = || no(None);
        let taken = || no(Some("other"));
        let kept = || no(Some("claim b:c:1 host=h pid=1"));
        let newer = || no(Some("me"));
        let forged = || reply(Verdict::Conflict { found: "string at f".into() });
        for (answers, expected) in [
            (vec![yes()], Progress::Confirmed),
            (vec![missing()], Progress::Refused(LossReason::Missing, None)),
            (vec![taken()], Progress::Refused(LossReason::Taken, Some("other".into()))),
            (vec![kept()], Progress::Refused(LossReason::Missing, None)),
            (vec![newer()], Progress::Refused(LossReason::Superseded, None)),
            (vec![forged()], Progress::Refused(LossReason::Conflict, Some("string at f".into()))),
            (vec![forged(), taken(), yes()], Progress::Refused(LossReason::Taken, Some("other".into()))),
            (vec![unknown()], Progress::Unknown),
            (vec![yes(), yes(), missing()], Progress::Confirmed),
            (vec![missing(), unknown(), yes()], Progress::Unknown),
            (vec![missing(), taken(), yes()], Progress::Refused(LossReason::Taken, Some("other".into()))),
            (vec![yes(), missing()], Progress::Refused(LossReason::Missing, None)),
        ] {
            assert_eq!(verdict_of(answers.clone()), expected, "{answers:?}");
        }
    }

    #[test]
    fn a_server_whose_clock_jumped_counts_only_when_it_confirms_again() {
        let quorum = Quorum::of(1);
        let at = |ms: u64| Tick::from_micros(ms * 1_000);
        let time = |ms: u64| Ok(Reply::new(Verdict::Ok, ms * 1_000, 1));
        let mut readings = vec![Some(Reading { sent: at(0), server_us: 1_000_000 })];
        let mut first = Extension::new(1, at(100), Duration::from_secs(1), Tick::NEVER, quorum);
        assert_eq!(first.answer(0, at(101), "me", time(6_000), &mut readings), Progress::Unknown);
        let mut second = Extension::new(2, at(110), Duration::from_secs(1), Tick::NEVER, quorum);
        assert_eq!(second.answer(0, at(111), "me", time(6_010), &mut readings), Progress::Confirmed);
    }
}
