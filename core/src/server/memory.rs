//! Memory server: the state machine behind a mutex, and the listeners of its channels.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::clock::{self, Tick};
use crate::machine::{self, Env, State};
use crate::op::{Answer, Failure, FailureKind, Op};
use crate::process::PerProcess;
use crate::server::{Completion, Listener, Notice, Request, Server, WeakListener};
use crate::sync::Mutex;

/// A lock server in this process's memory, the one behind `memory://name`.
///
/// It behaves like a Redis that never fails, and every operation completes at once. Its locks
/// exclude the clients of this process only. A forked child begins without any lock.
///
/// ```
/// # #[cfg(feature = "testing")] {
/// # use std::sync::Arc;
/// use locktender::testing::MemoryServer;
///
/// let client = locktender::Client::builder().server(Arc::new(MemoryServer::new("cron"))).build()?;
/// client.lock("nightly").acquire_blocking()?.release_blocking()?;
/// # }
/// # Ok::<(), locktender::Error>(())
/// ```
pub struct MemoryServer {
    address: String,
    clock: ServerClock,
    memory: PerProcess<Memory>,
}

/// The data of a server in one process. A child would inherit a copy whose mutex another thread may have locked.
#[derive(Default)]
struct Memory {
    state: Mutex<State>,
    listeners: Mutex<HashMap<String, Vec<WeakListener>>>,
}

/// The servers by their names.
type Servers = Mutex<HashMap<String, Arc<MemoryServer>>>;

/// Every named server of this process. They are always kept, as a server's data outlives its clients.
static SERVERS: PerProcess<Servers> = PerProcess::new();

impl MemoryServer {
    /// A separate server, which no other client can reach.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::at(format!("memory://{name}"))
    }

    pub(crate) fn at(address: String) -> Self {
        Self { address, clock: ServerClock::start(), memory: PerProcess::new() }
    }

    /// The process's server of this name, made at the first call: that of the URL `memory://<name>`.
    #[doc(hidden)]
    #[must_use]
    pub fn named(name: &str) -> Arc<Self> {
        let servers = SERVERS.get_or_make(Servers::default);
        let mut servers = servers.lock();
        servers.entry(name.to_owned()).or_insert_with(|| Arc::new(Self::new(name))).clone()
    }

    fn memory(&self) -> Arc<Memory> {
        self.memory.get_or_make(Memory::default)
    }

    /// Notifies the listeners of `channel`, in the order in which they began to listen. They are called here, and outside of
    /// every mutex.
    pub(crate) fn publish(&self, channel: &str, payload: &str) {
        let listening: Vec<Listener> = {
            let memory = self.memory();
            let mut listeners = memory.listeners.lock();
            let Some(here) = listeners.get_mut(channel) else { return };
            // The server outlives its clients, so it forgets listeners that they no longer keep.
            here.retain(|listener| listener.strong_count() > 0);
            let listening = here.iter().filter_map(WeakListener::upgrade).collect();
            if here.is_empty() {
                listeners.remove(channel);
            }
            listening
        };
        for listener in listening {
            listener(Notice::Message(payload.to_owned()));
        }
    }

    /// Delivers the messages that the operations so far have published.
    pub(crate) fn deliver(&self) {
        let messages = self.with(|state, _| state.take_published());
        for message in messages {
            self.publish(&message.channel, &message.payload);
        }
    }

    pub(crate) fn apply(&self, op: &Op) -> Answer {
        Ok(self.with(|state, env| machine::serve(state, op, env)))
    }

    /// Reads the keys, or changes them, as one operation.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State, &Env<'_>) -> T) -> T {
        let memory = self.memory();
        let mut state = memory.state.lock();
        // Read under the mutex, so that time never goes back from one operation to the next. The run id never changes:
        // this server doesn't restart without losing everything, its marker included.
        let env = Env { now_us: self.clock.at(Tick::now()), replid: "memory", known_as: "memory", is_renamed: false };
        act(&mut state, &env)
    }
}

impl Server for MemoryServer {
    fn address(&self) -> &str {
        &self.address
    }

    fn submit(&self, request: Request, completion: Completion) {
        let answer = if Tick::now() > request.deadline { Err(too_late()) } else { self.apply(&request.op) };
        completion.complete_by(&request.io, answer);
        self.deliver();
    }

    fn clock(&self, at: Tick) -> Option<u64> {
        Some(self.clock.at(at))
    }

    fn listen(&self, channel: &str, listener: Listener) -> bool {
        self.memory().listeners.lock().entry(channel.to_owned()).or_default().push(Arc::downgrade(&listener));
        listener(Notice::Listening);
        true
    }

    #[cfg(feature = "testing")]
    fn moves_with_clock(&self) -> bool {
        true
    }
}

pub(crate) fn too_late() -> Failure {
    Failure::not_applied(FailureKind::TooLate, "the deadline passed before the operation was sent")
}

impl fmt::Debug for MemoryServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryServer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A wall clock that is read once, and then continues with the boot clock: expiry must not follow a change of the wall clock.
#[derive(Clone, Copy, Debug)]
struct ServerClock {
    wall_us: u64,
    tick: Tick,
}

impl ServerClock {
    fn start() -> Self {
        Self { wall_us: clock::wall_micros(), tick: Tick::now() }
    }

    fn at(self, now: Tick) -> u64 {
        self.wall_us.saturating_add(clock::micros(now.since(self.tick)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{Keys, Kind};
    use crate::op::holder::named::{in_short, named};
    use crate::op::{LockOp, Verb, Verdict};
    use std::sync::mpsc;

    fn ask(server: &MemoryServer, owner: &str, deadline: Tick) -> Answer {
        let keys = Arc::new(Keys::new(Kind::Exclusive, "", "k", true).unwrap());
        let op = Op::Lock(LockOp {
            keys,
            by: named(owner).into(),
            verb: Verb::Acquire {
                ttl_ms: 60_000,
                proposal: 0,
                adopt: None,
                fair: false,
                place: None,
                quorum_config: None,
                job: None,
            },
        });
        let (sender, receiver) = mpsc::channel();
        server.submit(Request::new(op, deadline), Completion::new(move |answer| sender.send(answer).unwrap()));
        receiver.try_recv().expect("completed inside submit").map(in_short)
    }

    #[test]
    fn clients_of_one_name_share_their_locks() {
        let here = MemoryServer::named("shared");
        assert_eq!(ask(&here, "a", Tick::NEVER).unwrap().verdict, Verdict::Vote);
        assert_eq!(ask(&MemoryServer::named("shared"), "b", Tick::NEVER).unwrap().holder(), Some("a"));
        assert_eq!(ask(&MemoryServer::named("other"), "b", Tick::NEVER).unwrap().verdict, Verdict::Vote);
    }

    fn subscription() -> (Listener, mpsc::Receiver<Notice>) {
        let (sender, receiver) = mpsc::channel();
        (Arc::new(move |notice| sender.send(notice).unwrap()), receiver)
    }

    #[test]
    fn listeners_receive_what_is_published_on_their_channel() {
        let server = MemoryServer::new("news");
        let ((one, first), (two, second), (other, elsewhere)) = (subscription(), subscription(), subscription());
        assert!(server.listen("a", Arc::clone(&one)) && server.listen("a", Arc::clone(&two)));
        assert!(server.listen("b", Arc::clone(&other)));
        server.publish("a", "hello");
        server.publish("nobody", "hello");
        for received in [first, second] {
            assert_eq!(received.try_iter().collect::<Vec<_>>(), [Notice::Listening, Notice::Message("hello".into())]);
        }
        assert_eq!(elsewhere.try_iter().collect::<Vec<_>>(), [Notice::Listening]);
    }

    #[test]
    fn a_listener_that_was_dropped_receives_nothing_more_and_is_forgotten() {
        let server = MemoryServer::new("gone");
        let (listener, received) = subscription();
        server.listen("a", Arc::clone(&listener));
        drop(listener);
        server.publish("a", "late");
        assert_eq!(received.iter().collect::<Vec<_>>(), [Notice::Listening], "its sender is dropped with it");
        assert!(server.memory().listeners.lock().is_empty());
    }

    #[test]
    fn a_listener_may_use_the_server() {
        let server = Arc::new(MemoryServer::new("again"));
        let (within, (sender, receiver)) = (Arc::clone(&server), mpsc::channel());
        let listener: Listener = Arc::new(move |notice| {
            if notice == Notice::Message("one".into()) {
                within.publish("a", "two");
                sender.send(ask(&within, "a", Tick::NEVER).unwrap().verdict).unwrap();
            }
        });
        server.listen("a", Arc::clone(&listener));
        server.publish("a", "one");
        assert_eq!(receiver.try_recv(), Ok(Verdict::Vote));
    }

    #[test]
    fn an_operation_past_its_deadline_is_not_done() {
        let server = MemoryServer::new("late");
        let failure = ask(&server, "a", Tick::from_micros(0)).unwrap_err();
        assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::TooLate, false));
        assert_eq!(ask(&server, "b", Tick::NEVER).unwrap().verdict, Verdict::Vote);
    }
}
