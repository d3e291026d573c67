//! One acquisition, from the first attempt to the last undone vote.

mod giving_back;
mod late;

use crate::op::{Answer, HoldState, Queued, Reply};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Now, Tick};
use crate::error::{Error, Loss, LossReason};
use crate::event::{EventKind, LockEvent};
use crate::mutant::mutant;
use crate::name::Kind;
use crate::protocol::acquiring::{Acquiring, Decision};
use crate::protocol::context::Context;
use crate::protocol::ending;
use crate::protocol::hold::Hold;
use crate::protocol::jump::Jump;
use crate::protocol::releasing::Releasing;
use crate::protocol::removal::Removal;
use crate::protocol::round::Round;
use crate::protocol::state::State;
use crate::protocol::ticket::ticket;
use crate::protocol::witness::Witness;
use crate::protocol::{Amount, Answered, CallId, Command, Grant, GrantOfSeveral, Input, Manner, Recipe, Step, Tag};
use crate::wait::{Slot, Waiter};

/// The state machine of one acquisition.
#[derive(Debug)]
pub struct Acquisition {
    recipe: Arc<Recipe>,
    /// Our place in the queues, if we waited there.
    slot: Option<Arc<Slot>>,
    rng: fastrand::Rng,
    rounds: u32,
    /// The last time at which this process ran, as far as it knows.
    ran: Tick,
    state: State,
    /// The removals under way: of undone rounds, and of the hold once it is released.
    removals: Vec<Removal>,
    witness: Witness,
}

impl Acquisition {
    /// An acquisition by `recipe`. `seed` decides its owner values and jitter. With a `waiter` it joins the queues, else it polls.
    #[must_use]
    pub fn new(recipe: Arc<Recipe>, waiter: Option<Waiter>, seed: u64, now: Now) -> Self {
        let slot = waiter.as_ref().map(|waiter| Arc::clone(&waiter.slot));
        let acquiring = Acquiring::new(&recipe, waiter, now.tick);
        let (rng, witness) = (fastrand::Rng::with_seed(seed), Witness::new(recipe.quorum()));
        Self { recipe, slot, rng, rounds: 0, ran: now.tick, state: State::Acquiring(acquiring), removals: Vec::new(), witness }
    }

    /// Gives it a waiter, before any input.
    pub(crate) fn take_place(&mut self, waiter: Waiter) {
        self.slot = Some(Arc::clone(&waiter.slot));
        if let State::Acquiring(acquiring) = &mut self.state {
            *acquiring = Acquiring::new(&self.recipe, Some(waiter), acquiring.started);
        }
    }

    /// Gives it the owner value of its first round, before any input.
    pub(super) fn begin_as(&mut self, owner: Arc<str>) {
        if let State::Acquiring(acquiring) = &mut self.state {
            acquiring.owner = Some(owner);
        }
    }

    /// The end of the time in which the holder may believe in its hold; the clock's origin if there is no hold.
    #[must_use]
    pub fn valid_until(&self) -> Tick {
        match &self.state {
            State::Held(hold) => hold.validity_end,
            State::Releasing(releasing) if mutant!(ValidWhileReleasing) => releasing.hold.validity_end,
            _ => Tick::default(),
        }
    }

    /// The time at which [`Input::Wake`] is due.
    #[must_use]
    pub fn wake_at(&self) -> Tick {
        let state = match &self.state {
            State::Acquiring(acquiring) => acquiring.wake_at(&self.recipe),
            State::Held(hold) => hold.wake_at(),
            State::Releasing(Releasing { caller: Some(caller), .. }) => caller.gives_up,
            _ => Tick::NEVER,
        };
        self.removals.iter().filter_map(Removal::wake_at).fold(state, Tick::min)
    }

    /// The value of the hold, its fence, and the time of its grant, while the lock is held.
    pub(crate) fn hold(&self) -> Option<(&Arc<str>, u64, Tick)> {
        self.state.hold().map(|hold| (hold.owner(), hold.fence, hold.granted))
    }

    /// Whether no work is left, and every further call gets a fixed answer.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Released(_) | State::HandedOver | State::Ended) && self.removals.is_empty()
    }

    /// Whether the lock was released without a loss, and its holder knows the outcome. Further calls change nothing then.
    pub(crate) fn is_released(&self) -> bool {
        self.state.is_released()
    }

    /// Whether the lock is held at `now`, and if not why.
    ///
    /// # Errors
    /// `LOCK_LOST`, or `NOT_HELD` after a release or a hand-over.
    pub fn check(&self, now: Tick) -> Result<(), Error> {
        match &self.state {
            State::Held(hold) if now < hold.validity_end => Ok(()),
            State::Held(hold) => Err(Error::lost(self.recipe.name(), hold.expiry_at(&self.recipe, now))),
            state => Err(state.why_not_held(&self.recipe, now)),
        }
    }

    /// Takes one input, and appends the commands for the shell.
    pub fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Command>) {
        let recipe = Arc::clone(&self.recipe);
        self.adjust_for_pause(&recipe, now.tick, out);
        match input {
            Input::FailedOver(_) if !self.state.suspect(now.tick) => (),
            Input::Start | Input::Wake | Input::FailedOver(_) => self.wake(&recipe, now, out),
            Input::Answer { server, tag, answer } => self.answer(&recipe, (server, tag), answer, now.tick, out),
            Input::Hint(server, hint) => {
                self.update(&recipe, now, out, |acquiring, context| acquiring.hint((server, hint), now.tick, context))
            }
            Input::Listens(server) => self.update(&recipe, now, out, |acquiring, _| acquiring.listens(server, now.tick)),
            Input::Role(role, at) => {
                self.update(&recipe, now, out, |acquiring, context| acquiring.take_role(role, at, now.tick, context))
            }
            Input::Granted(grant, fence) => self.begin(&recipe, &grant, fence, now.tick, out),
            Input::Cancel => self.cancel(&recipe, false, now.tick, out),
            Input::Extend(call, amount) => self.extend(&recipe, call, amount, now, out),
            Input::Release(call, manner) => self.release(&recipe, (call, manner), None, now.tick, out),
            Input::EndAttempt(call, ending) => {
                self.release(&recipe, (call, Manner::EndOfAttempt), Some(ending), now.tick, out);
            }
            Input::HandOver(call) => self.hand_over(&recipe, call, now.tick, out),
            Input::StopRenewing => self.state.stop_renewing(),
            Input::Abandon => self.abandon(&recipe, now.tick, out),
            Input::Close => self.close(&recipe, now.tick, out),
        }
        self.conclude(&recipe, now.tick, out);
        self.removals.retain(|removal| !removal.is_over());
    }

    /// Moves all timeouts by the time in which the process did not run, which shows by a late alarm. The end of validity stays.
    fn adjust_for_pause(&mut self, recipe: &Recipe, now: Tick, out: &mut Vec<Command>) {
        let ran = std::mem::replace(&mut self.ran, now);
        let late = |due: Tick| now.since(due.max(ran));
        // Removals of earlier rounds don't count: with much to remove, a machine that is always late would never end.
        match &mut self.state {
            State::Acquiring(acquiring) => acquiring.runs(recipe, late(acquiring.wake_at(recipe)), now, out),
            State::Held(hold) => hold.extend_for_pause(late(hold.wake_at())),
            State::Releasing(releasing) => releasing.extend_for_pause(&self.removals, late),
            _ => (),
        }
    }

    fn wake(&mut self, recipe: &Recipe, now: Now, out: &mut Vec<Command>) {
        // A slot that no waiter uses any more is never used again. An acquire without an answer so far may still put it into a
        // queue.
        let unused = self.slot.as_ref().filter(|slot| !slot.is_used() && !mutant!(UnusedPlaceKept));
        for removal in &mut self.removals {
            unused.into_iter().for_each(|slot| removal.take_along(slot.entry(), now.tick));
            removal.wake(recipe, now.tick, out);
        }
        match &mut self.state {
            State::Acquiring(acquiring) => {
                let mut context = Context { recipe, rng: &mut self.rng, removals: &mut self.removals, out };
                let decision = acquiring.wake(now, &mut self.rounds, &mut context);
                self.decide(recipe, decision, now.tick, out);
            }
            State::Held(hold) => {
                let loss = hold.wake(recipe, now.tick, &mut self.rounds, out);
                self.lose(recipe, loss, now.tick, out);
            }
            State::Releasing(releasing) => {
                let gives_up = releasing.caller.is_some_and(|caller| now.tick >= caller.gives_up);
                if gives_up && releasing.is_looking() {
                    releasing.looked(recipe, None);
                } else if let Some(caller) = releasing.caller.take_if(|_| gives_up) {
                    releasing.stop_waiting(recipe, caller, &self.removals, out);
                }
            }
            _ => (),
        }
    }

    fn answer(&mut self, recipe: &Recipe, (server, tag): (usize, Tag), answer: Answer, now: Tick, out: &mut Vec<Command>) {
        self.track_queue_place(recipe, (server, tag), &answer, now, out);
        // Holds beside others show a period in place of a fence.
        if !recipe.keys.kind().is_shared() {
            self.witness.receive(server, tag.step, &answer, self.state.owner());
        }
        if let Ok(Reply { other_limit: theirs @ 1.., .. }) = &answer {
            out.push(Command::OtherLimit(*theirs));
        }
        let ballot = matches!(tag.step, Step::Acquire | Step::Confirm);
        match &mut self.state {
            _ if tag.step == Step::Release => {
                if let Ok(Reply { queued: Queued::NotNotified(why), .. }) = &answer {
                    out.push(Command::NotNotified(why.clone()));
                }
                if let Some(removal) = self.removals.iter_mut().find(|removal| removal.value.round == tag.round) {
                    removal.answer((server, tag.sent), now, &answer);
                }
            }
            State::Releasing(releasing) if tag.step == Step::Look => releasing.looked(recipe, Some(&answer)),
            _ if tag.step == Step::Look => (),
            State::Acquiring(acquiring) if ballot && acquiring.is_in(tag.round) => {
                let mut context = Context { recipe, rng: &mut self.rng, removals: &mut self.removals, out };
                let decision = acquiring.answer((server, tag), answer, now, &mut context);
                self.decide(recipe, decision, now, out);
            }
            State::Held(hold) if tag.step == Step::Extend => {
                out.extend(Jump::shown((server, tag), &answer, &hold.round.readings, now).map(Command::Jumped));
                let loss = hold.answer(recipe, (server, tag), answer, now, out);
                // The round that an extend request waited for has ended: send the request now.
                let loss = loss.or_else(|| hold.wake(recipe, now, &mut self.rounds, out));
                self.lose(recipe, loss, now, out);
            }
            State::Held(hold) if tag.round == hold.round_number() => {
                let loss = hold.late_vote(recipe, (server, tag.step), &answer, now, out);
                self.lose(recipe, loss, now, out);
            }
            State::Lost(hold, _) if tag.round == hold.round_number() => hold.forget_vote((server, tag.step), &answer, now),
            _ => self.straggler(recipe, (server, tag), &answer, now, out),
        }
    }

    /// Acts on a decision of the acquire loop.
    fn decide(&mut self, recipe: &Recipe, decision: Decision, now: Tick, out: &mut Vec<Command>) {
        let State::Acquiring(acquiring) = &self.state else { return };
        match decision {
            Decision::Pending => (),
            Decision::Granted(round, _) if recipe.keys.kind() == Kind::Several => {
                let (waited, notified_at) = (now.since(acquiring.started), acquiring.notified_at());
                let grant = round.grant_of_several(waited, notified_at, acquiring.met_busy);
                self.state = State::Ended;
                out.push(Command::Acquired(Ok(Answered::Several(grant))));
            }
            Decision::Granted(round, fence) => {
                let waited = (now.since(acquiring.started), acquiring.notified_at(), acquiring.met_busy);
                self.granted(recipe, round, fence, waited, now, out);
            }
            Decision::Ended(result) => {
                let waited = now.since(acquiring.started);
                let event = match &result {
                    Err(error) => Some(ending::failed(recipe, error, waited)),
                    Ok(Some(end)) => Some(ending::over(recipe, end, waited)),
                    Ok(None) => None,
                };
                out.extend(event.map(Command::emit));
                self.state = State::Ended;
                out.push(Command::Acquired(result.map(|end| end.map_or(Answered::Busy, Answered::Over))));
            }
        }
    }

    /// Begins the hold of one of several locks; or gives the lock back, if the client was closed meanwhile.
    fn begin(&mut self, recipe: &Recipe, grant: &GrantOfSeveral, fence: u64, now: Tick, out: &mut Vec<Command>) {
        let mut round = Round::of_part(recipe, grant, fence);
        self.rounds = round.number;
        let State::Acquiring(acquiring) = &self.state else { return round.undo(recipe, now, None, &mut self.removals, out) };
        round.suspected_at = round.suspected_at.or(acquiring.suspected_at);
        self.granted(recipe, round, fence, (grant.waited, grant.notified_at, grant.met_busy), now, out);
    }

    /// The lock is held, after this wait, a hint at this time, and whether it was busy before.
    fn granted(
        &mut self,
        recipe: &Recipe,
        round: Round,
        fence: u64,
        (waited, notified_at, met_busy): (Duration, Option<Tick>, bool),
        now: Tick,
        out: &mut Vec<Command>,
    ) {
        let mut hold = Hold::begin(recipe, round, fence, now, out);
        hold.met_busy = met_busy;
        out.extend(ending::unfinished(recipe, &hold).map(Box::new).map(Command::EmitOfAnother));
        let notified_ago = notified_at.map(|at| now.since(at));
        out.push(Command::emit(LockEvent { took: Some(waited), notified_ago, ..hold.event(recipe, EventKind::Acquired) }));
        out.extend(ending::other_terms(recipe, &hold).map(Command::emit));
        let grant = Grant { owner: Arc::clone(hold.owner()), fence, attempt: hold.round.attempt };
        out.push(Command::Acquired(Ok(Answered::Granted(grant))));
        self.state = State::Held(hold);
    }

    /// Undoes the round under way: the caller of the acquire has left, or the client closes. No caller waits for that.
    fn cancel(&mut self, recipe: &Recipe, closed: bool, now: Tick, out: &mut Vec<Command>) {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Acquiring(mut acquiring) => {
                let mut context = Context { recipe, rng: &mut self.rng, removals: &mut self.removals, out };
                acquiring.abandon(now, &mut context);
                out.push(Command::emit(ending::cancelled(recipe, closed, now.since(acquiring.started))));
            }
            other => self.state = other,
        }
    }

    /// Gives an input to the acquire loop, which may lead to a try.
    fn update(&mut self, recipe: &Recipe, now: Now, out: &mut Vec<Command>, act: impl FnOnce(&mut Acquiring, &mut Context<'_>)) {
        if let State::Acquiring(acquiring) = &mut self.state {
            let mut context = Context { recipe, rng: &mut self.rng, removals: &mut self.removals, out };
            act(acquiring, &mut context);
            self.wake(recipe, now, out);
        }
    }

    fn lose(&mut self, recipe: &Recipe, loss: Option<Loss>, now: Tick, out: &mut Vec<Command>) {
        let Some(loss) = loss else { return };
        let mut hold = match std::mem::replace(&mut self.state, State::Ended) {
            State::Held(hold) => hold,
            other => return self.state = other,
        };
        let loss = hold.attribute(loss, &self.witness);
        let mut event = hold.event(recipe, EventKind::Lost);
        (event.took, event.overrun) = (Some(now.since(hold.granted)), Some(loss.overrun));
        event.reason = Some(loss.reason);
        event.next_owner.clone_from(&loss.next_owner);
        (event.next_fence, event.message) = (loss.next_fence, loss.finding());
        out.push(Command::emit(event));
        hold.stop(|| Error::lost(recipe.name(), loss.clone()), out);
        out.push(Command::Lost(loss.clone()));
        let note = hold.last_note(recipe, HoldState::Lost, now).filter(|_| loss.reason != LossReason::Closed);
        out.extend(note.map(Command::Log));
        self.state = State::Lost(hold, loss);
    }

    /// Notices the end of validity before any other use of the hold.
    fn check_validity(&mut self, recipe: &Recipe, now: Tick, out: &mut Vec<Command>) {
        let mut rounds = self.rounds;
        if let State::Held(hold) = &mut self.state
            && now >= hold.validity_end
        {
            let loss = hold.wake(recipe, now, &mut rounds, out);
            self.lose(recipe, loss, now, out);
        }
    }

    fn extend(&mut self, recipe: &Recipe, call: CallId, amount: Amount, now: Now, out: &mut Vec<Command>) {
        self.check_validity(recipe, now.tick, out);
        let refused = match &mut self.state {
            State::Held(hold) => hold.extend(recipe, call, amount, now.tick).err(),
            state => Some(state.why_not_held(recipe, now.tick)),
        };
        match refused {
            Some(error) => out.push(Command::Extended(call, Err(error))),
            None => self.wake(recipe, now, out),
        }
    }

    fn hand_over(&mut self, recipe: &Recipe, call: CallId, now: Tick, out: &mut Vec<Command>) {
        self.check_validity(recipe, now, out);
        let State::Held(hold) = &mut self.state else {
            return out.push(Command::HandedOver(call, Err(self.state.why_not_held(recipe, now))));
        };
        let text = ticket(recipe, hold, now);
        let took = Some(now.since(hold.granted));
        out.push(Command::emit(LockEvent { took, ..hold.event(recipe, EventKind::HandedOver) }));
        hold.stop(|| State::HandedOver.why_not_held(recipe, now), out);
        self.state = State::HandedOver;
        out.push(Command::HandedOver(call, Ok(text)));
    }

    fn abandon(&mut self, recipe: &Recipe, now: Tick, out: &mut Vec<Command>) {
        if let State::Held(hold) = &mut self.state {
            out.push(Command::emit(ending::dropped(recipe, hold, now)));
            hold.stop(|| Error::not_held(recipe.name(), "its handle was dropped"), out);
        }
        if matches!(self.state, State::Held(_) | State::Lost(..)) {
            self.state = State::Ended;
        }
    }

    fn close(&mut self, recipe: &Recipe, now: Tick, out: &mut Vec<Command>) {
        if matches!(self.state, State::Acquiring(_)) {
            self.cancel(recipe, true, now, out);
            out.push(Command::Acquired(Err(Error::closed(Some(recipe.name())))));
        }
        self.check_validity(recipe, now, out);
        self.lose(recipe, Some(Loss::new(LossReason::Closed, Duration::ZERO)), now, out);
        self.leave(recipe, (None, Manner::Background), None, now, out);
    }
}
