//! Holder: it waits for a lock, and gives it back. A signal ends the wait, and a person at a terminal sees for whom it waits.

use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::vec;

use locktender::{Call, Client, Code, Error, Hold, LockInfo};
use nix::sys::signal::Signal;

use super::end::Ending;
use super::events::{Event, Events};
use super::run_options::LockOptions;
use crate::exit;
use crate::messages::{Messages, in_words};
use crate::parent::{is_held_by_parent, waits_for_itself};
use crate::shown;

/// An acquire that takes longer is a wait that is worth a message.
pub(super) const SOON: Duration = Duration::from_millis(200);

/// How long a program that has ended waits for the release of its lock.
pub(super) const RELEASE: Duration = Duration::from_secs(2);

/// A person at a terminal reads after this time that the lock is waited for.
const LONG: Duration = Duration::from_secs(2);

/// Why a call gave nothing.
pub(super) enum AcquireFailure {
    Signal(Signal),
    Error(Error),
    /// The lock is held by the `locktender` that runs this one.
    Own,
}

/// Prepares a lock of whatever kind, runs what is to be done with it, and gives the exit code, unless this process ends by a signal.
pub(super) fn held<L>(
    lock_options: &LockOptions,
    lock: impl FnOnce(&Client) -> Result<L, Error>,
    run: impl FnOnce(&Holder<'_>, &L) -> Ending,
) -> u8 {
    let messages = lock_options.messages();
    let (client, lock) = match lock_options.servers.client().and_then(|client| lock(&client).map(|lock| (client, lock))) {
        Ok(prepared) => prepared,
        Err(error) => {
            messages.failure(&error);
            return exit::USAGE;
        }
    };
    let holder = Holder { client: &client, lock_options, messages, events: Events::new() };
    let ending = match holder.events.watch_signals() {
        Ok(()) => run(&holder, &lock),
        Err(error) => {
            holder.messages.error("CANNOT_RUN", &format!("can't receive signals: {error}"));
            exit::INTERNAL.into()
        }
    };
    // A lock that came too late is given back. Without a server it expires.
    let _ = client.close_blocking();
    holder.events.interrupt().map_or(ending, Ending::from).carry_out()
}

/// Who waits for a lock, and holds it.
pub(super) struct Holder<'a> {
    client: &'a Client,
    pub(super) lock_options: &'a LockOptions,
    pub(super) messages: Messages,
    pub(super) events: Events,
}

impl Holder<'_> {
    /// Waits for the answer to a call on a lock, for a signal at most.
    pub(super) fn waited<T: Send + 'static>(&self, call: Call<T>) -> Result<T, AcquireFailure> {
        let (sender, (reply, answer)) = (self.events.sender(), mpsc::channel());
        let cancel = call.then(move |answer| {
            let _ = reply.send(answer);
            let _ = sender.send(Event::Answered);
        });
        let began = Instant::now();
        let mut looks = [SOON, LONG].into_iter();
        let mut next = looks.next();
        loop {
            let pause = next.map_or(Duration::MAX, |at| at.saturating_sub(began.elapsed()));
            match self.events.next_alone(pause) {
                Ok(Event::Answered) => {
                    if let Ok(answer) = answer.try_recv() {
                        return answer.map_err(AcquireFailure::Error);
                    }
                }
                Ok(Event::Signal(signal)) => {
                    cancel.cancel();
                    return Err(AcquireFailure::Signal(signal));
                }
                // Beside others that hold it the wait may end.
                Ok(Event::Seen(Some(holder))) if holder.holder_count == 1 && is_held_by_parent(&holder.owner) => {
                    cancel.cancel();
                    return Err(AcquireFailure::Own);
                }
                Ok(Event::Seen(holder)) => self.print_holder(holder.as_deref(), began.elapsed()),
                Err(RecvTimeoutError::Timeout) => {
                    next = looks.next();
                    self.look();
                }
                Ok(_) | Err(RecvTimeoutError::Disconnected) => (),
            }
        }
    }

    /// Asks who holds the lock.
    fn look(&self) {
        look_at(self.client.clone(), self.lock_options.names.clone().into_iter(), None, self.events.sender());
    }

    fn print_holder(&self, holder: Option<&LockInfo>, waited: Duration) {
        let by =
            holder.map(|holder| format!(", held by {} for {}", shown::holder(holder), shown::age(holder))).unwrap_or_default();
        let name = holder.map_or_else(|| self.lock_options.name(), |holder| holder.name.clone());
        let text = format!("waiting for {name:?}{by}");
        if waited < LONG {
            self.messages.progress("waiting", &text, &[]);
        } else if stderr().is_terminal() {
            self.messages.for_a_person(&text);
        }
    }

    /// Waits for a signal for this time.
    pub(super) fn paused(&self, pause: Duration) -> Result<(), Signal> {
        let began = Instant::now();
        loop {
            match self.events.next_alone(pause.saturating_sub(began.elapsed())) {
                Ok(Event::Signal(signal)) => return Err(signal),
                Ok(_) => (),
                Err(_) => return Ok(()),
            }
        }
    }

    /// How this process ends without the lock.
    pub(super) fn on_acquire_failure(&self, failure: &AcquireFailure, busy: u8) -> Ending {
        let error = match failure {
            AcquireFailure::Signal(signal) => return (*signal).into(),
            AcquireFailure::Own => {
                self.messages.error("DEADLOCK", &waits_for_itself(&self.lock_options.name()));
                return busy.into();
            }
            AcquireFailure::Error(error) => error,
        };
        let code = if error.code() == Code::AcquireTimeout { busy } else { exit::code_of(error) };
        if code == 0 {
            // Who asks for this code is content with it, and cron sends a mail for any message.
            self.messages.progress("busy", &in_words(error), &[]);
        } else {
            self.messages.failure(error);
        }
        code.into()
    }

    pub(super) fn release(&self, held: &Hold) {
        match held.release().wait_for(RELEASE) {
            Some(Ok(release)) => {
                let outcome = release.outcome.as_str();
                let text = format!("{:?}: {outcome}", name_of(held));
                self.messages.progress("released", &text, &[("outcome", outcome.into())]);
            }
            Some(Err(error)) => self.messages.progress("released", &in_words(&error), &[]),
            None => self.messages.progress("unreleased", "no server answers: the lock ends with its ttl", &[]),
        }
    }
}

/// Asks who holds these locks: sees the parent of this program, if it holds any of them, or else the holder of the first that is held.
fn look_at(client: Client, mut names: vec::IntoIter<String>, first: Option<Box<LockInfo>>, sender: Sender<Event>) {
    let Some(name) = names.next() else { return drop(sender.send(Event::Seen(first))) };
    let lock = client.lock(name);
    lock.inspect().then(move |seen| {
        let seen = seen.ok().flatten().map(Box::new);
        let is_own = seen.as_ref().is_some_and(|holder| is_held_by_parent(&holder.owner));
        let first = if is_own { seen } else { first.or(seen) };
        look_at(client, if is_own { Vec::new().into_iter() } else { names }, first, sender);
    });
}

/// The name of the lock that is held; of several locks all names.
pub(super) fn name_of(held: &Hold) -> String {
    held.names().join(", ")
}

/// The fences, in the order of the names.
pub(super) fn fences_of(held: &Hold) -> String {
    held.fences().iter().map(|(_, fence)| fence.to_string()).collect::<Vec<_>>().join(" ")
}
