//! Giving back: the release of a hold, and the end of an attempt, until their outcome is known.

use super::Acquisition;
use crate::clock::Tick;
use crate::error::LossReason;
use crate::mutant::mutant;
use crate::op::job::Ending;
use crate::protocol::releasing::{Caller, Releasing, nothing_to_do};
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
        let timeout = if explicit { recipe.unavailable_after } else { recipe.response_timeout };
        let caller = Caller { call, manner, gives_up: now.after(timeout) };
        match &mut self.state {
            State::Held(_) | State::Lost(..) => {
                let caller = (manner != Manner::Background).then_some(caller);
                self.leave(recipe, (caller, explicit), ending, now, out);
            }
            // No caller waits for the outcome.
            _ if manner == Manner::Background => (),
            // A release tried again after an unknown outcome, or the end of a body whose client was closed.
            State::Releasing(releasing) if releasing.caller.is_none() && (explicit || !releasing.explicit) => {
                releasing.caller = Some(caller);
                releasing.explicit |= explicit;
            }
            State::Released(released) if !released.reported && (explicit || !released.explicit) => {
                released.reported = true;
                out.push(Command::Released(call, released.tell(recipe, manner)));
            }
            _ if explicit => out.push(Command::Released(call, Err(self.state.why_not_held(recipe, now)))),
            _ => out.push(Command::Released(call, Ok(nothing_to_do()))),
        }
    }

    /// Starts to release a hold, held or lost. An attempt of a job without an `ending` is given back, unless its hold was lost.
    pub(super) fn leave(
        &mut self,
        recipe: &Recipe,
        (caller, explicit): (Option<Caller>, bool),
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
        let mut releasing = Releasing { hold, loss, caller, explicit, ending };
        self.removals.push(releasing.begin(recipe, now, out));
        self.state = State::Releasing(releasing);
    }

    /// Ends the release when its outcome is known.
    pub(super) fn conclude(&mut self, recipe: &Recipe, now: Tick, out: &mut Vec<Command>) {
        let State::Releasing(releasing) = &self.state else { return };
        if let Some(released) = releasing.conclude(recipe, (&self.removals, &self.witness), now, out) {
            self.state = State::Released(released);
        }
    }
}
