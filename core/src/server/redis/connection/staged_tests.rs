//! Staged: a connection in a test, with its effects and the bytes that it wrote, without a socket.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::connection::Connection;
use crate::clock::Tick;
use crate::name::{Keys, Kind};
use crate::op::{Answer, FailureKind, LockOp, Op, QueuePlace, QuorumConfig, Verb};
use crate::options::ClientOptions;
use crate::server::redis::ServerState;
use crate::server::redis::commands::script::Script;
use crate::server::redis::connection::effect::{Effect, Role};
use crate::server::redis::connection::in_flight::InFlight;
use crate::server::redis::connection::input::Input;
use crate::server::redis::connection::primary::Primary;
use crate::server::redis::settings::Settings;
use crate::server::redis::transport::provided::Provided;
use crate::server::redis::url::Target;
use crate::server::{Completion, Request};

pub(super) const ENTRY: &str = "f:c:1 host=h pid=1";
pub(super) const TIMEOUT: Duration = Duration::from_secs(1);
pub(super) const START: Tick = Tick::from_micros(1_000_000);

/// The answer of a server outside a quorum to the handshake. It doesn't permit `INFO`.
pub(in crate::server::redis) const HANDSHAKE: &str =
    "-NOPERM\r\n-NOPERM\r\n+OK\r\n*5\r\n$2\r\nok\r\n:1\r\n:0\r\n$-1\r\n:-2\r\n-NOPERM\r\n-NOPERM\r\n";

/// A connection, with its effects and the bytes that it wrote.
pub(super) struct Test {
    pub(super) connection: Connection,
    pub(super) now: Tick,
    out: Vec<Effect>,
}

impl Test {
    pub(super) fn new() -> Self {
        Self::of(Arc::new(Primary::new(|_| ())))
    }

    /// A test with one of several connections to a server.
    pub(super) fn of(primary: Arc<Primary>) -> Self {
        Self::with(primary, None)
    }

    /// A test with one of several connections to a server, which has a marker or none.
    pub(super) fn with(primary: Arc<Primary>, quorum_config: Option<QuorumConfig>) -> Self {
        Self::made(primary, quorum_config, None)
    }

    /// A test with a connection whose credentials a provider gives.
    pub(super) fn provided(provided: &Arc<Provided>) -> Self {
        Self::made(Arc::new(Primary::new(|_| ())), None, Some(Arc::clone(provided)))
    }

    fn made(primary: Arc<Primary>, quorum_config: Option<QuorumConfig>, provided: Option<Arc<Provided>>) -> Self {
        let target = Target::parse("redis://localhost", &ClientOptions::default()).unwrap();
        let settings = Settings {
            target,
            name: "locktender".into(),
            quorum_config,
            connect_timeout: TIMEOUT,
            response_timeout: TIMEOUT,
            replicas: None,
            answered: AtomicBool::default(),
            has_no_transactions: AtomicBool::default(),
            provided,
            in_cluster: false,
            callers_runtime: true,
        };
        let connection = Connection::new(Arc::new(settings), primary, 7);
        Self { connection, now: START, out: Vec::new() }
    }

    /// A test with a connection that is up, while nothing is held.
    pub(super) fn connected() -> Self {
        let mut test = Self::new();
        test.bring(Input::KeepWarm);
        test.connect();
        test
    }

    pub(super) fn bring(&mut self, input: Input) {
        self.connection.handle(self.now, input, &mut self.out);
    }

    pub(super) fn submit(&mut self, op: Op) -> Receiver<Answer> {
        self.submit_until(op, Tick::NEVER)
    }

    pub(super) fn submit_until(&mut self, op: Op, deadline: Tick) -> Receiver<Answer> {
        let (sender, received) = channel();
        let completion = Completion::new(move |answer| drop(sender.send(answer)));
        self.bring(Input::Submit(InFlight::new(Request::new(op, deadline), completion)));
        received
    }

    /// The effects since the last call, by name. Operations end.
    pub(super) fn effects(&mut self) -> Vec<&'static str> {
        let name = |effect| match effect {
            Effect::Open(Role::Operations) => "open",
            Effect::Look(_) => "look",
            Effect::Drop(Role::Operations) => "drop",
            Effect::Open(Role::Lingering) => "open to linger",
            Effect::Drop(Role::Lingering) => "drop lingering",
            Effect::Linger => "linger",
            Effect::Complete(completion, answer) => {
                completion.complete(answer);
                "complete"
            }
            Effect::Report(ServerState::Failed(_)) => "failed",
            Effect::Report(ServerState::Recovered) => "recovered",
            Effect::Report(ServerState::FailedOver(_)) => "failed over",
            Effect::Report(ServerState::Warning(_)) => "warning",
        };
        self.out.drain(..).map(name).collect()
    }

    /// Answers the attempt to connect that was begun.
    pub(super) fn connect(&mut self) {
        assert_eq!(self.effects(), ["open"]);
        self.bring(Input::Opened(Role::Operations));
        assert!(self.wrote().contains("SETNAME"), "who we are is said first");
        self.replies(HANDSHAKE);
        // A connection that breaks stays down until it is wanted.
        self.connection.kept_warm_until = Tick::default();
    }

    pub(super) fn replies(&mut self, bytes: &str) {
        self.replies_on(Role::Operations, bytes);
    }

    pub(super) fn replies_on(&mut self, role: Role, bytes: &str) {
        let Some(buffers) = self.connection.buffers(role) else { panic!("there is no socket to say it on") };
        buffers.room()[..bytes.len()].copy_from_slice(bytes.as_bytes());
        self.bring(Input::Read(role, bytes.len()));
    }

    pub(super) fn wrote(&mut self) -> String {
        self.wrote_on(Role::Operations)
    }

    pub(super) fn wrote_on(&mut self, role: Role) -> String {
        let Some(buffers) = self.connection.buffers(role) else { return String::new() };
        let written = String::from_utf8_lossy(buffers.unwritten()).into_owned();
        buffers.wrote(written.len());
        written
    }

    /// The operations that were written since the last time, with their owners.
    pub(super) fn sent(&mut self) -> Vec<String> {
        self.sent_on(Role::Operations)
    }

    pub(super) fn sent_on(&mut self, role: Role) -> Vec<String> {
        let written = format!("\r\n{}", self.wrote_on(role));
        let mut sent = Vec::new();
        for command in written.split("\r\n*").skip(1) {
            let words: Vec<&str> = command.split("\r\n").skip(2).step_by(2).collect();
            let script = |op: &Op| {
                let script = Script::of(op).unwrap();
                [false, true].iter().any(|header| words[1] == *script.sha(*header) || words[1] == script.text(*header))
            };
            let known = [acquire(), release("", None), Op::inspect(keys())];
            let name = known.iter().find(|op| script(op)).map_or("?", Op::name);
            sent.push([name].iter().chain(words[8..].iter().take(2)).copied().collect::<Vec<_>>().join(" "));
        }
        sent
    }

    pub(super) fn after(&mut self, span: Duration) -> &mut Self {
        self.now = self.now.after(span);
        self
    }

    /// Lets time pass until something is due.
    pub(super) fn until_due(&mut self) -> Duration {
        let due = self.connection.wake_at();
        assert_ne!(due, Tick::NEVER);
        let span = due.since(self.now);
        self.now = self.now.max(due);
        self.bring(Input::Wake);
        span
    }
}

pub(super) fn keys() -> Arc<Keys> {
    Arc::new(Keys::new(Kind::Exclusive, "", "orders:42", true).unwrap())
}

pub(super) fn acquire() -> Op {
    let place = QueuePlace { entry: ENTRY.into(), arrival: 0, stays: false };
    Op::Lock(LockOp {
        keys: keys(),
        by: "ours".into(),
        verb: Verb::Acquire {
            ttl_ms: 1_000,
            proposal: 1,
            adopt: None,
            fair: true,
            place: Some(place),
            quorum_config: None,
            job: None,
        },
    })
}

pub(in crate::server::redis) fn release(owner: &str, leave: Option<&str>) -> Op {
    Op::Lock(LockOp { keys: keys(), by: owner.into(), verb: Verb::Release { leave: leave.map(Arc::from), kept_ms: 0 } })
}

/// The answer to a release of this owner.
pub(in crate::server::redis) fn released() -> &'static str {
    "*5\r\n$2\r\nok\r\n:1\r\n:7\r\n$-1\r\n:-2\r\n"
}

pub(super) fn kind(received: &Receiver<Answer>) -> Option<(FailureKind, bool)> {
    received.try_recv().ok().map(|answer| answer.unwrap_err()).map(|failure| (failure.kind, failure.maybe_applied))
}
