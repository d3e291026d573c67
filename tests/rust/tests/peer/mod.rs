//! A false server that speaks enough of the protocol to misbehave exactly where a test wants it.

#![allow(dead_code, unreachable_pub, reason = "every test file uses another part of it")]

pub mod tls;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use locktender::ClientOptions;
use locktender::internals::clock::Tick;
use locktender::internals::name::{Keys, Kind};
use locktender::internals::redis::{RedisServer, ServerState};
use locktender::op::{Answer, LockOp, Op, QuorumConfig, Verb};
use locktender::server::{Completion, Request, Server};
pub use locktender_tests::PATIENCE;

/// What the peer does with a command.
#[derive(Clone, Debug)]
pub enum Act {
    /// Answers it.
    Answer(String),
    /// Answers it, and what came with it, byte by byte.
    Drip(String),
    /// Answers nothing, now or later.
    Silence,
    /// Closes the connection: after the command was received, before any answer.
    Cut,
}

/// What the peer received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The connection, counted from 0.
    pub connection: usize,
    /// Which read of the connection it came with.
    pub read: usize,
    /// The command's words.
    pub words: Vec<String>,
}

impl Received {
    /// Whether the command is about this owner.
    pub fn is_for(&self, owner: &str) -> bool {
        self.words.iter().any(|word| word == owner || *word == named(owner))
    }
}

/// A listening peer. It runs until the test process ends.
pub struct Peer {
    pub url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Peer {
    /// A peer that answers the first words of a connection by itself, and everything else as `act` says.
    pub fn start(act: impl Fn(&Received) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let (log, act) = (Arc::clone(&received), Arc::new(act));
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let (log, act) = (Arc::clone(&log), Arc::clone(&act));
                thread::spawn(move || serve(connection, stream.unwrap(), &log, &*act));
            }
        });
        Self { url, received }
    }

    /// Everything received so far, without the first words of a connection.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

fn serve(connection: usize, mut stream: TcpStream, log: &Mutex<Vec<Received>>, act: &(dyn Fn(&Received) -> Act + Send + Sync)) {
    let (mut pending, mut buffer) = (Vec::new(), vec![0; 1 << 20]);
    stream.set_nodelay(true).unwrap();
    for read in 0.. {
        let Ok(count @ 1..) = stream.read(&mut buffer) else { return };
        pending.extend_from_slice(&buffer[..count]);
        let (mut answers, mut drips) = (String::new(), false);
        while let Some((words, used)) = parse(&pending) {
            pending.drain(..used);
            let received = Received { connection, read, words };
            let decided = match &*received.words[0] {
                "CLIENT" | "AUTH" | "SELECT" => Act::Answer("+OK\r\n".into()),
                "TIME" => Act::Answer("*2\r\n$1\r\n0\r\n$1\r\n1\r\n".into()),
                // It shows no facts about itself.
                "INFO" if received.words.len() == 2 => Act::Answer("-NOPERM\r\n".into()),
                // It has no transactions.
                "MULTI" | "EXEC" if received.words.len() == 1 => Act::Answer("-ERR unknown command\r\n".into()),
                // `greet` is no lock's script: it has one key, the server's marker.
                "EVAL" if received.words[3] == "{~lt}:marker" => Act::Answer(answer("ok", None)),
                _ => {
                    log.lock().unwrap().push(received.clone());
                    act(&received)
                }
            };
            match decided {
                Act::Answer(text) => answers.push_str(&text),
                Act::Drip(text) => {
                    answers.push_str(&text);
                    drips = true;
                }
                Act::Silence => {}
                Act::Cut => return,
            }
        }
        let pieces = answers.as_bytes().chunks(if drips { 1 } else { usize::MAX });
        for piece in pieces {
            if stream.write_all(piece).is_err() {
                return;
            }
        }
    }
}

/// The first command in `bytes` and its length, if it is complete.
fn parse(bytes: &[u8]) -> Option<(Vec<String>, usize)> {
    let line = |at: usize| {
        let end = at + bytes.get(at..)?.windows(2).position(|pair| pair == b"\r\n")?;
        let number = std::str::from_utf8(&bytes[at + 1..end]).unwrap().parse::<usize>().unwrap();
        Some((number, end + 2))
    };
    let (count, mut at) = line(0)?;
    let mut words = Vec::new();
    for _ in 0..count {
        let (length, start) = line(at)?;
        at = start + length + 2;
        words.push(String::from_utf8_lossy(bytes.get(start..at)?.strip_suffix(b"\r\n")?).into_owned());
    }
    Some((words, at))
}

/// The answer to a command that succeeds.
pub fn well(received: &Received) -> Act {
    Act::Answer(success(received))
}

/// The text of that answer. An acquire is the operation that proposes a time. What is not a release shows the owner that it came with.
pub fn success(received: &Received) -> String {
    let number = |at: usize| received.words.get(at).and_then(|word| word.parse::<u64>().ok());
    // An extension has only the key of the lock, its owner, the ttl and the fence.
    if received.words.get(2).is_some_and(|keys| keys == "1") && received.words.len() >= 6 && number(5).is_some() {
        return ":-2\r\n".to_owned();
    }
    let owner = received.words.get(8).map(String::as_str);
    match number(10) {
        Some(1_000_000_000_000_000..) => answer("vote", owner),
        // A release has a waiter or nothing here, the others a time or a fence.
        _ => answer("ok", owner.filter(|_| number(9).is_some())),
    }
}

/// A script's answer with this verdict and nothing else of note.
fn answer(verdict: &str, holder: Option<&str>) -> String {
    let holder = holder.map_or("$-1".to_owned(), |holder| format!("${}\r\n{holder}", holder.len()));
    format!("*5\r\n${}\r\n{verdict}\r\n:1\r\n:1\r\n{holder}\r\n:-2\r\n", verdict.len())
}

/// A runtime like the core's: one I/O thread.
pub struct Host(pub tokio::runtime::Handle);

impl Host {
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        Self(handle)
    }
}

/// A server under test, and the states it reported.
pub struct Subject {
    pub server: Arc<RedisServer>,
    pub states: Receiver<ServerState>,
    pub host: Host,
}

impl Subject {
    pub fn new(url: &str, response_timeout: Duration) -> Self {
        Self::with(url, &ClientOptions::default(), response_timeout, None)
    }

    pub fn with(url: &str, options: &ClientOptions, response_timeout: Duration, quorum_config: Option<QuorumConfig>) -> Self {
        let host = Host::start();
        let (report, states) = channel();
        let on_state = move |state| drop(report.send(state));
        let server = RedisServer::new(url, options, response_timeout, quorum_config, host.0.clone(), on_state).unwrap();
        Self { server, states, host }
    }

    /// Submits an operation that may be sent for a long time.
    pub fn submit(&self, op: Op) -> Pending {
        self.submit_until(op, Tick::now().after(PATIENCE))
    }

    pub fn submit_until(&self, op: Op, deadline: Tick) -> Pending {
        let (answer, answers): (Sender<Answer>, _) = channel();
        let completion = Completion::new(move |received| drop(answer.send(received)));
        self.server.submit(Request::new(op, deadline), completion);
        Pending(answers)
    }

    /// Submits several operations from the I/O thread, as the renewals do: none leaves before the last is there.
    pub fn submit_together(&self, ops: Vec<Op>) -> Vec<Pending> {
        let (pending, pendings) = channel();
        let server = Arc::clone(&self.server);
        self.host.0.spawn(async move {
            for op in ops {
                let (answer, answers): (Sender<Answer>, _) = channel();
                let completion = Completion::new(move |received| drop(answer.send(received)));
                server.submit(Request::new(op, Tick::now().after(PATIENCE)), completion);
                pending.send(Pending(answers)).unwrap();
            }
        });
        pendings.iter().collect()
    }

    /// Submits an operation and waits for its answer.
    pub fn ask(&self, op: Op) -> Answer {
        self.submit(op).wait()
    }
}

/// An answer to come.
pub struct Pending(Receiver<Answer>);

impl Pending {
    pub fn wait(self) -> Answer {
        self.0.recv_timeout(PATIENCE).expect("every completion is called")
    }
}

/// An owner value with this name.
pub fn named(name: &str) -> String {
    format!("host={name} id=0193d1d2-3c4d-7e5f-8a6b-7c8d9e0f1a2b")
}

/// The keys of a lock.
pub fn keys(name: &str) -> Arc<Keys> {
    Arc::new(Keys::new(Kind::Exclusive, "", name, true).unwrap())
}

pub fn acquire(name: &str, owner: &str) -> Op {
    let proposal = std::time::UNIX_EPOCH.elapsed().unwrap().as_micros() as u64;
    Op::Lock(LockOp {
        keys: keys(name),
        by: named(owner).into(),
        verb: Verb::Acquire { ttl_ms: 60_000, proposal, adopt: None, fair: false, place: None, quorum_config: None, job: None },
    })
}

pub fn extend(name: &str, owner: &str, fence: u64) -> Op {
    Op::Lock(LockOp { keys: keys(name), by: named(owner).into(), verb: Verb::Extend { ttl_ms: 60_000, fence } })
}

pub fn release(name: &str, owner: &str) -> Op {
    Op::Lock(LockOp { keys: keys(name), by: named(owner).into(), verb: Verb::Release { leave: None, kept_ms: 0 } })
}
