//! Events: what the thread that guards a command gets, by signals, calls, the lock and the command.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use locktender::LockInfo;
use locktender::host::sync::Mutex;
use nix::sys::signal::Signal;

use super::family;
use super::signals::{To, receive, suffer, take};
use super::status::Change;

/// Those that end or stop a program unless it handles them, and that of a terminal's new size; the child gets them.
const FORWARDED: [Signal; 8] = {
    use Signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH};
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP, SIGWINCH]
};

/// What happens while a lock is waited for and held.
pub(super) enum Event {
    Signal(Signal),
    /// There is an answer to a call.
    Answered,
    /// The hold with this fence was lost: a leader has one after the other.
    Lost(u64),
    /// A child of this process has changed: the command, or what that left behind.
    Child(i32, Change),
    /// No child is left.
    Childless,
    /// Who holds the lock that is waited for.
    Seen(Option<Box<LockInfo>>),
    /// The standard input has ended.
    InputEnded,
    /// All output was read, maybe before the end of the command is reported.
    Read,
}

/// The senders, and the thread that listens.
pub(super) struct Events {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
    /// Locked by the thread that waits for children, and while one is started: if that fails, the standard library waits for it.
    children: Arc<Mutex<()>>,
}

impl Events {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::channel();
        Self { sender, receiver, children: Arc::default() }
    }

    /// For one sender.
    pub(super) fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// Sends from a thread.
    pub(super) fn send_from(&self, name: &str, send: impl FnOnce(Sender<Event>) + Send + 'static) -> io::Result<()> {
        let sender = self.sender();
        thread::Builder::new().name(format!("locktender-{name}")).spawn(move || send(sender)).map(drop)
    }

    /// Starts a child of this process.
    pub(super) fn start<T>(&self, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let _children = self.children.lock();
        start()
    }

    /// Sends signals from now on, and what becomes of children. A signal that this program was started to ignore stays ignored.
    pub(super) fn watch_signals(&self) -> io::Result<()> {
        let caught = FORWARDED.into_iter().filter(|signal| take(*signal));
        let (sender, children) = (self.sender(), Arc::clone(&self.children));
        // Nobody could wait for a child whose end is ignored. A signal that is caught is not ignored.
        receive(caught.chain([Signal::SIGCHLD]), move |signal| {
            if signal == Signal::SIGCHLD {
                let _children = children.lock();
                send_changes(&sender);
            } else {
                let _ = sender.send(Event::Signal(signal));
            }
        })
    }

    /// The next one, while the command runs.
    pub(super) fn next(&self, patience: Duration) -> Result<Event, RecvTimeoutError> {
        self.receiver.recv_timeout(patience)
    }

    /// The next one, while no command runs: Ctrl-Z stops this process.
    pub(super) fn next_alone(&self, patience: Duration) -> Result<Event, RecvTimeoutError> {
        loop {
            match self.next(patience) {
                Ok(Event::Signal(Signal::SIGTSTP)) => suffer(Signal::SIGTSTP, To::Itself),
                Ok(Event::Signal(Signal::SIGWINCH)) => (),
                next => return next,
            }
        }
    }

    /// The signal of Ctrl-C, if that was typed after the command's end. Its shell got it, too.
    pub(super) fn interrupt(&self) -> Option<Signal> {
        self.receiver.try_iter().find_map(|next| match next {
            Event::Signal(signal @ (Signal::SIGINT | Signal::SIGQUIT)) => Some(signal),
            _ => None,
        })
    }
}

/// Sends what has become of children. Those that were adopted are gone then, too, if they have ended.
fn send_changes(sender: &Sender<Event>) {
    loop {
        match family::next_change() {
            Ok(Some((process, change))) => drop(sender.send(Event::Child(process, change))),
            Ok(None) => return,
            Err(_) => return drop(sender.send(Event::Childless)),
        }
    }
}
