//! Events: the events of a client's locks and servers.

use std::sync::{Arc, Mutex};

use locktender::{Client, ClientBuilder, EventKind, LockEvent};

use crate::{PATIENCE, eventually};

/// The events of one client, so far.
#[derive(Clone, Default)]
pub struct Events(Arc<Mutex<Vec<LockEvent>>>);

impl Events {
    /// A client, and its events.
    pub fn of(builder: ClientBuilder) -> (Client, Self) {
        let events = Self::default();
        let seen = events.clone();
        let sink = move |event: &LockEvent| seen.0.lock().unwrap().push(event.clone());
        (builder.sink(Arc::new(sink)).build().unwrap(), events)
    }

    /// The number of events of this kind.
    pub fn count(&self, kind: EventKind) -> usize {
        self.0.lock().unwrap().iter().filter(|event| event.kind == kind).count()
    }

    /// How many acquires of waiters that were notified have ended with the lock.
    pub fn notified(&self) -> usize {
        self.0.lock().unwrap().iter().filter(|event| event.notified_ago.is_some()).count()
    }

    /// The last event of this kind.
    pub fn last(&self, kind: EventKind) -> Option<LockEvent> {
        self.0.lock().unwrap().iter().rev().find(|event| event.kind == kind).cloned()
    }

    /// Waits until there are so many events of this kind.
    pub fn at_least(&self, kind: EventKind, times: usize) {
        eventually(&format!("{times} times {}", kind.as_str()), PATIENCE, || self.count(kind) >= times);
    }

    /// Waits for so many more events of this kind.
    pub fn more(&self, kind: EventKind, times: usize) {
        self.at_least(kind, self.count(kind) + times);
    }

    /// Waits until a renewal is confirmed that begins after this call. The second one from now does.
    pub fn next_renewal(&self) {
        self.more(EventKind::Renewed, 2);
    }
}
