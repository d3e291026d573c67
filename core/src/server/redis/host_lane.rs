//! The lane of a host's event loop: a connection of its own, used by the calls that are made on the loop's thread.
//!
//! It only makes what is up faster. While there is no connection everything goes by the home lane, which knows about trouble
//! and how to get over it; a connection that breaks hands the releases in flight over to it. The lane is opened by the second
//! pair of operations: a program that takes one lock and goes needs no second connection.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use redis::{RedisError, Value};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;

use super::backoff::Backoff;
use super::codec::{self, Form};
use super::connect::{Settings, connect_plain};
use super::failure::{closed, disconnected, is_servers_fault, no_answer, too_late};
use super::health::Health;
use super::lane::Message;
use super::link::Job;
use super::wire::{Landed, Wire};
use crate::clock::Tick;
use crate::host::{Driven, EventLoop};
use crate::runtime::{Alarm, Runtime};
use crate::server::{Answer, Failure, FailureKind, Reply};

/// Operations before a connection of the loop's own is worth it.
const WORTH_IT: u32 = 3;

/// How long the loop may leave a connection alone before the I/O thread looks after it.
const PATIENCE: Duration = Duration::from_millis(20);

/// The same once the loop is gone.
const ORPHANS: Duration = Duration::from_millis(2);

pub(super) struct HostLane {
    settings: Arc<Settings>,
    health: Arc<Health>,
    home: UnboundedSender<Message>,
    io: Handle,
    host: Arc<EventLoop>,
    runtime: Arc<Runtime>,
    id: u64,
    desk: Mutex<Desk>,
}

struct Desk {
    state: State,
    asked: u32,
    backoff: Backoff,
    /// Whether the I/O thread is going to look.
    guarded: bool,
}

enum State {
    Down,
    Opening,
    Up(Wire),
    Closed,
}

impl HostLane {
    /// `None` where no runtime can be had; home will say why.
    pub(super) fn new(
        settings: &Arc<Settings>,
        health: &Arc<Health>,
        home: &UnboundedSender<Message>,
        host: &Arc<EventLoop>,
    ) -> Option<Arc<Self>> {
        let runtime = Runtime::current().ok()?;
        let desk = Desk { state: State::Down, asked: 0, backoff: Backoff::default(), guarded: false };
        Some(Arc::new(Self {
            settings: Arc::clone(settings),
            health: Arc::clone(health),
            home: home.clone(),
            io: runtime.handle().clone(),
            host: Arc::clone(host),
            id: runtime.next_id(),
            runtime,
            desk: Mutex::new(desk),
        }))
    }

    pub(super) fn is_of(&self, host: &Arc<EventLoop>) -> bool {
        Arc::ptr_eq(&self.host, host)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.host.has_ended() && !matches!(self.desk.lock().state, State::Up(_) | State::Opening)
    }

    /// Takes an operation to be sent by the loop's next flush; gives it back if it has to go by the home lane.
    pub(super) fn submit(self: &Arc<Self>, job: Job) -> Option<Job> {
        let now = Tick::now();
        let mut desk = self.desk.lock();
        let Desk { state, asked, backoff, .. } = &mut *desk;
        let State::Up(wire) = state else {
            *asked = asked.saturating_add(1);
            if matches!(state, State::Down) && *asked >= WORTH_IT && now >= backoff.until() {
                *state = State::Opening;
                drop(desk);
                self.io.spawn(Arc::clone(self).open());
            }
            return Some(job);
        };
        if job.request.deadline <= now {
            drop(desk);
            job.completion.complete(Err(too_late()));
            return None;
        }
        let first = wire.push(job, Form::BySha, now);
        let unguarded = !std::mem::replace(&mut desk.guarded, true);
        drop(desk);
        if first {
            self.host.has_to_send(Arc::clone(self) as Arc<dyn Driven>);
        }
        if unguarded {
            self.guard(now.after(PATIENCE));
        }
        None
    }

    fn guard(self: &Arc<Self>, at: Tick) {
        let lane: Arc<dyn Alarm> = Arc::clone(self) as Arc<dyn Alarm>;
        self.runtime.set_alarm(at, self.id, Arc::downgrade(&lane));
    }

    async fn open(self: Arc<Self>) {
        let opened = connect_plain(&self.settings).await;
        let mut desk = self.desk.lock();
        if !matches!(desk.state, State::Opening) {
            return;
        }
        match opened {
            Ok(wire) => {
                let socket = Arc::clone(wire.socket());
                desk.state = State::Up(wire);
                drop(desk);
                let driven: Arc<dyn Driven> = Arc::clone(&self) as Arc<dyn Driven>;
                self.host.open(&driven, socket);
            }
            Err(_) => {
                desk.state = State::Down;
                desk.backoff.failed(Tick::now(), fastrand::f64());
            }
        }
    }

    /// Reads, and tells what was answered.
    fn take_in(&self) {
        let mut landed = Vec::new();
        let mut desk = self.desk.lock();
        let State::Up(wire) = &mut desk.state else { return };
        // What the socket did not take the last time.
        let sent = if wire.has_unsent() { wire.flush() } else { Ok(()) };
        let read = wire.read(&mut landed).and(sent.map_err(RedisError::from));
        let run_id = wire.run_id.clone();
        drop(desk);
        let fault = self.tell(landed, run_id.as_ref());
        let broken = read.err().map(|error| match codec::failure(&error, true) {
            failure if failure.kind == FailureKind::Other => disconnected(),
            failure => failure,
        });
        if let Some(failure) = broken.or(fault) {
            self.leave(&failure);
        }
    }

    /// Ends operations. Gives what makes the connection useless.
    fn tell(&self, landed: Vec<Landed>, run_id: Option<&Arc<str>>) -> Option<Failure> {
        let mut useless = None;
        for Landed { job, value } in landed {
            let answer = match value {
                Value::ServerError(error) if error.code() == "NOSCRIPT" => {
                    self.resend(job);
                    continue;
                }
                Value::ServerError(error) => Err(codec::failure(&error.into(), true)),
                value => codec::reply(&job.request.op, value).map(|reply| Reply {
                    run_id: run_id.cloned(),
                    repeated: job.repeated,
                    ..reply
                }),
            };
            self.note(&answer);
            if let Err(failure) = &answer
                && failure.kind == FailureKind::ReadOnly
            {
                useless = Some(failure.clone());
            }
            job.completion.complete(answer);
        }
        useless
    }

    /// The state is told before the answer: who has the answer knows the state.
    fn note(&self, answer: &Answer) {
        match answer {
            Ok(_) => self.health.recovered(),
            Err(failure) if is_servers_fault(failure.kind) => self.health.failed(failure),
            Err(_) => (),
        }
    }

    fn resend(&self, job: Job) {
        let now = Tick::now();
        let mut desk = self.desk.lock();
        if let State::Up(wire) = &mut desk.state
            && now < job.request.deadline
        {
            wire.push(job, Form::ByText, now);
            // Rare: at once.
            let sent = wire.flush();
            drop(desk);
            if sent.is_err() {
                self.leave(&disconnected());
            }
        } else {
            drop(desk);
            job.completion.complete(Err(too_late()));
        }
    }

    /// Gives the connection up. Releases go by the home lane, the outcome of the rest is unknown.
    fn leave(&self, failure: &Failure) {
        let now = Tick::now();
        let mut desk = self.desk.lock();
        let State::Up(mut wire) = std::mem::replace(&mut desk.state, State::Down) else { return };
        desk.backoff.broke(now, wire.answered, fastrand::f64());
        drop(desk);
        let jobs = wire.take();
        if !jobs.is_empty() {
            self.health.failed(failure);
        }
        for job in jobs {
            if job.request.op.survives_reconnect() && now < job.request.deadline {
                self.go_home(Job { repeated: true, ..job });
            } else {
                job.completion.complete(Err(Failure { maybe_applied: true, ..failure.clone() }));
            }
        }
    }

    fn go_home(&self, job: Job) {
        if let Err(refused) = self.home.send(Message::Submit(job))
            && let Message::Submit(job) = refused.0
        {
            job.completion.complete(Err(closed(true)));
        }
    }

    pub(super) fn close(&self) {
        let state = std::mem::replace(&mut self.desk.lock().state, State::Closed);
        if let State::Up(mut wire) = state {
            for job in wire.take() {
                job.completion.complete(Err(closed(true)));
            }
        }
    }

    fn give_up_late(&self, now: Tick) {
        let mut desk = self.desk.lock();
        let State::Up(wire) = &mut desk.state else { return };
        let (late, silent) = wire.overdue(now, self.settings.response_timeout);
        drop(desk);
        let failure = no_answer(self.settings.response_timeout);
        if !late.is_empty() {
            self.health.failed(&failure);
        }
        for job in late {
            job.completion.complete(Err(failure.clone()));
        }
        if silent {
            self.leave(&disconnected());
        }
    }
}

impl Driven for HostLane {
    fn flush(&self) {
        let mut desk = self.desk.lock();
        let State::Up(wire) = &mut desk.state else { return };
        let sent = wire.flush();
        drop(desk);
        if sent.is_err() {
            self.leave(&disconnected());
        }
    }

    fn read(&self, descriptor: RawFd) -> bool {
        let watched = || matches!(&self.desk.lock().state, State::Up(wire) if wire.socket().as_raw_fd() == descriptor);
        if watched() {
            self.take_in();
        }
        watched()
    }

    fn orphan(&self) {
        let mut desk = self.desk.lock();
        match &desk.state {
            State::Up(wire) if wire.oldest().is_none() => desk.state = State::Closed,
            // The I/O thread sees to what is in flight: its alarm is set.
            State::Up(_) | State::Closed => (),
            State::Down | State::Opening => desk.state = State::Closed,
        }
    }
}

/// The I/O thread looks whether the loop has left something undone: because it is blocked, or gone, or the server is slow.
impl Alarm for HostLane {
    fn ring(self: Arc<Self>) {
        self.desk.lock().guarded = false;
        let now = Tick::now();
        let orphaned = self.host.has_ended();
        let patience = if orphaned { ORPHANS } else { PATIENCE };
        let waits = |lane: &Self| match &lane.desk.lock().state {
            State::Up(wire) => wire.oldest(),
            _ => None,
        };
        if waits(&self).is_some_and(|since| orphaned || since.after(PATIENCE) <= now) {
            self.flush();
            self.take_in();
            self.give_up_late(now);
        }
        match waits(&self) {
            Some(since) => {
                let unguarded = !std::mem::replace(&mut self.desk.lock().guarded, true);
                if unguarded {
                    self.guard(since.after(patience).max(now.after(patience / 2)));
                }
            }
            None if orphaned => self.orphan(),
            None => (),
        }
    }
}
