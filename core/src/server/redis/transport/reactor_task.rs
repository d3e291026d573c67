//! A lane whose connection the calling threads read and write themselves.
//!
//! Who submits writes, and reads what is there; who waits drives (see [`drive`](crate::io::reactor)). Only connecting is left to the
//! I/O thread: resolving a name, shaking hands.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use mio::Token;
use tokio::runtime::Handle;

use crate::clock::Tick;
use crate::io::reactor::{Handler, Reactor};
use crate::io::runtime::sends_later;
use crate::op::Failure;
use crate::server::redis::connection::connection::{Lane, State};
use crate::server::redis::connection::health::Health;
use crate::server::redis::connection::pipeline::Job;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::direct_link::DirectLink;
use crate::server::redis::transport::handshake::greet;
use crate::sync::Mutex;

/// What the poller said.
const MOVED: u8 = 1;
const HANGS_UP: u8 = 2;

/// An attempt to connect, on another thread, may end in the moment in which an operation that waits for it is due. Why it
/// failed says more than that it was too late.
const LAST_WORD: Duration = Duration::from_millis(20);

/// How long an event loop has to send what was submitted.
const SENT_SOON: Duration = Duration::from_millis(20);

enum Message {
    Submit(Job),
    Connected(Box<Result<DirectLink, Failure>>),
    GiveUp,
    Close,
}

/// The lane. Any thread may bring a message; whoever finds nobody at it works the inbox off, the others leave theirs and go.
pub(crate) struct Direct {
    drive: Arc<Reactor>,
    inbox: Mutex<Vec<Message>>,
    events: AtomicU8,
    lane: Mutex<Lane<DirectLink>>,
    due: AtomicU64,
    busy: AtomicBool,
    /// Itself, from a close to the end of what may still leave then.
    kept: Mutex<Option<Arc<Self>>>,
}

impl Direct {
    /// A lane of `drive`, connected on `host`.
    pub(crate) fn new(settings: &Arc<Settings>, health: &Arc<Health>, host: &Handle, drive: &Arc<Reactor>) -> Arc<Self> {
        drive.add(|token| {
            Arc::new_cyclic(|direct: &Weak<Self>| {
                let (direct, host) = (direct.clone(), host.clone());
                let connect = move |settings: &Arc<Settings>| {
                    host.spawn(connect(Arc::clone(settings), direct.clone(), token));
                };
                Self {
                    drive: Arc::clone(drive),
                    inbox: Mutex::default(),
                    events: AtomicU8::new(0),
                    lane: Mutex::new(Lane::new(Arc::clone(settings), Arc::clone(health), connect)),
                    due: AtomicU64::new(u64::MAX),
                    busy: AtomicBool::new(false),
                    kept: Mutex::default(),
                }
            })
        })
    }

    /// Sends an operation that this thread, or one like it, waits for.
    pub(crate) fn submit(&self, job: Job) {
        self.drive.note();
        let mut inbox = self.inbox.lock();
        inbox.push(Message::Submit(job));
        let first = inbox.len() == 1;
        drop(inbox);
        if !sends_later() {
            self.attend();
        } else if first {
            // Should the loop be blocked before it sends, the I/O thread does it.
            self.due.fetch_min(Tick::now().after(SENT_SOON).as_micros(), Ordering::SeqCst);
            self.drive.promote_next();
        }
    }

    pub(crate) fn give_up(&self) {
        self.bring(Message::GiveUp);
    }

    pub(crate) fn close(self: &Arc<Self>) {
        *self.kept.lock() = Some(Arc::clone(self));
        self.bring(Message::Close);
    }

    /// Brings what no waiting thread has asked for.
    fn bring(&self, message: Message) {
        self.inbox.lock().push(message);
        self.attend();
        self.drive.promote_next();
    }

    fn work(&self, lane: &mut Lane<DirectLink>) {
        let now = Tick::now();
        let events = self.events.swap(0, Ordering::SeqCst);
        let due = due(lane) <= now;
        if let State::Up(link) = &mut lane.state {
            // An answer isn't late that only nobody has looked for.
            let moved = due || events & MOVED != 0 || link.is_doubtful(now);
            link.notice(moved, events & HANGS_UP != 0);
        }
        while let State::Up(link) = &mut lane.state {
            let Some((number, result)) = link.receive(now) else { break };
            lane.landed(number, result);
        }
        // Later than a connection that has just been found broken: it may be replaced at once.
        let now = Tick::now();
        let messages = std::mem::take(&mut *self.inbox.lock());
        for message in messages {
            match message {
                Message::Submit(job) => lane.accept(job, now),
                Message::Connected(attempt) => lane.attempted(*attempt),
                Message::GiveUp => lane.give_up(now),
                Message::Close => lane.close(now),
            }
        }
        if due {
            lane.overdue(now);
        }
        lane.pursue(now);
        if let State::Up(link) = &mut lane.state
            && let Err(error) = link.flush()
        {
            lane.broken(Some(&error));
        }
        if lane.is_over() {
            lane.end();
            let kept = self.kept.lock().take();
            drop(kept);
        }
    }
}

/// When a lane has to be attended to.
fn due(lane: &Lane<DirectLink>) -> Tick {
    match lane.state {
        State::Down if lane.is_over() => Tick::NEVER,
        State::Connecting(()) => lane.due().after(LAST_WORD),
        _ => lane.due(),
    }
}

impl Handler for Direct {
    fn notice(&self, event: &mio::event::Event) {
        let hangs_up = if event.is_read_closed() || event.is_error() { HANGS_UP } else { 0 };
        self.events.fetch_or(MOVED | hangs_up, Ordering::SeqCst);
    }

    fn attend(&self) {
        loop {
            // Who is at it looks again when it is done.
            let Some(mut lane) = self.lane.try_lock() else { return };
            self.work(&mut lane);
            let busy = matches!(&lane.state, State::Up(link) if link.is_busy());
            let due = due(&lane);
            self.busy.store(busy, Ordering::SeqCst);
            let before = self.due.swap(due.as_micros(), Ordering::SeqCst);
            drop(lane);
            if due.as_micros() < before {
                self.drive.is_due(due);
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

/// Connects on the I/O thread, and hands the socket over.
async fn connect(settings: Arc<Settings>, direct: Weak<Direct>, token: Token) {
    let greeted = greet(&settings).await;
    if let Some(direct) = direct.upgrade() {
        let link =
            greeted.and_then(|greeted| DirectLink::new(greeted, direct.drive.registry(), token, settings.response_timeout));
        direct.bring(Message::Connected(Box::new(link)));
    }
}
