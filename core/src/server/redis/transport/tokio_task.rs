//! Tokio task: a connection that runs as one task of a runtime.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Sleep, sleep};

use crate::clock::Tick;
use crate::io::reactor::Io;
use crate::op::Failure;
use crate::server::redis::connection::connection::Connection;
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::input::Input;
use crate::server::redis::connection::primary::Primary;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::dial::dial;
use crate::server::redis::transport::look::look;
use crate::server::redis::transport::socket::{OpenSocket, Socket};
use crate::server::redis::transport::{Change, carry_out};

/// The most inputs that are taken from the inbox at once, and so written at once.
const BATCH: usize = 256;

/// How many operations are answered before what callers sent meanwhile is written. Otherwise the server would have nothing to do
/// while a long batch of answers is handled, and the client nothing after it.
const PART: usize = 8;

const ROLES: [Role; 2] = [Role::Operations, Role::Lingering];

/// The state of one socket of the connection.
#[derive(Default)]
enum Slot {
    #[default]
    Empty,
    Opening(Pin<Box<dyn Future<Output = Result<Socket, Failure>> + Send>>),
    Open(OpenSocket),
}

/// The connection with its sockets.
struct Task {
    settings: Arc<Settings>,
    primary: Arc<Primary>,
    connection: Connection,
    /// The sockets, by role.
    slots: [Slot; ROLES.len()],
    effects: Vec<Effect>,
}

/// Runs a connection until the server is closed or dropped.
pub(crate) async fn run(settings: Arc<Settings>, mut inbox: UnboundedReceiver<Input>, primary: Arc<Primary>) {
    let connection = Connection::new(Arc::clone(&settings), Arc::clone(&primary), fastrand::u64(..)).in_parts(PART);
    let mut task = Task { settings, primary, connection, slots: Default::default(), effects: Vec::new() };
    let mut batch = Vec::with_capacity(BATCH);
    let mut alarm: Pin<Box<Sleep>> = Box::pin(sleep(Duration::ZERO));
    let mut alarm_at = Tick::NEVER;
    let mut closes = false;
    while !task.connection.is_over() {
        let due = task.connection.wake_at();
        if due < alarm_at {
            // Most operations are answered long before the alarm that they would have set, so the alarm is only ever moved forward.
            alarm.as_mut().reset(tokio::time::Instant::now() + due.since(Tick::now()));
            alarm_at = due;
        }
        if task.connection.has_replies() && !closes {
            while batch.len() < BATCH
                && let Ok(input) = inbox.try_recv()
            {
                batch.push(input);
            }
            closes = task.take_in(&mut batch, &mut inbox);
        }
        tokio::select! {
            biased;
            input = poll_fn(|context| task.poll(context)) => task.bring(Tick::now(), input),
            count = inbox.recv_many(&mut batch, BATCH), if !closes => {
                // No input at all: the server was dropped.
                if count == 0 {
                    batch.push(Input::Close);
                }
                closes = task.take_in(&mut batch, &mut inbox);
            }
            () = &mut alarm, if alarm_at != Tick::NEVER => {
                alarm_at = Tick::NEVER;
                task.bring(Tick::now(), Input::Wake);
            }
        }
    }
}

impl Task {
    /// Brings all inputs of a batch. If a close is among them, it brings those after it, too, and no more can be sent. Gives whether that
    /// is so.
    fn take_in(&mut self, batch: &mut Vec<Input>, inbox: &mut UnboundedReceiver<Input>) -> bool {
        let now = Tick::now();
        let closes = batch.iter().any(|input| matches!(input, Input::Close));
        batch.drain(..).for_each(|input| self.bring(now, input));
        if closes {
            inbox.close();
            while let Ok(input) = inbox.try_recv() {
                self.bring(now, input);
            }
        }
        closes
    }

    fn bring(&mut self, now: Tick, input: Input) {
        self.connection.handle(now, input, &mut self.effects);
        let (settings, primary, slots) = (&self.settings, &self.primary, &mut self.slots);
        let socket = |change| match change {
            Change::Open(role) => {
                let settings = Arc::clone(settings);
                slots[role as usize] = Slot::Opening(Box::pin(async move { dial(&settings).await }));
            }
            Change::Drop(role) => slots[role as usize] = Slot::Empty,
            Change::Linger => slots[Role::Lingering as usize] = std::mem::take(&mut slots[Role::Operations as usize]),
        };
        let look = |peer| drop(tokio::spawn(look(Arc::clone(settings), Arc::clone(primary), Some(peer))));
        carry_out(&mut self.effects, primary, &Io::Task, socket, look);
    }

    /// Writes the bytes that the sockets take, and waits for the next event of a socket. Dropping the future loses nothing.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Input> {
        for (role, slot) in ROLES.into_iter().zip(&mut self.slots) {
            let input = match slot {
                Slot::Empty => continue,
                Slot::Opening(opening) => match opening.as_mut().poll(context) {
                    Poll::Pending => continue,
                    Poll::Ready(Ok(socket)) => {
                        if role == Role::Operations {
                            self.connection.reached(socket.peer());
                        }
                        *slot = Slot::Open(OpenSocket::new(socket));
                        Input::Opened(role)
                    }
                    Poll::Ready(Err(failure)) => {
                        *slot = Slot::Empty;
                        Input::Unopened(role, failure)
                    }
                },
                Slot::Open(socket) if role == Role::Operations && self.connection.has_replies() => {
                    if let Some(buffers) = self.connection.buffers(role) {
                        socket.write(buffers, context);
                    }
                    Input::Read(role, 0)
                }
                Slot::Open(socket) => {
                    let Some(buffers) = self.connection.buffers(role) else { continue };
                    match socket.poll(buffers, context) {
                        Poll::Pending => continue,
                        Poll::Ready(Ok(0)) => Input::Closed(role, None),
                        Poll::Ready(Ok(count)) => Input::Read(role, count),
                        Poll::Ready(Err(error)) => Input::Closed(role, Some(error)),
                    }
                }
            };
            return Poll::Ready(input);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::op::{FailureKind, Op};
    use crate::options::ClientOptions;
    use crate::server::redis::connection::in_flight::InFlight;
    use crate::server::{Completion, Request};

    #[test]
    fn what_was_sent_after_a_close_is_refused_at_once_and_no_more_can_be_sent() {
        let settings = Settings::new("redis://localhost", &ClientOptions::default(), Duration::from_secs(1), None).unwrap();
        let (settings, primary) = (Arc::new(settings), Arc::new(Primary::of(None, |_| ())));
        let connection = Connection::new(Arc::clone(&settings), Arc::clone(&primary), 7);
        let mut task = Task { settings, primary, connection, slots: Default::default(), effects: Vec::new() };
        let (inbox_sender, mut inbox) = unbounded_channel();
        let (sender, answers) = channel();
        let completion = Completion::new(move |answer| sender.send(answer).unwrap());
        let request = Request::new(Op::Examine, Tick::NEVER);
        assert!(inbox_sender.send(Input::Submit(InFlight::new(request, completion))).is_ok());
        assert!(task.take_in(&mut vec![Input::Close], &mut inbox));
        assert_eq!(answers.try_recv().unwrap().unwrap_err().kind, FailureKind::Closed);
        assert!(inbox_sender.is_closed());
    }
}
