//! Releasing: a hold while it is released, and the outcome for its user.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::error::{Error, Loss, LossReason};
use crate::event::{EventKind, LockEvent};
use crate::mutant::mutant;
use crate::op::job::{Ending, OpenAttempt};
use crate::op::{Answer, Beside, HistoryEntry, HoldState, Reply, Verdict};
use crate::protocol::hold::Hold;
use crate::protocol::overlap::{Ours, next_hold};
use crate::protocol::release::{Outcome, Release};
use crate::protocol::removal::{Removal, Value};
use crate::protocol::witness::Witness;
use crate::protocol::{CallId, Command, Manner, Recipe, Step, Tag};

/// How far the clocks of two nodes of a cluster may be apart, so that what one of them has noted is found by the time of the other.
const CLOCKS_APART_MS: u64 = 10_000;

/// A hold that is being released. Its removal is among those of its acquisition.
#[derive(Debug)]
pub(super) struct Releasing {
    pub(super) hold: Hold,
    pub(super) loss: Option<Loss>,
    pub(super) caller: Option<Caller>,
    /// Whether an explicit release was asked for: then the end of the body has nothing more to do.
    pub(super) explicit: bool,
    /// Whether its caller did not get the hold: nobody has worked under it.
    pub(super) is_unclaimed: bool,
    /// How the attempt ends, of a job.
    pub(super) ending: Option<Ending>,
    /// Whether the hold has ended before, with an event, and this only asks once more how the attempt ended.
    pub(super) is_again: bool,
    /// Whether the end of the body has got its loss: no other caller gets an answer.
    pub(super) is_reported: bool,
    pub(super) look: Look,
}

/// The look at the history, where a hold had expired and nobody holds the lock.
#[derive(Debug, Default)]
pub(super) enum Look {
    /// Not asked for.
    #[default]
    Unasked,
    /// Asked for, and what the release found before.
    Asked(Release),
    /// Over. The next hold, if it is proved, is in the release.
    Over(Release),
}

/// The caller that waits for the outcome of a release, and its time limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) call: CallId,
    pub(super) manner: Manner,
    pub(super) gives_up: Tick,
}

/// A hold that was released.
#[derive(Debug)]
pub(super) struct Released {
    pub(super) release: Release,
    pub(super) loss: Option<Loss>,
    /// Whether a caller got the outcome.
    pub(super) reported: bool,
    /// Whether that caller's release was explicit.
    pub(super) explicit: bool,
    /// How the attempt ended, of a job.
    pub(super) ending: Option<Ending>,
    /// The end of an attempt of which no server has reported whether it is noted.
    pub(super) unended: Option<Box<Releasing>>,
}

impl Releasing {
    /// Starts the removal.
    pub(super) fn begin(&mut self, recipe: &Recipe, now: Tick, out: &mut Vec<Command>) -> Removal {
        let hold = &mut self.hold;
        hold.stop(|| Error::not_held(recipe.name(), "it is being released"), out);
        let ends = self.ending.clone().map(|ending| (ending, open_attempt(recipe, hold)));
        let keeps_until = if self.is_unclaimed { Tick::default() } else { hold.granted.after(recipe.options.min_hold) };
        // Of a release whose answer nobody reads, all has to be done by one request.
        let is_short = (self.caller.is_some() || mutant!(UnawaitedReleaseShort)) && recipe.options.min_hold.is_zero();
        let shown = if is_short { hold.value(recipe) } else { None };
        let value = Value { round: hold.round_number(), owner: Arc::clone(hold.owner()), leaves: None, ends, keeps_until, shown };
        let until = Some(hold.validity_end);
        let mut removal = Removal::begin(recipe, value, now, until, hold.kept_until, |server| hold.concern(server, now), out);
        removal.await_writes(recipe, |server| hold.is_writing(server), now);
        removal
    }

    /// Lets the caller wait longer, by the time in which this process did not run. `late` gives it for an alarm.
    pub(super) fn extend_for_pause(&mut self, removals: &[Removal], late: impl Fn(Tick) -> Duration) {
        let due = self.removal(removals).and_then(Removal::wake_at);
        if let Some(caller) = &mut self.caller {
            let due = due.map_or(caller.gives_up, |due| due.min(caller.gives_up));
            caller.gives_up = caller.gives_up.after(late(due));
        }
    }

    fn removal<'a>(&self, removals: &'a [Removal]) -> Option<&'a Removal> {
        removals.iter().find(|removal| removal.value.round == self.hold.round_number())
    }

    /// Whether an answer about the history is awaited.
    pub(super) const fn is_looking(&self) -> bool {
        matches!(self.look, Look::Asked(_))
    }

    /// Takes the answer about the history; `None` if it takes too long.
    pub(super) fn looked(&mut self, recipe: &Recipe, answer: Option<&Answer>) {
        self.look = match std::mem::take(&mut self.look) {
            Look::Asked(found) => {
                let entries: &[HistoryEntry] = match answer {
                    Some(Ok(Reply { verdict: Verdict::Logged(entries), .. })) => entries,
                    _ => &[],
                };
                let (lock, owner, fence) = (recipe.keys.lock(), &**self.hold.owner(), self.hold.fence);
                let adopted = recipe.adopt.as_ref().map(|adopt| &*adopt.owner);
                let beside = Beside::of(recipe.keys.kind());
                Look::Over(match next_hold(entries, &Ours { lock, owner, fence, adopted, beside }) {
                    Some(next) => Release {
                        outcome: Outcome::Taken,
                        next_owner: Some(next.owner.to_string()),
                        next_fence: Some(next.fence),
                        next_has_ended: true,
                        ..found
                    },
                    None => found,
                })
            }
            look => look,
        };
    }

    /// Asks for the history if a hold that has ended may have come between.
    fn look(&mut self, recipe: &Recipe, found: Release, removal: &Removal, now: Tick, out: &mut Vec<Command>) -> Option<Release> {
        let (hold, expired) = (&self.hold, found.outcome == Outcome::Expired);
        let Some(refused) = removal.refused.as_ref().filter(|_| expired && !self.is_unclaimed && hold.is_on_one_server()) else {
            return Some(found);
        };
        let confirmed_us = hold.confirmed_us();
        if !hold.failed_over && refused.excludes(hold.fence, confirmed_us, hold.round.run_ids[0].as_ref()) {
            return Some(Release { is_excluded: true, ..found });
        }
        if !recipe.logs() || !refused.knows(hold.fence) {
            return Some(found);
        }
        let tag = Tag { round: hold.round_number(), step: Step::Look, sent: now };
        // The history may be on another node of a cluster, whose clock is another one.
        let since_us = if confirmed_us > 0 { confirmed_us } else { hold.fence };
        let since_ms = (since_us / 1_000).saturating_sub(CLOCKS_APART_MS);
        out.push(Command::Look { tag, since_ms, failed_over: hold.failed_over });
        self.look = Look::Asked(found);
        None
    }

    /// What the release found, with the votes that its servers have shown.
    fn find(
        &mut self,
        recipe: &Recipe,
        (removals, witness): (&[Removal], &Witness),
        now: Tick,
        out: &mut Vec<Command>,
    ) -> Option<Release> {
        match std::mem::take(&mut self.look) {
            Look::Over(found) => Some(found),
            look @ Look::Asked(_) => {
                self.look = look;
                None
            }
            Look::Unasked => {
                let (later, latest) = self.hold.others(witness);
                let removal = self.removal(removals)?;
                let found = removal.outcome(later, |count| witness.proves(count))?;
                // A vote that isn't proved to be another's may be of one of our own earlier rounds, read late.
                let next_fence = latest.filter(|_| found.outcome == Outcome::Taken && witness.proves(later));
                self.look(recipe, Release { next_fence, ..found }, removal, now, out)
            }
        }
    }

    /// Ends the release if its outcome is known, and gives the outcome to the caller. Says besides whether it is unknown how the attempt
    /// ended.
    pub(super) fn conclude(
        &mut self,
        recipe: &Recipe,
        (removals, witness): (&[Removal], &Witness),
        now: Tick,
        out: &mut Vec<Command>,
    ) -> Option<(Released, bool)> {
        let release = self.find(recipe, (removals, witness), now, out)?.after(self.loss.as_ref());
        let removal = self.removal(removals);
        let kind = match release.outcome {
            Outcome::Released => EventKind::Released,
            Outcome::Expired => EventKind::Expired,
            Outcome::Taken => EventKind::Overlapped,
        };
        let without_answer = removal.and_then(|removal| removal.without_answer(recipe)).filter(|_| kind == EventKind::Expired);
        let is_unknown = without_answer.is_some() && self.ending.as_ref().is_some_and(|ending| *ending != Ending::GivenBack);
        if !self.is_again {
            let mut event = self.hold.event(recipe, kind);
            event.next_owner.clone_from(&release.next_owner);
            event.next_fence = release.next_fence;
            event.message = without_answer.or_else(|| release.sentence());
            event.took = Some(now.since(self.hold.granted));
            event.overrun = Some(release.overrun).filter(|_| kind != EventKind::Released);
            event.is_excluded = release.is_excluded;
            out.push(Command::emit(event));
        }
        out.extend(self.end_of_attempt(recipe, release.outcome, now).map(Command::emit));
        let released = Released {
            release,
            loss: self.loss.clone(),
            reported: self.is_reported || self.caller.is_some() && !is_unknown,
            explicit: self.explicit,
            ending: self.ending.clone(),
            unended: None,
        };
        if let Some(caller) = self.caller {
            let reported = if is_unknown { Err(not_released(recipe, removal)) } else { released.report(recipe, caller.manner) };
            out.push(Command::Released(caller.call, reported));
        }
        let is_noted =
            self.is_again || self.is_unclaimed || self.loss.as_ref().is_some_and(|loss| loss.reason != LossReason::Closed);
        let state = if kind == EventKind::Released { HoldState::Released } else { HoldState::Lost };
        out.extend(self.hold.last_note(recipe, state, now).filter(|_| !is_noted).map(Command::Log));
        Some((released, is_unknown))
    }

    /// The event of an attempt whose end is noted.
    fn end_of_attempt(&self, recipe: &Recipe, outcome: Outcome, now: Tick) -> Option<LockEvent> {
        let is_last = self.hold.round.attempt.is_some_and(|attempt| attempt.number >= attempt.max);
        let (kind, message) = match self.ending.as_ref().filter(|_| outcome == Outcome::Released)? {
            Ending::Done { .. } => (EventKind::Done, None),
            Ending::Failed { error, retry_in_ms } if is_last || retry_in_ms.is_none() => (EventKind::Dead, Some(error)),
            Ending::Failed { error, .. } => (EventKind::Retry, Some(error)),
            Ending::GivenBack => return None,
        };
        let (message, took) = (message.map(|error| error.to_string()), Some(now.since(self.hold.granted)));
        Some(LockEvent { message, took, ..self.hold.event(recipe, kind) })
    }

    /// Answers the caller of a release, which has waited long enough for the outcome. The release continues in the background.
    pub(super) fn stop_waiting(&self, recipe: &Recipe, caller: Caller, removals: &[Removal], out: &mut Vec<Command>) {
        let result = match (caller.manner, &self.loss) {
            (Manner::Explicit | Manner::EndOfAttempt, _) => Err(not_released(recipe, self.removal(removals))),
            // The body has ended with the first request: the time that the servers take is not the holder's.
            (_, Some(loss)) => {
                let overrun = self.removal(removals).map_or(Duration::ZERO, Removal::overrun);
                Err(Error::lost(recipe.name(), loss.clone().after(overrun)))
            }
            (_, None) => {
                let message = "the release is not confirmed yet; it continues in the background until the key expires".to_owned();
                out.push(Command::emit(LockEvent { message: Some(message), ..self.hold.event(recipe, EventKind::Warning) }));
                Ok(nothing_to_do())
            }
        };
        out.push(Command::Released(caller.call, result));
    }
}

fn not_released(recipe: &Recipe, removal: Option<&Removal>) -> Error {
    let errors = removal.map(|removal| removal.errors(recipe)).unwrap_or_default();
    Error::not_released(recipe.name(), recipe.servers.len(), errors)
}

/// The attempt of a job that this hold is.
fn open_attempt(recipe: &Recipe, hold: &Hold) -> OpenAttempt {
    let (number, terms) = (hold.round.attempt.unwrap_or_default(), recipe.job);
    let scheduled_time_ms = terms.and_then(|terms| terms.scheduled_time).map_or(0, |scheduled_time| scheduled_time.at_ms);
    OpenAttempt { fence: hold.fence, number, retention_ms: terms.map_or(0, |terms| terms.retention_ms), scheduled_time_ms }
}

impl Released {
    /// Whether this end of an attempt may be asked for once more.
    pub(super) fn may_end_again(&self, ending: Option<&Ending>) -> bool {
        self.unended.is_some() && ending.is_some() && ending == self.ending.as_ref()
    }

    /// The answer for the caller of a release. The end of a body after a loss is an error; an explicit release reports what it
    /// found.
    pub(super) fn report(&self, recipe: &Recipe, manner: Manner) -> Result<Release, Error> {
        let release = self.release.clone();
        let loss = self.loss.as_ref();
        let is_ours = release.outcome == Outcome::Released;
        if manner == Manner::Explicit || is_ours && (loss.is_none() || manner == Manner::EndOfAttempt) {
            return Ok(release);
        }
        let found = match (release.outcome, &release.conflict) {
            (Outcome::Taken, _) => LossReason::Taken,
            (_, Some(_)) => LossReason::Conflict,
            _ => LossReason::Missing,
        };
        let reason = loss.map_or(found, |loss| loss.reason);
        let lost = loss.cloned().unwrap_or_else(|| Loss::new(reason, release.overrun));
        let next_owner = release.next_owner.or(lost.next_owner);
        let found = release.conflict.or(lost.found);
        Err(Error::lost(
            recipe.name(),
            Loss {
                next_owner,
                next_fence: release.next_fence,
                next_has_ended: release.next_has_ended,
                overrun: release.overrun,
                found,
                ..lost
            },
        ))
    }
}

/// The outcome for the end of a body whose lock was released before.
pub(super) fn nothing_to_do() -> Release {
    Release::ours(Duration::ZERO, Duration::ZERO)
}

#[cfg(test)]
#[path = "releasing_tests.rs"]
mod tests;
