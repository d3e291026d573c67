//! What a way to a server decides: when to connect, what may be sent, and what becomes of it when the connection breaks.
//!
//! Whoever runs a lane (a task, or the threads that call) brings it the messages and the news, and waits until it is due.

use std::sync::Arc;

use redis::{RedisError, RedisResult, Value};

use crate::clock::Tick;
use crate::op::{Answer, Failure, FailureKind, Op};
use crate::server::redis::commands::codec::Form;
use crate::server::redis::commands::refusal;
use crate::server::redis::connection::backlog::Queue;
use crate::server::redis::connection::backoff::Backoff;
use crate::server::redis::connection::failure::{closed, disconnected, is_servers_fault, no_answer, no_connection, too_late};
use crate::server::redis::connection::health::Health;
use crate::server::redis::connection::pipeline::{Job, Landing, Sent};
use crate::server::redis::connection::subscriber::{Ear, Finding, Word};
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::aside::Ending;
use crate::server::{Completion, Request};

/// A kind of connection.
pub(crate) trait Wire: Sized {
    /// An attempt to connect, under way.
    type Attempt;

    /// Sends an operation after those before it.
    fn send(&mut self, job: Job, form: Form, now: Tick);

    /// What is in flight.
    fn sent(&self) -> &Sent;

    /// What is in flight, to be changed.
    fn sent_mut(&mut self) -> &mut Sent;

    /// Asks something for the sake of listening. How long the answer may take is not the connection's concern. Only asked of
    /// lanes that listen.
    fn say(&mut self, _word: Word, _channel: &str, _now: Tick) {}
}

/// Whether there is a connection.
pub(crate) enum State<W: Wire> {
    Down,
    Connecting(W::Attempt),
    Up(W),
}

/// Begins an attempt to connect.
type Connect<W> = Box<dyn Fn(&Arc<Settings>) -> <W as Wire>::Attempt + Send>;

/// The lane. `waiting` is empty while the connection is up.
pub(crate) struct Lane<W: Wire> {
    settings: Arc<Settings>,
    health: Arc<Health>,
    connect: Connect<W>,
    pub(crate) state: State<W>,
    waiting: Queue,
    backoff: Backoff,
    /// Why the last attempt failed: the answer of what comes before the next one.
    trouble: Option<Failure>,
    /// Somebody was turned away since the last attempt, so that another one is worth it.
    wanted: bool,
    /// A close has begun: nothing but releases is taken.
    given_up: bool,
    /// Set by a close: when to stop waiting for releases.
    closing: Option<Tick>,
    /// Set by the first listener.
    pub(crate) ear: Option<Ear>,
}

impl<W: Wire> Lane<W> {
    /// A lane that connects by `connect`.
    pub(crate) fn new(
        settings: Arc<Settings>,
        health: Arc<Health>,
        connect: impl Fn(&Arc<Settings>) -> W::Attempt + Send + 'static,
    ) -> Self {
        Self {
            settings,
            health,
            connect: Box::new(connect),
            state: State::Down,
            waiting: Queue::new(),
            backoff: Backoff::default(),
            trouble: None,
            wanted: false,
            given_up: false,
            closing: None,
            ear: None,
        }
    }

    /// The next instant at which something has to happen.
    pub(crate) fn due(&self) -> Tick {
        let state = match &self.state {
            State::Up(link) => link.sent().due(),
            State::Down if self.is_wanted() => self.backoff.until(),
            State::Down | State::Connecting(_) => Tick::NEVER,
        };
        let ear = self.ear.as_ref().map_or(Tick::NEVER, Ear::due);
        state.min(self.waiting.due()).min(ear).min(self.closing.unwrap_or(Tick::NEVER))
    }

    /// Whether a close has begun.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Takes an operation; [`Lane::pursue`] is to be called after the last of several.
    pub(crate) fn accept(&mut self, job: Job, now: Tick) {
        if self.closing.is_some() || self.given_up && !job.request.op.survives_reconnect() {
            return job.completion.complete(Err(closed(false)));
        }
        if job.request.deadline <= now {
            return job.completion.complete(Err(too_late()));
        }
        match (&mut self.state, &self.trouble) {
            (State::Up(link), _) => link.send(job, Form::BySha, now),
            (State::Down, Some(trouble)) if now < self.backoff.until() && !waits(&job.request.op) => {
                self.wanted = true;
                job.completion.complete(Err(trouble.clone()));
            }
            _ => self.waiting.push(job),
        }
    }

    /// A connection will be needed soon; [`Lane::pursue`] is to be called after that.
    pub(crate) fn warm(&mut self) {
        self.wanted |= matches!(self.state, State::Down);
    }

    /// Whether there should be a connection.
    fn is_wanted(&self) -> bool {
        self.wanted || !self.waiting.is_empty() || self.ear.as_ref().is_some_and(Ear::wants_home)
    }

    /// Starts connecting, if somebody wants it and the back-off allows it.
    pub(crate) fn pursue(&mut self, now: Tick) {
        // After a close only releases wait.
        let worth_it = self.closing.is_none_or(|until| now < until && !self.waiting.is_empty());
        if matches!(self.state, State::Down) && self.is_wanted() && now >= self.backoff.until() && worth_it {
            self.wanted = false;
            self.state = State::Connecting((self.connect)(&self.settings));
        }
    }

    /// An attempt to connect has ended.
    pub(crate) fn attempted(&mut self, attempt: Result<W, Failure>) {
        match attempt {
            Ok(link) => self.connected(link),
            Err(failure) => self.unconnected(failure),
        }
    }

    /// The command with this number has its answer, or never will.
    pub(crate) fn landed(&mut self, number: u64, result: RedisResult<Value>) {
        let State::Up(link) = &mut self.state else { return };
        match link.sent_mut().land(number, result) {
            Landing::Answered(job, answer) => self.answered(job, answer),
            Landing::Unknown(job) => self.resend(job),
            Landing::Heard(word, value) => self.heard(word, value),
            Landing::Late => {}
            Landing::Broken(error) => self.broken(Some(&error)),
        }
    }

    fn connected(&mut self, mut link: W) {
        let now = Tick::now();
        self.waiting.drain(now, |job| link.send(job, Form::BySha, now));
        self.state = State::Up(link);
        // A replica greets like a primary; only an answer shows that it is none any more.
        if self.trouble.take().is_none_or(|trouble| trouble.kind != FailureKind::ReadOnly) {
            self.health.recovered();
        }
        self.attend(now);
    }

    fn unconnected(&mut self, failure: Failure) {
        let now = Tick::now();
        self.state = State::Down;
        self.backoff.failed(now, fastrand::f64());
        self.health.failed(&failure);
        // A server of another quorum will not take this client's releases either.
        let hopeless = failure.kind == FailureKind::Mismatch;
        self.waiting.refuse(&failure, |job| hopeless || !job.request.op.survives_reconnect());
        if let Some(ear) = &mut self.ear {
            ear.unconnected(&failure, now);
        }
        self.trouble = Some(failure);
    }

    fn answered(&mut self, job: Job, answer: Answer) {
        // The state is told before the answer: who has the answer knows the state.
        let fault = match &answer {
            Ok(_) => {
                self.health.recovered();
                None
            }
            Err(failure) if is_servers_fault(failure.kind) => {
                self.health.failed(failure);
                Some(failure.clone())
            }
            Err(_) => None,
        };
        job.completion.complete(answer);
        // A primary that became a replica stays one: its successor is found by resolving and connecting anew.
        if let Some(fault) = fault.filter(|fault| fault.kind == FailureKind::ReadOnly) {
            self.leave(&fault, false);
        }
    }

    fn resend(&mut self, job: Job) {
        let now = Tick::now();
        match &mut self.state {
            State::Up(link) if now < job.request.deadline => link.send(job, Form::ByText, now),
            _ => job.completion.complete(Err(too_late())),
        }
    }

    /// The connection is of no use any more.
    pub(crate) fn broken(&mut self, error: Option<&RedisError>) {
        let failure = error.map_or_else(disconnected, |error| refusal::failure(error, true));
        let State::Up(link) = &self.state else { return };
        let useful = link.sent().answered();
        if link.sent().is_busy() {
            self.health.failed(&failure);
        }
        self.leave(&failure, useful);
    }

    /// Gives the connection up. Releases wait for the next one, the outcome of the rest is unknown.
    fn leave(&mut self, failure: &Failure, useful: bool) {
        let State::Up(mut link) = std::mem::replace(&mut self.state, State::Down) else { return };
        let now = Tick::now();
        self.backoff.broke(now, useful, fastrand::f64());
        self.trouble = Some(Failure::not_applied(failure.kind, failure.message.clone()));
        let unknown = Failure { maybe_applied: true, ..failure.clone() };
        for job in link.sent_mut().take(|_| true) {
            if job.request.op.survives_reconnect() && now < job.request.deadline {
                self.waiting.push(Job { repeated: true, ..job });
            } else {
                job.completion.complete(Err(unknown.clone()));
            }
        }
        drop(link);
        self.ear.take_if(|ear| ear.is_over());
        if let Some(ear) = &mut self.ear {
            ear.disconnected(failure);
        }
        self.pursue(now);
    }

    /// Does what is due.
    pub(crate) fn overdue(&mut self, now: Tick) {
        if now >= self.waiting.due() {
            self.waiting.refuse(&no_connection(self.trouble.as_ref()), |job| job.request.deadline <= now);
        }
        let mut half_open = false;
        if let State::Up(link) = &mut self.state {
            let overdue = link.sent_mut().overdue(now);
            half_open = overdue.silent;
            let failure = no_answer(self.settings.response_timeout);
            if overdue.slow {
                self.health.failed(&failure);
            }
            for job in overdue.late {
                job.completion.complete(Err(failure.clone()));
            }
        }
        if half_open | self.listens_in_vain(now) {
            self.broken(None);
        }
        self.attend(now);
        self.pursue(now);
    }

    /// Begins to listen, as soon as there is a connection.
    pub(crate) fn listen(&mut self, ear: Ear, now: Tick) {
        self.ear = Some(ear);
        self.attend(now);
    }

    /// Begins to listen on the connection, if that is what the ear waits for.
    fn attend(&mut self, now: Tick) {
        if let (Some(ear), State::Up(link)) = (&mut self.ear, &mut self.state) {
            let words = ear.begin(now, link.sent().pulse());
            words.iter().for_each(|word| link.say(*word, ear.channel(), now));
        }
    }

    fn heard(&mut self, word: Word, value: Value) {
        if let (Some(ear), State::Up(link)) = (&mut self.ear, &mut self.state) {
            let now = Tick::now();
            let words = ear.answered(word, value, now, link.sent().pulse());
            words.iter().for_each(|word| link.say(*word, ear.channel(), now));
        }
    }

    /// Lets the ear look at the clock; says whether it found that the connection is dead.
    fn listens_in_vain(&mut self, now: Tick) -> bool {
        self.ear.take_if(|ear| ear.is_over());
        let Some(ear) = &mut self.ear else { return false };
        let State::Up(link) = &mut self.state else {
            ear.overdue(now, 0);
            return false;
        };
        match ear.overdue(now, link.sent().pulse()) {
            Finding::HalfOpen => true,
            Finding::Say(words) => {
                words.iter().for_each(|word| link.say(*word, ear.channel(), now));
                false
            }
        }
    }

    /// The ear's second connection has ended.
    pub(crate) fn end_aside(&mut self, ending: &Ending) {
        if let Some(ear) = &mut self.ear {
            ear.ended(ending, Tick::now());
        }
    }

    /// From here on only releases count. What was sent and has no answer is taken back on the same connection, where nothing can
    /// overtake it, whenever the server reads it.
    pub(crate) fn give_up(&mut self, now: Tick) {
        if std::mem::replace(&mut self.given_up, true) {
            return;
        }
        self.waiting.refuse(&closed(false), |job| !job.request.op.survives_reconnect());
        if let State::Up(link) = &mut self.state {
            let (given_up, undo) = link.sent_mut().give_up();
            for op in undo {
                let request = Request::new(op, now.after(self.settings.response_timeout));
                link.send(Job { request, completion: Completion::new(|_| ()), repeated: false }, Form::BySha, now);
            }
            for job in given_up {
                job.completion.complete(Err(closed(true)));
            }
        }
    }

    /// Releases have a moment to leave, those that wait for a connection, too.
    pub(crate) fn close(&mut self, now: Tick) {
        if self.closing.is_some() {
            return;
        }
        self.give_up(now);
        self.closing = Some(now.after(self.settings.response_timeout));
        self.ear = None;
    }

    /// Whether nothing is left to do after a close.
    pub(crate) fn is_over(&self) -> bool {
        let Some(until) = self.closing else { return false };
        match &self.state {
            State::Down | State::Connecting(_) => self.waiting.is_empty() || Tick::now() >= until,
            State::Up(link) => !link.sent().is_busy() || Tick::now() >= until,
        }
    }

    /// Lets go of the connection, and of whoever still waits.
    pub(crate) fn end(&mut self) {
        self.waiting.refuse(&closed(false), |_| true);
        if let State::Up(link) = &mut self.state {
            for job in link.sent_mut().take(|_| true) {
                job.completion.complete(Err(closed(true)));
            }
        }
        self.state = State::Down;
    }
}

/// Whether an operation waits for the next attempt to connect.
fn waits(op: &Op) -> bool {
    op.survives_reconnect() || op.asks_afresh()
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
