//! The one task behind a server: it owns the connection, replaces it, and decides what may be sent on it.
//!
//! The home lane also listens, once somebody wants to hear (`ear`).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use redis::{RedisError, Value};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Sleep, sleep};

use super::aside::Ending;
use super::backoff::Backoff;
use super::codec::{self, Form};
use super::connect::{Settings, connect};
use super::ear::{Ear, Finding, Word};
use super::failure::{closed, disconnected, is_servers_fault, no_answer, too_late};
use super::health::Health;
use super::hearing::{Audience, Hearing};
use super::link::{Event, Job, Landing, Link};
use super::queue::Queue;
use super::state::{News, State};
use crate::clock::Tick;
use crate::server::{Answer, Failure, FailureKind, Op};

/// Operations taken from the inbox at once, and so at most in one write.
const BATCH: usize = 256;

/// What a server tells its lane.
pub(super) enum Message {
    Submit(Job),
    Listen(Hearing),
    Close,
}

/// The lane. `waiting` is empty while the connection is up.
pub(super) struct Lane {
    settings: Arc<Settings>,
    inbox: UnboundedReceiver<Message>,
    health: Arc<Health>,
    state: State,
    waiting: Queue,
    backoff: Backoff,
    /// Why the last attempt failed: the answer of what comes before the next one.
    trouble: Option<Failure>,
    /// Somebody was turned away since the last attempt, so that another one is worth it.
    wanted: bool,
    /// Set by a close: when to stop waiting for releases.
    closing: Option<Tick>,
    /// Where this lane's connections leave messages; `None` on a lane that can't listen.
    audience: Option<Audience>,
    /// Set by the first listener.
    ear: Option<Ear>,
}

impl Lane {
    pub(super) fn new(
        settings: Arc<Settings>,
        inbox: UnboundedReceiver<Message>,
        health: Arc<Health>,
        audience: Option<Audience>,
    ) -> Self {
        Self {
            settings,
            inbox,
            health,
            state: State::Down,
            waiting: Queue::new(),
            backoff: Backoff::default(),
            trouble: None,
            wanted: false,
            closing: None,
            audience,
            ear: None,
        }
    }

    /// Runs until the server is closed or dropped.
    pub(super) async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut alarm: Pin<Box<Sleep>> = Box::pin(sleep(Duration::ZERO));
        let mut alarm_at = Tick::NEVER;
        loop {
            let due = self.due();
            if due < alarm_at {
                // Most operations are answered long before the alarm they would have set, so it is only ever moved forward.
                alarm.as_mut().reset(tokio::time::Instant::now() + due.since(Tick::now()));
                alarm_at = due;
            }
            tokio::select! {
                biased;
                news = self.state.next() => self.hear(news),
                Some(ending) = ending(&mut self.ear), if self.ear.is_some() => self.end_aside(&ending),
                count = self.inbox.recv_many(&mut batch, BATCH), if self.closing.is_none() => self.take(&mut batch, count),
                () = &mut alarm, if alarm_at != Tick::NEVER => {
                    alarm_at = Tick::NEVER;
                    self.overdue(Tick::now());
                }
            }
            if self.is_over() {
                return self.end();
            }
        }
    }

    /// The next instant at which something has to happen.
    fn due(&self) -> Tick {
        let state = match &self.state {
            State::Up(link) => link.due(),
            State::Down if self.is_wanted() => self.backoff.until(),
            State::Down | State::Connecting(_) => Tick::NEVER,
        };
        let ear = self.ear.as_ref().map_or(Tick::NEVER, Ear::due);
        state.min(self.waiting.due()).min(ear).min(self.closing.unwrap_or(Tick::NEVER))
    }

    fn take(&mut self, batch: &mut Vec<Message>, count: usize) {
        let now = Tick::now();
        for message in batch.drain(..) {
            match message {
                Message::Submit(job) => self.accept(job, now),
                Message::Listen(hearing) => self.listen(hearing, now),
                Message::Close => self.close(now),
            }
        }
        if count == 0 {
            // The server was dropped.
            self.close(now);
        }
        self.pursue(now);
    }

    fn accept(&mut self, job: Job, now: Tick) {
        if self.closing.is_some() {
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

    /// Whether there should be a connection.
    fn is_wanted(&self) -> bool {
        self.wanted || !self.waiting.is_empty() || self.ear.as_ref().is_some_and(Ear::wants_home)
    }

    /// Starts connecting, if somebody wants it and the back-off allows it.
    fn pursue(&mut self, now: Tick) {
        if matches!(self.state, State::Down) && self.is_wanted() && now >= self.backoff.until() && self.closing.is_none() {
            self.wanted = false;
            let settings = Arc::clone(&self.settings);
            let audience = self.audience.clone();
            self.state = State::Connecting(Box::pin(async move { connect(&settings, audience).await }));
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Connected(Ok(link)) => self.connected(link),
            News::Connected(Err(failure)) => self.unconnected(failure),
            News::Link(Event::Landed(number, result)) => {
                let State::Up(link) = &mut self.state else { return };
                match link.land(number, result) {
                    Landing::Answered(job, answer) => self.answered(job, answer),
                    Landing::Unknown(job) => self.resend(job),
                    Landing::Heard(word, value) => self.heard(word, value),
                    Landing::Late => {}
                    Landing::Broken(error) => self.broken(Some(&error)),
                }
            }
            News::Link(Event::Broken) => self.broken(None),
        }
    }

    fn connected(&mut self, mut link: Link) {
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
            ear.unconnected(&failure, Tick::now());
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

    fn broken(&mut self, error: Option<&RedisError>) {
        let failure = error.map_or_else(disconnected, |error| codec::failure(error, true));
        let State::Up(link) = &self.state else { return };
        let useful = link.answered();
        if link.is_busy() {
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
        for job in link.take(|_| true) {
            if self.closing.is_none() && job.request.op.survives_reconnect() && now < job.request.deadline {
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

    fn overdue(&mut self, now: Tick) {
        if now >= self.waiting.due() {
            self.waiting.refuse(&too_late(), |job| job.request.deadline <= now);
        }
        let mut half_open = false;
        if let State::Up(link) = &mut self.state {
            let (late, silent) = link.overdue(now);
            half_open = silent;
            let failure = no_answer(self.settings.response_timeout);
            if !late.is_empty() {
                self.health.failed(&failure);
            }
            for job in late {
                job.completion.complete(Err(failure.clone()));
            }
        }
        if half_open | self.listens_in_vain(now) {
            self.broken(None);
        }
        self.attend(now);
        self.pursue(now);
    }

    fn listen(&mut self, hearing: Hearing, now: Tick) {
        let hearing = Arc::new(hearing);
        // Without an audience, or with another listener, there is nobody to hear it.
        if self.closing.is_none() && self.audience.as_ref().is_some_and(|audience| audience.set(Arc::clone(&hearing)).is_ok()) {
            self.ear = Some(Ear::new(hearing, Arc::clone(&self.settings)));
            self.attend(now);
        }
    }

    /// Begins to listen on the connection, if that is what the ear waits for.
    fn attend(&mut self, now: Tick) {
        if let (Some(ear), State::Up(link)) = (&mut self.ear, &mut self.state) {
            let words = ear.begin(now, link.pulse());
            words.iter().for_each(|word| link.say(*word, ear.channel(), now));
        }
    }

    fn heard(&mut self, word: Word, value: Value) {
        if let (Some(ear), State::Up(link)) = (&mut self.ear, &mut self.state) {
            let now = Tick::now();
            let words = ear.answered(word, value, now, link.pulse());
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
        match ear.overdue(now, link.pulse()) {
            Finding::HalfOpen => true,
            Finding::Say(words) => {
                words.iter().for_each(|word| link.say(*word, ear.channel(), now));
                false
            }
        }
    }

    fn end_aside(&mut self, ending: &Ending) {
        if let Some(ear) = &mut self.ear {
            ear.ended(ending, Tick::now());
        }
    }

    /// From here on only releases count, and only for a moment.
    fn close(&mut self, now: Tick) {
        if self.closing.is_some() {
            return;
        }
        self.closing = Some(now.after(self.settings.response_timeout));
        self.ear = None;
        self.inbox.close();
        self.waiting.refuse(&closed(false), |job| !job.request.op.survives_reconnect());
        if let State::Up(link) = &mut self.state {
            for job in link.take(|job| !job.request.op.survives_reconnect()) {
                job.completion.complete(Err(closed(true)));
            }
        }
        while let Ok(message) = self.inbox.try_recv() {
            if let Message::Submit(job) = message {
                job.completion.complete(Err(closed(false)));
            }
        }
    }

    fn is_over(&self) -> bool {
        let Some(until) = self.closing else { return false };
        match &self.state {
            State::Down => true,
            State::Connecting(_) => self.waiting.is_empty() || Tick::now() >= until,
            State::Up(link) => !link.is_busy() || Tick::now() >= until,
        }
    }

    fn end(mut self) {
        self.waiting.refuse(&closed(false), |_| true);
        if let State::Up(link) = &mut self.state {
            for job in link.take(|_| true) {
                job.completion.complete(Err(closed(true)));
            }
        }
    }
}

/// Waits for the end of the ear's second connection. Cancel safe.
async fn ending(ear: &mut Option<Ear>) -> Option<Ending> {
    match ear {
        Some(ear) => Some(ear.ending().await),
        None => None,
    }
}

/// Whether an operation waits for the next attempt to connect.
fn waits(op: &Op) -> bool {
    op.survives_reconnect() || op.asks_afresh()
}
