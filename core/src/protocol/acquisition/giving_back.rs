//! Giving back: the release of a hold, and the end of an attempt, until their outcome is known.

use super::Acquisition;
use crate::clock::Tick;
use crate::error::{Error, LossReason};
use crate::mutant::mutant;
use crate::op::job::Ending;
use crate::protocol::ending;
use crate::protocol::releasing::{Caller, Look, Releasing, nothing_to_do};
use crate::protocol::state::State;
use crate::protocol::{CallId, Command, Manner, Recipe};

impl Acquisition {
    pub(super) fn release(
        &mut self,
        recipe: &Recipe,
        (call, manner): (CallId, Manner),
        ending: Option<Ending>,
        now: Tick,
        out: &mut Vec<Command>,
    ) {
        self.check_validity(recipe, now, out);
        let explicit = manner.is_explicit();
        let timeout = match &self.state {
            _ if explicit => recipe.unavailable_after,
            // The loss is certain. Only the next owner is still to be reported.
            State::Lost(..) => recipe.response_timeout / 4,
            _ => recipe.response_timeout,
        };
        let caller = Caller { call, manner, gives_up: now.after(timeout) };
        match &mut self.state {
            // The servers have answered no renewal until its validity was over: the loss is certain, and waits for no other answer.
            State::Lost(hold, loss) if manner == Manner::EndOfBody && loss.is_of_silence() => {
                out.push(Command::Released(call, Err(Error::lost(recipe.name(), ending::met_at(now, hold, loss)))));
                self.leave(recipe, (None, manner), ending, now, out);
                if let State::Releasing(releasing) = &mut self.state {
                    releasing.is_reported = true;
                }
            }
            State::Held(_) | State::Lost(..) => {
                let caller = (!manner.is_background()).then_some(caller);
                self.leave(recipe, (caller, manner), ending, now, out);
            }
            // No caller waits for the outcome.
            _ if manner.is_background() => (),
            // A release tried again after an unknown outcome, or the end of a body whose client was closed.
            State::Releasing(releasing)
                if releasing.caller.is_none()
                    && !releasing.is_reported
                    && (explicit || !releasing.explicit)
                    && ends_alike(ending.as_ref(), releasing.ending.as_ref()) =>
            {
                releasing.caller = Some(caller);
                releasing.explicit |= explicit;
            }
            // The end of an attempt, tried again after an outage that was longer than its lease.
            State::Released(released) if released.may_end_again(ending.as_ref()) => {
                if let Some(unended) = released.unended.take() {
                    self.end_again(recipe, *unended, caller, now, out);
                }
            }
            State::Released(released)
                if !released.reported
                    && (explicit || !released.explicit)
                    && ends_alike(ending.as_ref(), released.ending.as_ref()) =>
            {
                released.reported = true;
                out.push(Command::Released(call, released.report(recipe, manner)));
            }
            _ if explicit => out.push(Command::Released(call, Err(self.state.why_not_held(recipe, now)))),
            _ => out.push(Command::Released(call, Ok(nothing_to_do()))),
        }
    }

    /// Starts to release a hold, held or lost. An attempt of a job without an `ending` is given back, unless its hold was lost.
    pub(super) fn leave(
        &mut self,
        recipe: &Recipe,
        (caller, manner): (Option<Caller>, Manner),
        ending: Option<Ending>,
        now: Tick,
        out: &mut Vec<Command>,
    ) {
        let (hold, loss) = match std::mem::replace(&mut self.state, State::Ended) {
            State::Held(hold) => (hold, None),
            State::Lost(hold, loss) => (hold, Some(loss)),
            other => return self.state = other,
        };
        let may_go_back = loss.as_ref().is_none_or(|loss| loss.reason == LossReason::Closed) || mutant!(LostAttemptGivenBack);
        let ending = ending.or_else(|| (recipe.job.is_some() && may_go_back).then_some(Ending::GivenBack));
        let (explicit, is_unclaimed) = (manner.is_explicit(), manner == Manner::Unclaimed);
        let mut releasing = Releasing {
            hold,
            loss,
            caller,
            explicit,
            is_unclaimed,
            ending,
            is_again: false,
            is_reported: false,
            look: Look::Unasked,
        };
        self.removals.reserve_exact(1);
        self.removals.push(releasing.begin(recipe, now, out));
        self.state = State::Releasing(releasing);
    }

    /// Asks once more to note the end of an attempt: nobody knows whether an earlier request was done.
    fn end_again(&mut self, recipe: &Recipe, unended: Releasing, caller: Caller, now: Tick, out: &mut Vec<Command>) {
        let mut releasing = Releasing { caller: Some(caller), is_again: true, ..unended };
        self.removals.retain(|removal| removal.value.round != releasing.hold.round_number());
        self.removals.reserve_exact(1);
        self.removals.push(releasing.begin(recipe, now, out));
        self.state = State::Releasing(releasing);
    }

    /// Ends the release when its outcome is known.
    pub(super) fn conclude(&mut self, recipe: &Recipe, now: Tick, out: &mut Vec<Command>) {
        let State::Releasing(releasing) = &mut self.state else { return };
        let Some((mut released, is_unknown)) = releasing.conclude(recipe, (&self.removals, &self.witness), now, out) else {
            return;
        };
        if let State::Releasing(releasing) = std::mem::replace(&mut self.state, State::Ended)
            && is_unknown
        {
            released.unended = Some(Box::new(releasing));
        }
        self.state = State::Released(released);
    }
}

/// Whether a call asks for nothing else than what is under way: a release asks for no ending of an attempt.
fn ends_alike(asked: Option<&Ending>, under_way: Option<&Ending>) -> bool {
    asked.is_none() || asked == under_way
}
