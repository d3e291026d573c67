//! A lane that runs as one task of a runtime.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Sleep, sleep};

use super::connect::{Settings, connect};
use super::health::Health;
use super::lane::{Lane, State};
use super::link::{Event, Link};
use super::sent::Job;
use crate::clock::Tick;
use crate::server::Failure;

/// Operations taken from the inbox at once, and so at most in one write.
const BATCH: usize = 256;

/// What a server tells its lane.
pub(super) enum Message {
    Submit(Job),
    Close,
}

/// What a state brings.
enum News {
    Connected(Result<Link, Failure>),
    Link(Event),
}

/// Runs a lane until the server is closed or dropped.
pub(super) async fn run(settings: Arc<Settings>, mut inbox: UnboundedReceiver<Message>, health: Arc<Health>) {
    let mut lane = Lane::<Link>::new(settings, health, |settings| {
        let settings = Arc::clone(settings);
        Box::pin(async move { connect(&settings).await })
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
                News::Connected(attempt) => lane.attempted(attempt),
                News::Link(Event::Landed(number, result)) => lane.landed(number, result),
                News::Link(Event::Broken) => lane.broken(None),
            },
            count = inbox.recv_many(&mut batch, BATCH), if !lane.is_closing() => take(&mut lane, &mut inbox, &mut batch, count),
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
        State::Connecting(attempt) => News::Connected(attempt.await),
        State::Up(link) => News::Link(link.next().await),
    }
}

fn take(lane: &mut Lane<Link>, inbox: &mut UnboundedReceiver<Message>, batch: &mut Vec<Message>, count: usize) {
    let now = Tick::now();
    // None at all: the server was dropped.
    let mut closes = count == 0;
    for message in batch.drain(..) {
        match message {
            Message::Submit(job) => lane.accept(job, now),
            Message::Close => {
                closes = true;
                lane.close(now);
            }
        }
    }
    if closes {
        lane.close(now);
        inbox.close();
        while let Ok(Message::Submit(job)) = inbox.try_recv() {
            lane.accept(job, now);
        }
    }
    lane.pursue(now);
}
