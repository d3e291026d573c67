//! A lane that runs as one task of a runtime.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Sleep, sleep};

use crate::clock::Tick;
use crate::op::Failure;
use crate::server::redis::connection::connection::{Lane, State};
use crate::server::redis::connection::health::Health;
use crate::server::redis::connection::listener::{Audience, Hearing};
use crate::server::redis::connection::pipeline::Job;
use crate::server::redis::connection::subscriber::Ear;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::aside::Ending;
use crate::server::redis::transport::handshake::greet;
use crate::server::redis::transport::link::{Event, Link};

/// Operations taken from the inbox at once, and so at most in one write.
const BATCH: usize = 256;

/// What a server tells its lane.
pub(crate) enum Message {
    Submit(Job),
    Warm,
    Listen(Hearing),
    GiveUp,
    Close,
}

/// What a state brings.
enum News {
    Connected(Box<Result<Link, Failure>>),
    Link(Event),
}

/// Runs a lane until the server is closed or dropped. Its connections leave messages with the `audience`; without one it
/// can't listen.
pub(crate) async fn run(
    settings: Arc<Settings>,
    mut inbox: UnboundedReceiver<Message>,
    health: Arc<Health>,
    audience: Option<Audience>,
) {
    let host = Host { settings: Arc::clone(&settings), audience: audience.clone() };
    let mut lane = Lane::<Link>::new(settings, health, move |settings| {
        let (settings, audience) = (Arc::clone(settings), audience.clone());
        Box::pin(async move { Ok(Link::new(greet(&settings).await?, settings.response_timeout, audience)) })
    });
    let mut batch = Vec::with_capacity(BATCH);
    let mut alarm: Pin<Box<Sleep>> = Box::pin(sleep(Duration::ZERO));
    let mut alarm_at = Tick::NEVER;
    loop {
        let due = lane.due();
        if due < alarm_at {
            // Most operations are answered long before the alarm they would have set, so it is only ever moved forward.
            alarm.as_mut().reset(tokio::time::Instant::now() + due.since(Tick::now()));
            alarm_at = due;
        }
        tokio::select! {
            biased;
            news = next(&mut lane.state) => match news {
                News::Connected(attempt) => lane.attempted(*attempt),
                News::Link(Event::Landed(number, result)) => lane.landed(number, result),
                News::Link(Event::Broken(error)) => lane.broken(error.as_ref()),
            },
            Some(ending) = ending(&mut lane.ear), if lane.ear.is_some() => lane.end_aside(&ending),
            count = inbox.recv_many(&mut batch, BATCH), if !lane.is_closing() => host.take(&mut lane, &mut inbox, &mut batch, count),
            () = &mut alarm, if alarm_at != Tick::NEVER => {
                alarm_at = Tick::NEVER;
                lane.overdue(Tick::now());
            }
        }
        if lane.is_over() {
            return lane.end();
        }
    }
}

/// Waits for what a state brings. Cancel safe.
async fn next(state: &mut State<Link>) -> News {
    match state {
        State::Down => pending().await,
        State::Connecting(attempt) => News::Connected(Box::new(attempt.await)),
        State::Up(link) => News::Link(link.next().await),
    }
}

/// Waits for the end of the ear's second connection. Cancel safe.
async fn ending(ear: &mut Option<Ear>) -> Option<Ending> {
    match ear {
        Some(ear) => Some(ear.ending().await),
        None => None,
    }
}

/// What the task of a lane knows besides.
struct Host {
    settings: Arc<Settings>,
    audience: Option<Audience>,
}

impl Host {
    fn take(&self, lane: &mut Lane<Link>, inbox: &mut UnboundedReceiver<Message>, batch: &mut Vec<Message>, count: usize) {
        let now = Tick::now();
        // None at all: the server was dropped.
        let mut closes = count == 0;
        for message in batch.drain(..) {
            match message {
                Message::Submit(job) => lane.accept(job, now),
                Message::Warm => lane.warm(),
                Message::Listen(hearing) => self.listen(lane, hearing, now),
                Message::GiveUp => lane.give_up(now),
                Message::Close => {
                    closes = true;
                    lane.close(now);
                }
            }
        }
        if closes {
            lane.close(now);
            inbox.close();
            while let Ok(message) = inbox.try_recv() {
                if let Message::Submit(job) = message {
                    lane.accept(job, now);
                }
            }
        }
        lane.pursue(now);
    }

    fn listen(&self, lane: &mut Lane<Link>, hearing: Hearing, now: Tick) {
        let hearing = Arc::new(hearing);
        // Without an audience, or with another listener, there is nobody to hear it.
        if !lane.is_closing() && self.audience.as_ref().is_some_and(|audience| audience.set(Arc::clone(&hearing)).is_ok()) {
            lane.listen(Ear::new(hearing, Arc::clone(&self.settings)), now);
        }
    }
}
