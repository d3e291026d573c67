//! The fast path: a lock that is free when a program asks for it, and released soon. Most locks are.
//!
//! It has no rules of its own. It knows four inputs: the acquire begins, the server grants the lock, the holder releases it, and the
//! server has done that. It keeps them in mind, and gives the commands that an [`Acquisition`] would give. With any other input, and soon
//! in any case, it makes the acquisition from them: that takes the inputs so far at the times at which they came, and goes on. What
//! it would have sent for them is sent already. A test compares the two, input for input.
//!
//! The first request has no place in the lock's queue, and is done only if the lock is free. If it isn't, nothing was done, and the
//! acquisition sends the request again, with a place.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Now, Tick};
use crate::error::{Error, Loss, LossReason};
use crate::event::EventKind;
use crate::mutant::mutant;
use crate::op::holder::with_fence;
use crate::op::{Queued, Reply, Verb, Verdict};
use crate::options::wire_millis;
use crate::protocol::hold::KEEP_WARM_DIVISOR;
use crate::protocol::{
    Acquisition, Answered, CallId, Command, Grant, Input, Manner, PlainEvent, Recipe, Release, Step, Tag, release,
};
use crate::server::Request;
use crate::validity;
use crate::wait::Waiter;

/// The longest time on the fast path: what lasts longer is renewed, noted, and measured.
const LONGEST: Duration = Duration::from_millis(500);

/// The number of the only round.
const ROUND: u32 = 1;

/// One acquisition: on the fast path, or as the whole state machine.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "it is moved once, and the fast path is the usual one")]
pub enum AcquirePath {
    /// On the fast path.
    Fast(FastPath),
    /// The state machine.
    Full(Box<Acquisition>),
}

/// An acquisition of which only the usual is known so far.
#[derive(Debug)]
pub struct FastPath {
    recipe: Arc<Recipe>,
    seed: u64,
    began: Now,
    /// The owner value, once the acquire has begun.
    owner: Option<Arc<str>>,
    /// The place in the local queue, for the state machine.
    waiter: Option<Waiter>,
    /// When another node began to answer for the server, before the server has answered.
    failed_over: Option<Tick>,
    /// Whether it was woken at the end of its time, without an answer.
    is_woken: bool,
    /// The vote, and the time of it.
    grant: Option<(Reply, Tick)>,
    /// The release under way, and the time of its request.
    release: Option<(CallId, Manner, Tick)>,
    /// The time at which the server had the lock back.
    ended: Option<Tick>,
}

impl AcquirePath {
    /// An acquisition by `recipe`, on the fast path. `seed` as for [`Acquisition::new`].
    #[must_use]
    pub fn fast(recipe: Arc<Recipe>, seed: u64, now: Now) -> Self {
        let (owner, waiter, failed_over, grant, release, ended) = (None, None, None, None, None, None);
        Self::Fast(FastPath { recipe, seed, began: now, owner, waiter, failed_over, is_woken: false, grant, release, ended })
    }

    /// The whole state machine. `seed` as for [`Acquisition::new`].
    #[must_use]
    pub fn full(recipe: Arc<Recipe>, seed: u64, now: Now) -> Self {
        Self::Full(Box::new(Acquisition::new(recipe, None, seed, now)))
    }

    /// Whether it needs a place in its local queue before it takes this input.
    #[must_use]
    pub fn needs_place(&self, now: Tick, input: &Input) -> bool {
        match self {
            Self::Fast(path) => path.needs_place(now, input),
            Self::Full(_) => false,
        }
    }

    /// Whether it may take a place in its local queue, so that others of this process that want the lock can wait behind it.
    #[must_use]
    pub fn may_take_place(&self) -> bool {
        matches!(self, Self::Fast(path) if path.may_take_place())
    }

    /// Gives it a place in its local queue.
    pub fn take_place(&mut self, waiter: Waiter) {
        match self {
            // Its request is under way, whatever the others of the queue do.
            Self::Fast(path) => path.waiter = Some(waiter.may_try()),
            Self::Full(machine) => machine.take_place(waiter),
        }
    }

    /// Whether its request on the fast path has no answer.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        matches!(self, Self::Fast(path) if path.is_asking())
    }

    /// As [`Acquisition::valid_until`].
    #[must_use]
    pub fn valid_until(&self) -> Tick {
        match self {
            Self::Fast(path) => path.valid_until(),
            Self::Full(machine) => machine.valid_until(),
        }
    }

    /// As [`Acquisition::wake_at`].
    #[must_use]
    pub fn wake_at(&self) -> Tick {
        match self {
            Self::Fast(path) => path.wake_at(),
            Self::Full(machine) => machine.wake_at(),
        }
    }

    /// The value of the hold, its fence, and the time of its grant, while the lock is held.
    pub(crate) fn hold(&self) -> Option<(&Arc<str>, u64, Tick)> {
        match self {
            Self::Fast(path) => path.hold(),
            Self::Full(machine) => machine.hold(),
        }
    }

    /// As [`Acquisition::is_finished`].
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match self {
            Self::Fast(path) => path.ended.is_some(),
            Self::Full(machine) => machine.is_finished(),
        }
    }

    /// Whether the lock was released without a loss, and its holder knows the outcome. Further calls change nothing then.
    pub(crate) fn is_released(&self) -> bool {
        match self {
            Self::Fast(path) => path.ended.is_some(),
            Self::Full(machine) => machine.is_released(),
        }
    }

    /// As [`Acquisition::check`].
    ///
    /// # Errors
    /// As [`Acquisition::check`].
    pub fn check(&self, now: Tick) -> Result<(), Error> {
        match self {
            Self::Fast(path) => path.check(now),
            Self::Full(machine) => machine.check(now),
        }
    }

    /// Takes one input, and appends the commands for the shell.
    pub fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Command>) {
        match self {
            Self::Full(machine) => machine.handle(now, input, out),
            Self::Fast(_) if mutant!(FastAcquireKept) && matches!(input, Input::Cancel) => (),
            Self::Fast(_) if mutant!(FastHoldNotConfirmed) && matches!(input, Input::FailedOver(_)) => (),
            Self::Fast(_) if mutant!(FastHoldNotClosed) && matches!(input, Input::Close) => (),
            Self::Fast(path) if path.knows(now.tick, &input) => path.handle(now, input, out),
            Self::Fast(path) => {
                let sent_again = path.was_refused(&input);
                let mut machine = Box::new(path.replayed(sent_again, now, out));
                if !sent_again {
                    machine.handle(now, input, out);
                }
                *self = Self::Full(machine);
            }
        }
    }
}

impl FastPath {
    fn is_asking(&self) -> bool {
        self.owner.is_some() && self.grant.is_none()
    }

    /// Whether it asks, and has neither a queue to leave nor a failover to confirm.
    fn asks_undisturbed(&self) -> bool {
        self.is_asking() && self.waiter.is_none() && self.failed_over.is_none()
    }

    /// The end of the time in which the server has to answer.
    fn times_out(&self) -> Tick {
        self.began.tick.after(self.recipe.response_timeout)
    }

    /// The end of the time on the fast path.
    fn ends(&self) -> Tick {
        let (keep_warm_after, timeout) = (self.recipe.first_ttl() / KEEP_WARM_DIVISOR, self.recipe.response_timeout);
        self.began.tick.after(keep_warm_after.min(timeout).min(LONGEST))
    }

    /// Whether this input is one of the usual ones, in time.
    fn knows(&self, now: Tick, input: &Input) -> bool {
        match input {
            Input::Start => self.owner.is_none(),
            // The answer may be a refusal that names no holder: the state machine must not get it.
            Input::Wake => self.is_asking() && now < self.times_out(),
            Input::FailedOver(_) => self.is_asking(),
            _ if now >= self.ends() => false,
            Input::Answer { tag, answer: Ok(reply), .. } => match tag.step {
                // With a place in the local queue it has to leave that.
                Step::Acquire => self.asks_undisturbed() && reply.verdict == Verdict::Vote && is_plain(reply),
                Step::Release => {
                    let is_asked = self.release.is_some() && self.ended.is_none();
                    is_asked && reply.verdict == Verdict::Ok && is_plain(reply)
                }
                _ => false,
            },
            // Where no caller waits, one request has to do all that there is to do.
            Input::Release(_, Manner::Explicit | Manner::EndOfBody) => self.grant.is_some() && self.release.is_none(),
            _ => false,
        }
    }

    /// Whether this is the answer that the lock isn't free, and more is wanted than that. The request has done nothing then. A script has named
    /// the holder, and who doesn't wait wants no more.
    fn was_refused(&self, input: &Input) -> bool {
        let Input::Answer { tag, answer: Ok(reply), .. } = input else { return false };
        let wants_more = self.recipe.waits_in_queues() || !self.recipe.keys.kind().is_shared();
        wants_more && self.is_asking() && tag.step == Step::Acquire && matches!(reply.verdict, Verdict::Held { .. })
    }

    fn may_take_place(&self) -> bool {
        self.grant.is_none() && self.waiter.is_none() && self.recipe.waits_in_queues()
    }

    fn needs_place(&self, now: Tick, input: &Input) -> bool {
        self.is_asking() && self.may_take_place() && !self.knows(now, input)
    }

    fn valid_until(&self) -> Tick {
        let is_held = self.grant.is_some() && self.release.is_none();
        if is_held { validity::end(self.began.tick, self.recipe.first_ttl()) } else { Tick::default() }
    }

    fn wake_at(&self) -> Tick {
        match self.release {
            _ if self.owner.is_none() || self.ended.is_some() => Tick::NEVER,
            _ if self.is_asking() && self.is_woken => self.times_out(),
            // While it asks and while it holds it is the same time, so that the alarm is set once.
            None => self.ends(),
            // The caller of the release gives up.
            Some((_, _, sent)) => self.ends().min(sent.after(self.recipe.unavailable_after)),
        }
    }

    fn hold(&self) -> Option<(&Arc<str>, u64, Tick)> {
        let (reply, granted) = self.grant.as_ref().filter(|_| self.release.is_none())?;
        Some((self.owner.as_ref()?, reply.fence, *granted))
    }

    fn check(&self, now: Tick) -> Result<(), Error> {
        let name = self.recipe.name();
        match self.hold() {
            Some(_) if now < self.valid_until() => Ok(()),
            Some(_) => Err(Error::lost(name, Loss::new(LossReason::Expired, now.since(self.valid_until())))),
            None if self.release.is_some() && self.ended.is_none() => Err(Error::not_held(name, "it is being released")),
            None => Err(Error::released(name)),
        }
    }

    /// Takes an input that it knows.
    fn handle(&mut self, now: Now, input: Input, out: &mut Vec<Command>) {
        match input {
            Input::Start => self.begin(now, out),
            Input::Wake => self.is_woken = now.tick >= self.ends(),
            Input::FailedOver(_) => self.failed_over = Some(now.tick),
            Input::Answer { tag: Tag { step: Step::Acquire, .. }, answer: Ok(reply), .. } => self.granted(reply, now.tick, out),
            Input::Answer { .. } => self.released(now.tick, out),
            Input::Release(call, manner) => self.give_back(call, manner, now.tick, out),
            _ => (),
        }
    }

    fn begin(&mut self, now: Now, out: &mut Vec<Command>) {
        let recipe = &self.recipe;
        self.began = now;
        let owner = recipe.signature.owner(now.wall_us, fastrand::Rng::with_seed(self.seed).u128(..));
        self.owner = Some(Arc::clone(&owner));
        out.push(Command::EmitPlain(self.event(EventKind::Round, None)));
        let deadline = validity::end(now.tick, recipe.first_ttl()).min(now.tick.after(recipe.response_timeout));
        let ttl_ms = wire_millis(recipe.key_ttl());
        let (adopt, place, quorum_config, job) = (None, None, None, None);
        let verb = Verb::Acquire { ttl_ms, proposal: 0, adopt, fair: false, place, quorum_config, job };
        let request = Request::new(recipe.op(owner, verb), deadline);
        // Who may enter beside others is told by a script, which does nothing but that for a newcomer without a place.
        let request = if recipe.keys.kind().is_shared() { request } else { request.if_free() };
        out.push(Command::Send { server: 0, tag: self.tag(Step::Acquire, now.tick), request });
    }

    fn tag(&self, step: Step, sent: Tick) -> Tag {
        Tag { round: ROUND, step, sent }
    }

    fn granted(&mut self, reply: Reply, now: Tick, out: &mut Vec<Command>) {
        let Some(owner) = self.owner.clone() else { return };
        let fence = reply.fence;
        self.grant = Some((reply, now));
        out.push(Command::EmitPlain(self.event(EventKind::Acquired, Some(now.since(self.began.tick)))));
        out.push(Command::Acquired(Ok(Answered::Granted(Grant { owner, fence, attempt: None }))));
    }

    fn give_back(&mut self, call: CallId, manner: Manner, now: Tick, out: &mut Vec<Command>) {
        let (Some(owner), Some((reply, _))) = (&self.owner, &self.grant) else { return };
        self.release = Some((call, manner, now));
        let recipe = &self.recipe;
        let value = if reply.is_bare { Arc::clone(owner) } else { with_fence(owner, reply.fence).into() };
        let answered_by = now.after(recipe.response_timeout.min(recipe.unavailable_after / 2));
        let op = release(recipe, Arc::clone(owner), None, Duration::ZERO);
        let value = Some(value).filter(|_| !recipe.keys.kind().is_shared());
        let request = Request::new(op, now.after(recipe.key_ttl()).min(answered_by)).of_value(value);
        out.push(Command::Send { server: 0, tag: self.tag(Step::Release, now), request });
    }

    fn released(&mut self, now: Tick, out: &mut Vec<Command>) {
        let (Some((call, ..)), Some((_, granted))) = (self.release, &self.grant) else { return };
        out.push(Command::EmitPlain(self.event(EventKind::Released, Some(now.since(*granted)))));
        self.ended = Some(now);
        out.push(Command::Released(call, Ok(Release::ours(Duration::ZERO, Duration::ZERO))));
    }

    fn event(&self, kind: EventKind, took: Option<Duration>) -> PlainEvent {
        PlainEvent { kind, took, owner: self.owner.clone(), fence: self.grant.as_ref().map(|(reply, _)| reply.fence) }
    }

    /// The state machine after the same inputs. What it would have done for them is done; a refused request is `sent_again`.
    fn replayed(&mut self, sent_again: bool, now: Now, out: &mut Vec<Command>) -> Acquisition {
        let mut machine = Acquisition::new(Arc::clone(&self.recipe), self.waiter.take(), self.seed, self.began);
        let Some(owner) = self.owner.take() else { return machine };
        machine.begin_as(owner);
        let mut done = Vec::new();
        let at = |tick: Tick| if mutant!(ReplayedLater) { now } else { Now { tick, ..self.began } };
        machine.handle(at(self.began.tick), Input::Start, &mut done);
        if sent_again {
            out.extend(done.drain(..).filter(|command| matches!(command, Command::Send { .. })));
        } else {
            machine.was_sent_without_place();
        }
        if let Some(failed_over) = self.failed_over {
            machine.handle(at(failed_over), Input::FailedOver(0), &mut done);
        }
        if let Some((reply, granted)) = self.grant.take() {
            let tag = self.tag(Step::Acquire, self.began.tick);
            machine.handle(at(granted), Input::Answer { server: 0, tag, answer: Ok(reply) }, &mut done);
        }
        if let Some((call, manner, sent)) = self.release.filter(|_| !mutant!(FastReleaseForgotten)) {
            machine.handle(at(sent), Input::Release(call, manner), &mut done);
            if let Some(ended) = self.ended {
                let (tag, reply) = (self.tag(Step::Release, sent), Reply::new(Verdict::Ok, 0, 0));
                machine.handle(at(ended), Input::Answer { server: 0, tag, answer: Ok(reply) }, &mut done);
            }
        }
        machine
    }
}

/// Whether a reply has nothing to say beside its verdict.
fn is_plain(reply: &Reply) -> bool {
    reply.queued == Queued::Nothing && reply.other_limit == 0
}

#[cfg(test)]
#[path = "fast_path_tests.rs"]
mod tests;
