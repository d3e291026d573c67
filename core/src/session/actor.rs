//! Actor: the shell around one acquisition, which executes the commands of the state machine.
//!
//! Any thread may send an input. If no other thread handles inputs at the moment, the sender handles all that have arrived; else
//! it leaves its input in the inbox. So inputs are handled one at a time and commands are executed in order. No lock of this
//! process is held while a server, an event sink or a caller is called.

mod aside;
mod entries;
mod measured;
mod panicked;
mod place;
mod scratch;
mod self_wait;
mod several;
pub(crate) mod spans;
mod watchers;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use self::measured::Measured;
use self::spans::Spans;
use crate::clock::Tick;
use crate::error::{Error, Loss, LossReason};
use crate::event::callback::caught;
use crate::event::{EventKind, LockEvent};
use crate::io::reactor::Io;
use crate::io::timers::Alarm;
use crate::metrics::reading::Present;
use crate::protocol::{AcquirePath, Answered, CallId, Command, Input, Recipe};
use crate::server::{Completion, Receives};
use crate::session::Session;
use crate::session::asks::Asks;
use crate::session::caller::Caller;
use crate::session::trace::trace_next;
use crate::sync::Mutex;

/// An acquisition with its callers.
pub(crate) struct LockActor {
    pub(crate) session: Arc<Session>,
    pub(crate) recipe: Arc<Recipe>,
    id: u64,
    context: Option<u64>,
    state: Mutex<ActorState>,
    /// The end of validity, microseconds of the boot clock: read without a lock.
    valid_until: AtomicU64,
    /// Whether the lock was released without a loss.
    is_released: AtomicBool,
    /// Whether the holder knows that the lock is not held: from an error, a watcher or an answer.
    pub(crate) holder_knows: AtomicBool,
    /// Whether the warning about a loss that the holder never learnt of was emitted.
    unseen: AtomicBool,
    /// Whether the warning about an acquire of the same client that waits for this hold was emitted.
    waited_for: AtomicBool,
    measured: Measured,
    spans: Spans,
    trace: u64,
}

struct ActorState {
    machine: AcquirePath,
    /// Its mark at the session, as long as its request on the fast path has no answer.
    asks: Option<Asks>,
    inbox: VecDeque<Input>,
    busy: bool,
    /// Whether the machine panicked.
    failed: bool,
    /// The time of the earliest alarm that is set.
    alarm: Tick,
    next_call: CallId,
    acquirer: Option<Acquirer>,
    callers: SmallVec<[(CallId, Caller); 1]>,
    loss: Option<Loss>,
    /// The acquisitions that go on with the locks of this one.
    parts: Vec<Weak<LockActor>>,
    /// The tasks with a body under this hold.
    bodies: Vec<u64>,
    watchers: HashMap<u64, Watcher>,
    next_watcher: u64,
}

/// The caller of an acquire. It gets the actor with the answer, also one that nobody waits for any more.
pub(crate) type Acquirer = Box<dyn FnOnce(Result<(Arc<LockActor>, Answered), Error>) + Send>;

/// A callback for the end of the hold. It is called once, with the loss, or with `None` if the hold ended without one.
pub(crate) type Watcher = Box<dyn FnOnce(Option<Loss>) + Send>;

impl LockActor {
    /// Starts an acquisition. `context` identifies the task, for the warning about a task that waits for itself.
    pub(crate) fn begin(
        session: Arc<Session>,
        recipe: Arc<Recipe>,
        context: Option<u64>,
        acquirer: Acquirer,
        io: &Io,
    ) -> Arc<Self> {
        let id = session.next_id();
        let asks = session.may_ask_first(&recipe, id);
        let is_fast = asks.is_some();
        let actor = Self::new(Arc::clone(&session), Arc::clone(&recipe), (id, context), (acquirer, asks));
        if recipe.waits_in_queues() && !is_fast {
            session.join_queue(&recipe.queue_key(), id, recipe.mode(), &actor);
        } else {
            session.registry.insert(id, &actor);
        }
        actor.send(Input::Start, io);
        // The acquisition may have begun while the client was closing, too late to get the `Close` of the others.
        if actor.session.is_closing() {
            actor.send(Input::Close, io);
        }
        actor
    }

    fn new(
        session: Arc<Session>,
        recipe: Arc<Recipe>,
        (id, context): (u64, Option<u64>),
        caller: (Acquirer, Option<Asks>),
    ) -> Arc<Self> {
        let now = session.now();
        let measured = Measured::begin(session.meters.of(recipe.keys.label()), now.tick);
        let (trace, spans) = (trace_next(0), Spans::begin(|| LockEvent::of(EventKind::Round, &recipe.keys)));
        Arc::new(Self::made(session, recipe, (id, context), (measured, trace, spans), caller))
    }

    fn made(
        session: Arc<Session>,
        recipe: Arc<Recipe>,
        (id, context): (u64, Option<u64>),
        (measured, trace, spans): (Measured, u64, Spans),
        (acquirer, asks): (Acquirer, Option<Asks>),
    ) -> Self {
        let (now, seed, ours) = (session.now(), fastrand::u64(..), Arc::clone(&recipe));
        let machine = if asks.is_some() { AcquirePath::fast(ours, seed, now) } else { AcquirePath::full(ours, seed, now) };
        let state = ActorState {
            machine,
            asks,
            inbox: VecDeque::new(),
            busy: false,
            failed: false,
            alarm: Tick::NEVER,
            next_call: 0,
            acquirer: Some(acquirer),
            callers: SmallVec::new(),
            loss: None,
            parts: Vec::new(),
            bodies: Vec::new(),
            watchers: HashMap::new(),
            next_watcher: 0,
        };
        Self {
            session,
            recipe,
            id,
            context,
            state: Mutex::new(state),
            valid_until: AtomicU64::new(0),
            is_released: AtomicBool::new(false),
            holder_knows: AtomicBool::new(false),
            unseen: AtomicBool::new(false),
            waited_for: AtomicBool::new(false),
            measured,
            spans,
            trace,
        }
    }

    pub(crate) fn valid_until(&self) -> Tick {
        Tick::from_micros(self.valid_until.load(Ordering::Acquire))
    }

    /// Whether the lock is held now, and if not why.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let state = self.state.lock();
        if state.failed { Err(self.panicked()) } else { state.machine.check(Tick::now()) }
    }

    /// Whether the lock was released without a loss, and its holder knows that. Further calls change nothing then.
    pub(crate) fn is_released(&self) -> bool {
        self.is_released.load(Ordering::Acquire)
    }

    /// The time of the next alarm; `None` while an input is being handled.
    #[cfg(feature = "testing")]
    pub(crate) fn wakes_at(&self) -> Option<Tick> {
        let state = self.state.lock();
        let at_work = state.busy && !state.failed || !state.inbox.is_empty();
        (!at_work).then_some(state.alarm)
    }

    /// Adds what this acquisition is at `now` to that of others with the same label.
    pub(crate) fn add_to(&self, present: &mut Present, now: Tick) {
        self.measured.add_to(present, self.valid_until(), self.recipe.options.max_hold, now);
    }

    /// Notes that the holder knows that the lock is not held.
    pub(crate) fn note_holder_knows(&self) {
        self.holder_knows.store(true, Ordering::Relaxed);
    }

    /// Warns if a lock is given back after a loss that its holder never learnt of: the work continued without the lock.
    pub(crate) fn notice_unseen_loss(&self) {
        if self.holder_knows.load(Ordering::Relaxed) {
            return;
        }
        let Err(error) = self.check() else { return };
        // A user closes a client on purpose. One warning is enough.
        let by_itself = error.loss().filter(|loss| loss.reason != LossReason::Closed);
        let Some(loss) = by_itself.filter(|_| !self.unseen.swap(true, Ordering::Relaxed)) else { return };
        let mut warning = LockEvent::of(EventKind::Warning, &self.recipe.keys);
        (warning.reason, warning.next_owner) = (Some(loss.reason), loss.next_owner.clone());
        let name = self.recipe.name();
        warning.message =
            Some(format!("lock {name:?} was lost before its work ended, and the work never asked whether it still had the lock"));
        self.session.emit(&warning);
    }

    /// Notes a body of `task`, until the hold is over.
    pub(crate) fn enter(self: &Arc<Self>, task: u64, owner: &Arc<str>, (place, number): (Option<&str>, u64)) {
        self.session.bodies.open((task, self.recipe.keys.lock()), self, owner, (place, number));
        let mut state = self.state.lock();
        state.bodies.push(task);
        let over = state.machine.is_finished();
        drop(state);
        if over {
            self.forget_bodies();
        }
    }

    /// Forgets the bodies of a hold that is over.
    pub(crate) fn forget_bodies(self: &Arc<Self>) {
        let bodies = std::mem::take(&mut self.state.lock().bodies);
        bodies.into_iter().for_each(|task| self.session.bodies.close(task, self.recipe.keys.lock(), self));
    }

    /// Sends a holder's call.
    pub(crate) fn call(self: &Arc<Self>, caller: Caller, input: impl FnOnce(CallId) -> Input) {
        if !matches!(caller, Caller::Extend(_)) {
            // From here on the holder's task may wait for the lock, even while another thread still handles the inbox.
            self.forget_bodies();
        }
        let io = caller.io().clone();
        let mut state = self.state.lock();
        state.next_call += 1;
        let call = state.next_call;
        state.callers.push((call, caller));
        drop(state);
        self.send(input(call), &io);
    }

    /// Sends an input. Handles the inbox, unless another thread does; `io` does the I/O of all that is handled here.
    pub(crate) fn send(self: &Arc<Self>, input: Input, io: &Io) {
        let mut state = self.state.lock();
        if state.failed {
            return self.refuse(state);
        }
        if state.busy {
            return state.inbox.push_back(input);
        }
        state.busy = true;
        let mut commands = scratch::take();
        let mut next = Some(input);
        while let Some(input) = next.take().or_else(|| state.inbox.pop_front()) {
            if let (Input::FailedOver(server), false) = (&input, state.parts.is_empty()) {
                let (server, parts) = (*server, state.parts.clone());
                drop(state);
                parts.iter().filter_map(Weak::upgrade).for_each(|part| part.send(Input::FailedOver(server), io));
                state = self.state.lock();
            }
            if let Err(panic) = caught(|| self.handle(&mut state, input, &mut commands)) {
                // `busy` stays set: the machine must not be used again.
                return self.fail(state, &panic);
            }
            self.valid_until.store(state.machine.valid_until().as_micros(), Ordering::Release);
            self.is_released.store(state.machine.is_released(), Ordering::Release);
            if commands.is_empty() {
                continue;
            }
            drop(state);
            let executed = caught(|| commands.drain(..).for_each(|command| self.execute(command, io)));
            state = self.state.lock();
            if let Err(panic) = executed {
                return self.fail(state, &panic);
            }
        }
        scratch::give_back(commands);
        state.busy = false;
        let (wake_at, finished) = (state.machine.wake_at(), state.machine.is_finished());
        // The alarm is moved while the state is locked. Else a thread might cancel what another one has just set.
        if finished || wake_at < state.alarm {
            self.session.runtime().cancel_alarm(state.alarm, self.id);
            state.alarm = Tick::NEVER;
        }
        if wake_at < state.alarm {
            state.alarm = wake_at;
            let alarm: Weak<dyn Alarm> = Arc::downgrade(self) as Weak<dyn Alarm>;
            self.session.runtime().set_alarm(wake_at, self.id, alarm);
        }
        drop(state);
        if finished {
            self.session.remove(self.id);
            self.call_watchers(None);
        }
    }

    fn execute(self: &Arc<Self>, command: Command, io: &Io) {
        match command {
            Command::Send { server, tag, request } => {
                let receiver: Arc<dyn Receives> = Arc::clone(self) as _;
                self.session.server(server).submit(request.by(io), Completion::of(receiver, server, tag));
            }
            Command::Log(note) => self.session.log(note),
            Command::Look { tag, since_ms, failed_over } => {
                let actor = Arc::clone(self);
                let asked = move |answer| actor.send(Input::Answer { server: 0, tag, answer }, &Io::Background);
                self.session.look_back(since_ms, failed_over, Box::new(asked));
            }
            Command::KeepWarm => self.session.keep_warm(),
            Command::Listen => self.session.listen(&self.recipe),
            Command::NotNotified(why) => self.session.warn_unpublished(&self.recipe.keys, &why),
            Command::OtherLimit(theirs) => self.session.warn_of_other_limit(&self.recipe.keys, theirs),
            Command::WaitsLong { since } => self.notice_own_hold(since),
            Command::Jumped(jump) => self.session.warn_of_jump(&jump),
            Command::Yield => self.session.let_others_try(&self.recipe.queue_key(), self.id, io),
            Command::Quit(reason) => self.session.leave_queue(&self.recipe, self.id, reason, io),
            Command::Emit(mut event) => self.emit(&mut event),
            Command::EmitPlain(event) => self.emit(&mut event.of(&self.recipe.keys)),
            Command::EmitOfAnother(event) => self.emit_of_another(&event),
            Command::Acquired(result) => self.acquired(result),
            Command::Extended(call, result) => {
                if let Some(Caller::Extend(responder)) = self.take_caller(call) {
                    if result.as_ref().is_err_and(|error| error.loss().is_some()) {
                        self.note_holder_knows();
                    }
                    responder.respond(result);
                }
            }
            Command::Released(call, result) => match self.take_caller(call) {
                Some(Caller::Release(responder)) => responder.respond(result),
                Some(Caller::EndOfBody(responder) | Caller::EndOfAttempt(responder)) => responder.respond(result.map(|_| ())),
                _ => (),
            },
            Command::HandedOver(call, result) => {
                if let Some(Caller::HandOver(responder)) = self.take_caller(call) {
                    responder.respond(result);
                }
            }
            Command::Lost(loss) => {
                self.state.lock().loss = Some(loss.clone());
                self.call_watchers(Some(&loss));
            }
        }
    }

    fn take_caller(&self, call: CallId) -> Option<Caller> {
        let callers = &mut self.state.lock().callers;
        let at = callers.iter().position(|(of, _)| *of == call)?;
        Some(callers.swap_remove(at).1)
    }

    fn acquired(self: &Arc<Self>, result: Result<Answered, Error>) {
        let acquirer = self.state.lock().acquirer.take();
        if let Ok(Answered::Granted(_) | Answered::Several(_)) = &result {
            self.session.start_keep_warm();
            if self.recipe.ask_all_first {
                self.session.all_have_answered();
            }
        }
        if let Some(acquirer) = acquirer {
            // The protocol knows a cluster as one server.
            let result = result.map_err(|error| error.of_silent_node(|| self.session.server(0).node_of(&self.recipe.keys)));
            acquirer(result.map(|answered| (Arc::clone(self), answered)));
        }
    }
}

#[cfg(test)]
#[path = "actor_tests.rs"]
mod tests;
