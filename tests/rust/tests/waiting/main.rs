//! Waiting for a lock on real servers: it is handed over at once, to the right waiter, and no other waiter is woken.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod closing;
mod fair;
mod forged;
mod handover;
mod leaders;
mod leaving;
mod lost;
mod many;
mod multi;
mod outage;
mod quorum;
mod several;

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use locktender::{Client, ClientOptions, EventKind, Hold, Lock, LockEvent};
use locktender_tests::{Connection, Events, RealServer, Reply};

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A client, and what happened to its locks.
pub(crate) struct Watched {
    pub(crate) client: Client,
    pub(crate) events: Events,
}

impl Watched {
    pub(crate) fn open(url: &str) -> Self {
        Self::open_with(url, |_| ())
    }

    pub(crate) fn open_with(url: &str, configure: impl FnOnce(&mut ClientOptions)) -> Self {
        let (client, events) = Events::of(Client::builder().urls(url).configure(configure));
        Self { client, events }
    }

    pub(crate) fn count(&self, kind: EventKind) -> usize {
        self.events.count(kind)
    }

    pub(crate) fn last(&self, kind: EventKind) -> Option<LockEvent> {
        self.events.last(kind)
    }

    /// Waits until so many acquires of this client are in the queue.
    pub(crate) fn queued(&self, count: usize) {
        self.events.at_least(EventKind::Queued, count);
    }
}

/// Acquires on a thread of its own.
pub(crate) fn acquire(lock: Lock) -> JoinHandle<Hold> {
    std::thread::spawn(move || lock.acquire_blocking().unwrap())
}

/// Acquires on a thread of its own, and gives the lock back at once.
pub(crate) fn visit(lock: Lock) -> JoinHandle<()> {
    std::thread::spawn(move || drop(lock.acquire_blocking().unwrap().release().blocking().unwrap()))
}

/// Acquires on a thread of its own, notes `who`, holds the lock for `hold` and gives it back.
pub(crate) fn pass_through(lock: Lock, who: usize, hold: Duration, order: &mpsc::Sender<usize>) -> JoinHandle<()> {
    let order = order.clone();
    std::thread::spawn(move || {
        let held = lock.acquire_blocking().unwrap();
        order.send(who).unwrap();
        std::thread::sleep(hold);
        held.release().blocking().unwrap();
    })
}

/// How many entries and clients the lock's queue has.
pub(crate) fn queue_length(server: &RealServer, name: &str) -> i64 {
    server.command(&["ZCARD", &format!("{{{name}}}:~lt:queue")]).int()
}

/// How many entries it has, of clients alive and dead.
pub(crate) fn entries(server: &RealServer, name: &str) -> i64 {
    server.command(&["ZCOUNT", &format!("{{{name}}}:~lt:queue"), "0", "+inf"]).int()
}

/// How often the server was asked to run a script.
pub(crate) fn scripts_run(connection: &mut Connection) -> u64 {
    let Ok(Reply::Text(stats)) = connection.command(&["INFO", "commandstats"]) else { panic!("no statistics") };
    let calls = |line: &str| {
        let rest = line.strip_prefix("cmdstat_evalsha:calls=").or_else(|| line.strip_prefix("cmdstat_eval:calls="))?;
        rest.split(',').next()?.parse::<u64>().ok()
    };
    stats.lines().filter_map(calls).sum()
}
