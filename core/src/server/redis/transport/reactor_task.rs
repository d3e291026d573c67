//! Reactor task: a connection whose sockets the calling threads read and write themselves.
//!
//! A caller that submits an operation writes it itself, and reads the answers that are already there. A caller that waits drives
//! the [`reactor`](crate::io::reactor). Only dialing is left to the I/O thread: resolving a name, TLS.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use mio::Token;
use tokio::runtime::Handle;

use crate::clock::Tick;
use crate::io::reactor::{Handler, Io, Reactor};
use crate::op::Failure;
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::connection::Connection;
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::in_flight::InFlight;
use crate::server::redis::connection::input::Input;
use crate::server::redis::connection::primary::Primary;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::dial::dial;
use crate::server::redis::transport::mio_socket::MioSocket;
use crate::server::redis::transport::{carry_out, is_little};
use crate::sync::Mutex;

/// A notice of the poller: the socket may be readable or writable.
const MOVED: u8 = 1;
const HANGS_UP: u8 = 2;

/// The time for which a late operation still waits for the end of dialing, which runs on another thread. The reason why dialing
/// failed says more than that the operation was too late.
const DIAL_GRACE: Duration = Duration::from_millis(20);

/// The time in which an event loop has to send the operations that were submitted.
const SENT_SOON: Duration = Duration::from_millis(20);

/// From so many operations under way on, an event loop sends a half of them at once, and below a quarter.
const MANY: usize = 32;

/// A socket with the address of its peer, or the reason why there is none.
type Dialed = Result<(MioSocket, Option<SocketAddr>), Failure>;

#[allow(
    clippy::large_enum_variant,
    reason = "nearly all messages are operations, and a box would cost each of them an allocation"
)]
enum Message {
    Bring(Input),
    Dialed(Box<Dialed>),
}

/// The connection. Any thread may bring a message. If no other thread works on the connection, that thread handles the inbox;
/// otherwise it leaves its message there and goes.
pub(crate) struct ReactorTask {
    reactor: Arc<Reactor>,
    inbox: Mutex<Vec<Message>>,
    events: AtomicU8,
    body: Mutex<Body>,
    due: AtomicU64,
    busy: AtomicBool,
    under_way: AtomicUsize,
    /// A reference to itself, from a close to the end of the writes that the close waits for.
    kept: Mutex<Option<Arc<Self>>>,
}

/// The connection with its socket.
struct Body {
    primary: Arc<Primary>,
    connection: Connection,
    socket: Option<MioSocket>,
    lingering: Option<MioSocket>,
    effects: Vec<Effect>,
    dial: Box<dyn Fn() + Send>,
}

impl ReactorTask {
    /// A connection of `reactor`, dialed on `host`.
    pub(crate) fn new(settings: &Arc<Settings>, primary: &Arc<Primary>, host: &Handle, reactor: &Arc<Reactor>) -> Arc<Self> {
        reactor.add(|token| {
            Arc::new_cyclic(|task: &Weak<Self>| {
                let (task, host, target) = (task.clone(), host.clone(), Arc::clone(settings));
                let dial = move || drop(host.spawn(dial_for(Arc::clone(&target), task.clone(), token)));
                let connection = Connection::new(Arc::clone(settings), Arc::clone(primary), fastrand::u64(..));
                let (primary, dial) = (Arc::clone(primary), Box::new(dial));
                Self {
                    reactor: Arc::clone(reactor),
                    inbox: Mutex::default(),
                    events: AtomicU8::new(0),
                    body: Mutex::new(Body { primary, connection, socket: None, lingering: None, effects: Vec::new(), dial }),
                    due: AtomicU64::new(u64::MAX),
                    busy: AtomicBool::new(false),
                    under_way: AtomicUsize::new(0),
                    kept: Mutex::default(),
                }
            })
        })
    }

    /// Sends an operation that this thread or another driving thread waits for.
    pub(crate) fn submit(&self, pending: InFlight) {
        pending.request.io.note(&self.reactor);
        let sends_later = matches!(pending.request.io, Io::Loop(_));
        let mut inbox = self.inbox.lock();
        inbox.push(Message::Bring(Input::Submit(pending)));
        let unsent = inbox.len();
        drop(inbox);
        if !sends_later {
            self.poll(&Io::Threads(None));
        } else if !is_little_of_loop(unsent, self.under_way.load(Ordering::Relaxed) + unsent) {
            self.poll(&Io::Threads(None));
            self.reactor.promote_next();
        } else if unsent == 1 {
            // If the loop is blocked and doesn't send, the I/O thread does.
            self.due.fetch_min(Tick::now().after(SENT_SOON).as_micros(), Ordering::SeqCst);
            self.reactor.promote_next();
        }
    }

    pub(crate) fn close(self: &Arc<Self>) {
        *self.kept.lock() = Some(Arc::clone(self));
        self.bring(Input::Close);
    }

    /// Brings an input that no waiting thread has asked for.
    pub(crate) fn bring(&self, input: Input) {
        self.take(Message::Bring(input));
    }

    fn take(&self, message: Message) {
        self.inbox.lock().push(message);
        self.poll(&Io::Background);
        self.reactor.promote_next();
    }

    fn work(&self, body: &mut Body, io: &Io) {
        let now = Tick::now();
        let events = self.events.swap(0, Ordering::SeqCst);
        let due = body.due() <= now;
        if let Some(socket) = &mut body.socket {
            // A late answer may be there, only unread: so it is read first. And no operation may overtake one that has to be sent
            // again.
            let suspect = body.connection.is_probing() || socket.is_suspect(now);
            socket.notice(due || events & MOVED != 0 || suspect, events & HANGS_UP != 0);
        }
        if let Some(lingering) = &mut body.lingering {
            lingering.notice(due || events & MOVED != 0, events & HANGS_UP != 0);
        }
        body.read(Role::Operations, now, io);
        body.read(Role::Lingering, now, io);
        // Read again, so that it is later than the end of a connection that broke just now: such a connection may be replaced at
        // once.
        let now = Tick::now();
        let messages = std::mem::take(&mut *self.inbox.lock());
        for message in messages {
            match message {
                Message::Bring(input) => body.bring(now, input, io),
                Message::Dialed(dialed) => body.dialed(now, *dialed, io),
            }
        }
        if due {
            body.bring(now, Input::Wake, io);
        }
        body.write(Role::Operations, now, io);
        body.write(Role::Lingering, now, io);
        if body.connection.is_over() {
            let kept = self.kept.lock().take();
            drop(kept);
        }
    }
}

impl Body {
    fn bring(&mut self, now: Tick, input: Input, io: &Io) {
        self.connection.handle(now, input, &mut self.effects);
        let (socket, lingering, dial) = (&mut self.socket, &mut self.lingering, &self.dial);
        carry_out(&mut self.effects, &self.primary, io, |effect| match effect {
            Effect::Open(Role::Operations) => dial(),
            Effect::Drop(Role::Operations) => *socket = None,
            Effect::Linger => *lingering = socket.take(),
            Effect::Drop(Role::Lingering) => *lingering = None,
            // The background's connection looks for a successor.
            _ => (),
        });
    }

    fn dialed(&mut self, now: Tick, dialed: Dialed, io: &Io) {
        match dialed {
            Ok((socket, peer)) => {
                self.connection.reached(peer);
                self.socket = Some(socket);
                self.bring(now, Input::Opened(Role::Operations), io);
            }
            Err(failure) => self.bring(now, Input::Unopened(Role::Operations, failure), io),
        }
    }

    /// The socket of a role, with its buffers.
    fn socket(&mut self, role: Role) -> Option<(&mut MioSocket, &mut Buffers)> {
        let socket = if role == Role::Lingering { &mut self.lingering } else { &mut self.socket };
        socket.as_mut().zip(self.connection.buffers(role))
    }

    /// Reads the bytes that are there.
    fn read(&mut self, role: Role, now: Tick, io: &Io) {
        while let Some((socket, buffers)) = self.socket(role) {
            let input = match socket.read(buffers, now) {
                Ok(None) => return,
                Ok(Some(0)) => Input::Closed(role, None),
                Ok(Some(count)) => Input::Read(role, count),
                Err(error) => Input::Closed(role, Some(error)),
            };
            self.bring(now, input, io);
        }
    }

    /// Writes the bytes that the socket takes. A server that accepts no more bytes may have sent the reason.
    fn write(&mut self, role: Role, now: Tick, io: &Io) {
        let Some((socket, buffers)) = self.socket(role) else { return };
        if let Err(error) = socket.write(buffers) {
            socket.notice(true, true);
            self.read(role, now, io);
            if self.socket(role).is_some() {
                self.bring(now, Input::Closed(role, Some(error)), io);
            }
        }
    }

    /// The time at which the connection must be polled.
    fn due(&self) -> Tick {
        let due = self.connection.wake_at();
        if self.connection.is_opening() { due.after(DIAL_GRACE) } else { due }
    }
}

/// An event loop that watches the reactor looks again: it may have nothing left to watch.
impl Drop for ReactorTask {
    fn drop(&mut self) {
        self.reactor.wake_driver();
    }
}

impl Handler for ReactorTask {
    fn notice(&self, event: &mio::event::Event) {
        let hangs_up = if event.is_read_closed() || event.is_error() { HANGS_UP } else { 0 };
        self.events.fetch_or(MOVED | hangs_up, Ordering::SeqCst);
    }

    fn poll(&self, io: &Io) {
        loop {
            // The thread that works on the connection looks again when it is done.
            let Some(mut body) = self.body.try_lock() else { return };
            self.work(&mut body, io);
            let (busy, due) = (body.connection.is_busy(), body.due());
            self.busy.store(busy, Ordering::SeqCst);
            self.under_way.store(body.connection.under_way(), Ordering::Relaxed);
            let before = self.due.swap(due.as_micros(), Ordering::SeqCst);
            drop(body);
            if due.as_micros() < before {
                self.reactor.is_due(due);
            }
            if self.inbox.lock().is_empty() && self.events.load(Ordering::SeqCst) == 0 {
                return;
            }
        }
    }

    fn due(&self) -> Tick {
        Tick::from_micros(self.due.load(Ordering::SeqCst))
    }

    fn is_busy(&self) -> bool {
        self.busy.load(Ordering::SeqCst)
    }
}

/// Whether an event loop keeps so many unsent operations for more. It does one thing at a time, so that a write costs it more than a task.
const fn is_little_of_loop(unsent: usize, under_way: usize) -> bool {
    is_little(unsent, under_way, if under_way < MANY { 4 } else { 2 })
}

/// Dials on the I/O thread, and hands the socket over.
async fn dial_for(settings: Arc<Settings>, task: Weak<ReactorTask>, token: Token) {
    let dialed = dial(&settings).await;
    if let Some(task) = task.upgrade() {
        let socket = dialed.and_then(|socket| {
            let peer = socket.peer();
            Ok((MioSocket::new(socket, task.reactor.registry(), token)?, peer))
        });
        task.take(Message::Dialed(Box::new(socket)));
    }
}

#[cfg(test)]
#[path = "reactor_task_tests.rs"]
mod socket_tests;

#[cfg(test)]
mod tests {
    use super::is_little_of_loop;

    #[test]
    fn an_event_loop_sends_a_quarter_of_what_is_under_way_and_half_of_much() {
        assert!([(1, 1), (1, 4), (2, 8), (8, 31), (16, 32), (32, 64)].iter().all(|(some, all)| !is_little_of_loop(*some, *all)));
        assert!([(1, 5), (1, 8), (7, 31), (15, 32), (31, 64)].iter().all(|(some, all)| is_little_of_loop(*some, *all)));
    }
}
