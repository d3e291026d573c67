//! Tokio task: a connection that runs as one task of a runtime.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::yield_now;
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
use crate::server::redis::transport::{carry_out, is_little};

/// The most inputs that are taken from the inbox at once, and so written at once.
const BATCH: usize = 256;

/// Into how many parts all that is under way is divided. A part is answered, then what the callers sent meanwhile is written once it is as much
/// as a part, and so on.
const PARTS: usize = 8;

/// How long other tasks may run between two parts of the answers. Where they take longer, the rest is answered at once: the callers have
/// waited long enough.
const PATIENCE: Duration = Duration::from_micros(500);

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
    /// How many operations lie in the buffers; the largest number if they are to be written in any case.
    unwritten: usize,
    /// Whether the server is closed.
    closes: bool,
}

/// What the task has to do next.
#[allow(clippy::large_enum_variant, reason = "it is moved once, and what a socket brings is the usual one")]
enum Event {
    Socket(Input),
    /// So many inputs of callers.
    Inputs(usize),
    Alarm,
    /// All that could run before has run, and nothing was added to what lies unwritten.
    Idle,
}

/// Runs a connection until the server is closed or dropped.
pub(crate) async fn run(settings: Arc<Settings>, mut inbox: UnboundedReceiver<Input>, primary: Arc<Primary>) {
    let connection = Connection::new(Arc::clone(&settings), Arc::clone(&primary), fastrand::u64(..)).in_parts(PARTS);
    let (slots, effects) = (Default::default(), Vec::new());
    let mut task = Task { settings, primary, connection, slots, effects, unwritten: 0, closes: false };
    let mut batch = Vec::with_capacity(BATCH);
    let mut alarm: Pin<Box<Sleep>> = Box::pin(sleep(Duration::ZERO));
    let mut alarm_at = Tick::NEVER;
    let mut is_patient = true;
    while !task.connection.is_over() {
        let due = task.connection.wake_at();
        if due < alarm_at {
            // Most operations are answered long before the alarm that they would have set, so the alarm is only ever moved forward.
            alarm.as_mut().reset(tokio::time::Instant::now() + due.since(Tick::now()));
            alarm_at = due;
        }
        if !task.connection.has_replies() {
            is_patient = true;
        } else if !task.closes {
            if is_patient {
                let before = Tick::now();
                behind_the_others().await;
                is_patient = Tick::now().since(before) <= PATIENCE;
            }
            while batch.len() < BATCH
                && let Ok(input) = inbox.try_recv()
            {
                batch.push(input);
            }
            task.take_in(&mut batch, &mut inbox);
        }
        let mut has_waited = false;
        let event = poll_fn(|context| {
            if let Poll::Ready(input) = task.poll(context) {
                return Poll::Ready(Event::Socket(input));
            }
            if !task.closes
                && let Poll::Ready(count) = inbox.poll_recv_many(context, &mut batch, BATCH)
            {
                return Poll::Ready(Event::Inputs(count));
            }
            if alarm_at != Tick::NEVER && alarm.as_mut().poll(context).is_ready() {
                return Poll::Ready(Event::Alarm);
            }
            if !task.holds_back() {
                return Poll::Pending;
            }
            if std::mem::replace(&mut has_waited, true) {
                return Poll::Ready(Event::Idle);
            }
            // Wakes the task when no other one can run.
            pin!(yield_now()).poll(context).map(|()| Event::Idle)
        });
        match event.await {
            Event::Socket(input) => task.bring(Tick::now(), input),
            Event::Inputs(count) => {
                // No input at all: the server was dropped.
                if count == 0 {
                    batch.push(Input::Close);
                }
                task.take_in(&mut batch, &mut inbox);
            }
            Event::Alarm => {
                alarm_at = Tick::NEVER;
                task.bring(Tick::now(), Input::Wake);
            }
            Event::Idle => task.unwritten = usize::MAX,
        }
    }
}

/// Lets all tasks run that can run now.
async fn behind_the_others() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Task {
    /// Brings all inputs of a batch. If a close is among them, it brings those after it, too, and no more can be sent.
    fn take_in(&mut self, batch: &mut Vec<Input>, inbox: &mut UnboundedReceiver<Input>) {
        let now = Tick::now();
        let closes = batch.iter().any(|input| matches!(input, Input::Close));
        let submitted = batch.iter().filter(|input| matches!(input, Input::Submit(_))).count();
        self.unwritten = self.unwritten.saturating_add(submitted);
        batch.drain(..).for_each(|input| self.bring(now, input));
        if closes {
            self.closes = true;
            inbox.close();
            while let Ok(input) = inbox.try_recv() {
                self.bring(now, input);
            }
        }
    }

    /// Whether what lies in the buffers is kept for more.
    fn holds_back(&self) -> bool {
        is_little(self.unwritten, self.connection.under_way(), PARTS) && !self.closes
    }

    fn bring(&mut self, now: Tick, input: Input) {
        self.connection.handle(now, input, &mut self.effects);
        let (settings, primary, slots) = (&self.settings, &self.primary, &mut self.slots);
        carry_out(&mut self.effects, primary, &Io::Task, |effect| match effect {
            Effect::Open(role) => {
                let settings = Arc::clone(settings);
                slots[role as usize] = Slot::Opening(Box::pin(async move { dial(&settings).await }));
            }
            Effect::Drop(role) => slots[role as usize] = Slot::Empty,
            Effect::Linger => slots[Role::Lingering as usize] = std::mem::take(&mut slots[Role::Operations as usize]),
            Effect::Look(peer) => drop(tokio::spawn(look(Arc::clone(settings), Arc::clone(primary), Some(peer)))),
            Effect::Complete(..) | Effect::Report(_) => {}
        });
    }

    /// Writes the bytes that the sockets take, and waits for the next event of a socket. Dropping the future loses nothing.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Input> {
        let holds_back = self.holds_back();
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
                Slot::Open(socket) => {
                    let is_for_operations = role == Role::Operations;
                    let has_replies = is_for_operations && self.connection.has_replies();
                    let Some(buffers) = self.connection.buffers(role) else { continue };
                    if !(is_for_operations && holds_back) {
                        socket.write(buffers, context);
                    }
                    if is_for_operations && buffers.unwritten().is_empty() {
                        self.unwritten = 0;
                    }
                    if has_replies {
                        return Poll::Ready(Input::Read(role, 0));
                    }
                    match socket.poll_read(buffers, context) {
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
        let (slots, effects) = (Default::default(), Vec::new());
        let mut task = Task { settings, primary, connection, slots, effects, unwritten: 0, closes: false };
        let (inbox_sender, mut inbox) = unbounded_channel();
        let (sender, answers) = channel();
        let completion = Completion::new(move |answer| sender.send(answer).unwrap());
        let request = Request::new(Op::Examine, Tick::NEVER);
        assert!(inbox_sender.send(Input::Submit(InFlight::new(request, completion))).is_ok());
        task.take_in(&mut vec![Input::Close], &mut inbox);
        assert!(task.closes);
        assert_eq!(answers.try_recv().unwrap().unwrap_err().kind, FailureKind::Closed);
        assert!(inbox_sender.is_closed());
    }
}
