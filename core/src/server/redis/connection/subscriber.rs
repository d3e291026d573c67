//! Subscriber: how to listen to a channel, which questions that takes, when, and on which connection.
//!
//! A connection carries messages beside answers once it speaks RESP3. It asks for RESP3 with the first listener, and not before. If
//! the server refuses that, a second connection only subscribes (`listening`).

use std::sync::Arc;

use redis::Value;

use crate::clock::Tick;
use crate::op::{Failure, FailureKind};
use crate::server::redis::commands::refusal;
use crate::server::redis::connection::backoff::Backoff;
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::listening::Ending;
use crate::server::redis::connection::question::{PING, Question, REFUSED, SUBSCRIBE};
use crate::server::redis::connection::second::Second;
use crate::server::redis::connection::subscription::Subscription;
use crate::server::redis::listening::idle_check::{Finding, IdleCheck};
use crate::server::redis::listening::listener::ChannelListener;
use crate::server::redis::settings::Settings;

const HELLO: &[Question] = &[Question::Hello];
const NOTHING: &[Question] = &[];

enum Stage {
    /// The first connection is wanted, and no question is sent on it yet.
    Idle,
    /// RESP3 is asked for.
    Greeting,
    Subscribing(Subscription),
    Listening,
    /// The subscription is on a second connection, or will be.
    Second(Box<Second>),
    /// No attempt is made before `until`.
    Resting {
        until: Tick,
        on_second: bool,
    },
}

/// The result of a look at the clock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Ask(&'static [Question]),
    /// The first connection is dead.
    HalfOpen,
}

/// The way in which the client listens to one channel.
pub(crate) struct Subscriber {
    listener: ChannelListener,
    settings: Arc<Settings>,
    stage: Stage,
    /// The idle check of the first connection, while it carries the subscription.
    idle_check: IdleCheck,
    /// The back-off of the second connection.
    backoff: Backoff,
}

impl Subscriber {
    pub(crate) fn new(listener: ChannelListener, settings: Arc<Settings>) -> Self {
        let idle_check = IdleCheck::new(settings.response_timeout);
        Self { listener, settings, stage: Stage::Idle, idle_check, backoff: Backoff::default() }
    }

    pub(crate) fn channel(&self) -> &str {
        self.listener.channel()
    }

    /// Whether the code that listens has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.listener.is_over()
    }

    /// Whether the first connection is needed even if there is no operation to send.
    pub(crate) fn wants_first(&self) -> bool {
        !matches!(self.stage, Stage::Second(_) | Stage::Resting { .. })
    }

    /// Gives up the second connection, if there is one.
    pub(crate) fn drop_second(&self, out: &mut Vec<Effect>) {
        if let Stage::Second(second) = &self.stage {
            second.give_up(out);
        }
    }

    /// There are new credentials: an attempt that waits for them is made now.
    pub(crate) fn log_in(&mut self, now: Tick, out: &mut Vec<Effect>) {
        match &mut self.stage {
            Stage::Second(second) => second.renew(now, out),
            Stage::Resting { until, .. } => *until = now.min(*until),
            _ => {}
        }
    }

    /// The questions for a first connection that is up.
    pub(crate) fn begin(&mut self, now: Tick, reads: u64) -> &'static [Question] {
        if !matches!(self.stage, Stage::Idle) {
            return NOTHING;
        }
        self.stage = Stage::Greeting;
        self.ask(HELLO, now, reads)
    }

    fn ask(&mut self, questions: &'static [Question], now: Tick, reads: u64) -> &'static [Question] {
        self.idle_check.asked(questions.len(), now, reads);
        questions
    }

    /// Takes an answer of the first connection, and gives the next questions.
    pub(crate) fn answered(
        &mut self,
        question: Question,
        value: Value,
        (now, reads): (Tick, u64),
        out: &mut Vec<Effect>,
    ) -> &'static [Question] {
        self.idle_check.answered(now, reads);
        let refusal = match value {
            Value::ServerError(error) => Some(refusal::failure(&error.into(), true)),
            _ => None,
        };
        match (&mut self.stage, question, refusal) {
            (Stage::Greeting, Question::Hello, None) => {
                self.stage = Stage::Subscribing(Subscription::default());
                return self.ask(SUBSCRIBE, now, reads);
            }
            (Stage::Greeting, Question::Hello, Some(_)) => self.open_second(now, out),
            (Stage::Subscribing(subscription), Question::Subscribe(kind), refusal) => {
                match subscription.answered(kind, refusal) {
                    None => {}
                    Some(Ok(())) => {
                        self.stage = Stage::Listening;
                        self.listener.listening(out);
                    }
                    Some(Err(failure)) => self.rest(&failure, now.after(REFUSED), false, out),
                }
            }
            // A server may refuse a ping: that is an answer, too.
            _ => {}
        }
        NOTHING
    }

    /// Takes a message of the first connection that the client did not ask for.
    pub(crate) fn heard(&self, said: Value, out: &mut Vec<Effect>) {
        self.listener.heard(said, out);
    }

    fn rest(&mut self, failure: &Failure, until: Tick, on_second: bool, out: &mut Vec<Effect>) {
        self.stage = Stage::Resting { until, on_second };
        self.listener.not_listening(failure, out);
    }

    fn open_second(&mut self, now: Tick, out: &mut Vec<Effect>) {
        self.stage = Stage::Second(Box::new(Second::open(&self.settings, now, out)));
    }

    /// There is no first connection, and `failure` is the reason. A server that refuses this client isn't asked again and again for
    /// the subscription alone.
    pub(crate) fn unconnected(&mut self, failure: &Failure, now: Tick, out: &mut Vec<Effect>) {
        if !self.wants_first() {
            return;
        }
        match failure.kind {
            FailureKind::Denied | FailureKind::Mismatch => self.rest(failure, now.after(REFUSED), false, out),
            _ => self.listener.not_listening(failure, out),
        }
    }

    /// The first connection is gone. A peer that hung up at a question of the subscriber isn't asked again on a connection that the
    /// operations need.
    pub(crate) fn disconnected(&mut self, failure: &Failure, now: Tick, out: &mut Vec<Effect>) {
        self.idle_check.forget();
        if self.wants_first() {
            self.listener.not_listening(failure, out);
        }
        match self.stage {
            Stage::Greeting | Stage::Subscribing(_) => self.open_second(now, out),
            Stage::Listening => self.stage = Stage::Idle,
            Stage::Idle | Stage::Second(_) | Stage::Resting { .. } => {}
        }
    }

    /// The buffers of the second connection.
    pub(crate) fn buffers(&mut self, role: Role) -> Option<&mut Buffers> {
        match &mut self.stage {
            Stage::Second(second) => second.buffers(role),
            _ => None,
        }
    }

    /// A socket of the second connection is open; says whether the subscriber waited for it.
    pub(crate) fn opened(&mut self, role: Role, era: u64) -> bool {
        match &mut self.stage {
            Stage::Second(second) => second.opened(role, era),
            _ => false,
        }
    }

    /// Takes an event of the second connection, which may be its end.
    pub(crate) fn second(
        &mut self,
        (now, chance): (Tick, f64),
        out: &mut Vec<Effect>,
        event: impl FnOnce(&mut Second, &mut ChannelListener, &mut Vec<Effect>) -> Option<Ending>,
    ) {
        let Stage::Second(second) = &mut self.stage else { return };
        if let Some(ending) = event(second, &mut self.listener, out) {
            self.ended(ending, now, chance, out);
        }
    }

    /// Whether the second connection leads to the server of another era than this one.
    pub(crate) fn is_of_another(&self, era: u64) -> bool {
        matches!(&self.stage, Stage::Second(second) if second.is_of_another(era))
    }

    /// The second connection ended. If it was useful, the next attempt begins on the first one: by now another server may answer.
    fn ended(&mut self, ending: Ending, now: Tick, chance: f64, out: &mut Vec<Effect>) {
        self.drop_second(out);
        match ending {
            // With a provider others may be given soon.
            Ending::Unconnected(failure) if failure.kind == FailureKind::Denied && self.settings.provided.is_none() => {
                self.rest(&failure, now.after(REFUSED), true, out);
            }
            Ending::Unconnected(failure) => {
                self.backoff.failed(now, chance);
                self.rest(&failure, self.backoff.until(Tick::default()), true, out);
            }
            Ending::Refused(failure) => self.rest(&failure, now.after(REFUSED), true, out),
            Ending::Broken { failure, useful } => {
                self.backoff.broke(now, useful, chance);
                self.rest(&failure, self.backoff.until(Tick::default()), false, out);
            }
        }
    }

    /// The time of the next look at the clock.
    pub(crate) fn wake_at(&self) -> Tick {
        match &self.stage {
            Stage::Resting { until, .. } => *until,
            Stage::Greeting | Stage::Subscribing(_) | Stage::Listening => self.idle_check.due(),
            Stage::Second(second) => second.wake_at(),
            Stage::Idle => Tick::NEVER,
        }
    }

    /// Looks at the clock. `reads` is the number of replies and messages on the first connection.
    pub(crate) fn wake(&mut self, now: Tick, reads: u64, chance: f64, out: &mut Vec<Effect>) -> Look {
        if now < self.wake_at() {
            return Look::Ask(NOTHING);
        }
        match &mut self.stage {
            Stage::Resting { on_second: true, .. } => self.open_second(now, out),
            Stage::Resting { on_second: false, .. } => self.stage = Stage::Idle,
            Stage::Second(second) => {
                if let Some(ending) = second.wake(&self.listener, now, out) {
                    self.ended(ending, now, chance, out);
                }
            }
            Stage::Idle => {}
            Stage::Greeting | Stage::Subscribing(_) | Stage::Listening => match self.idle_check.look(now, reads) {
                Finding::Nothing => {}
                Finding::Quiet => return Look::Ask(self.ask(PING, now, reads)),
                Finding::HalfOpen => return Look::HalfOpen,
            },
        }
        Look::Ask(NOTHING)
    }
}

#[cfg(test)]
#[path = "subscriber_tests.rs"]
mod tests;
