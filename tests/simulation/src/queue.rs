//! Queue: the future events of a run, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::Instant;
use super::faults::Fault;
use super::observers::Observe;
use super::role::Role;
use locktender::internals::protocol::Input;

/// One socket of a client's connections to a server: the number of the connection, and the purpose of the socket.
pub(super) type Way = (usize, Role);

/// An event at an instant.
#[derive(Debug)]
pub(super) enum Event {
    /// Bytes reach a server.
    Arrive {
        client: usize,
        server: usize,
        way: Way,
        conn: u32,
        bytes: Vec<u8>,
    },
    /// Bytes reach a client, with the message that they are part of.
    Return {
        client: usize,
        server: usize,
        way: Way,
        conn: u32,
        bytes: Vec<u8>,
        message: Option<String>,
    },
    /// A client notices that its connection is gone.
    Broken {
        client: usize,
        server: usize,
        way: Way,
        conn: u32,
    },
    /// An attempt to connect ends.
    Connected {
        client: usize,
        server: usize,
        way: Way,
        attempt: u32,
    },
    /// A connection's timer rings, also if it was set again since then.
    Alarm {
        client: usize,
        server: usize,
        way: usize,
        timer: u32,
    },
    /// The timer rings of what listens to a server, also if it was set again since then.
    Listen {
        client: usize,
        server: usize,
        timer: u32,
    },
    /// An acquisition gets an input.
    Bring {
        client: usize,
        slot: usize,
        input: Input,
    },
    /// An acquisition's timer rings, also if it was set again since then.
    Wake {
        client: usize,
        slot: usize,
        timer: u32,
    },
    /// A user takes its next step.
    Step {
        client: usize,
        worker: usize,
        planned: u32,
    },
    /// A process continues, and writes the requests that it decided before it was stopped.
    Resume {
        client: usize,
    },
    /// A client of another library takes its next step with a lock.
    Foreign {
        name: usize,
    },
    /// A client closes.
    Close {
        client: usize,
    },
    /// A closed client's connections close.
    LetGo {
        client: usize,
    },
    /// Something happens to an observer.
    Observe {
        observer: usize,
        what: Observe,
    },
    Fault(Fault),
    /// A crashed server is back, or a replica is a primary now.
    Restart {
        server: usize,
    },
    /// An old primary answers no more.
    Demote {
        server: usize,
        node: u32,
    },
    /// Users begin no new work, and faults are over.
    Settle,
    /// A sample checks the whole state.
    Sample,
}

/// Events by instant. Events of one instant have the order in which they were added.
#[derive(Default)]
pub(super) struct Queue {
    /// The instant, a running number, and the place in `events`: small, because a heap moves the values that it sorts.
    heap: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    events: Vec<Option<Event>>,
    free: Vec<usize>,
    added: u64,
    /// The number of the event that was taken last.
    taken: u64,
    /// The number of events that are not about connections or observers.
    others: usize,
}

impl Queue {
    pub(super) fn add(&mut self, at: Instant, event: Event) {
        self.added += 1;
        self.insert(at, self.added, event);
    }

    /// Adds the event that was taken last once more, for a later time. There, it comes before what was added after it: a
    /// connection keeps the order of its bytes, however often its server or client is stopped.
    pub(super) fn defer(&mut self, at: Instant, event: Event) {
        self.insert(at, self.taken, event);
    }

    fn insert(&mut self, at: Instant, number: u64, event: Event) {
        self.others += usize::from(!is_endless(&event));
        let place = self.free.pop().unwrap_or(self.events.len());
        if place == self.events.len() {
            self.events.push(Some(event));
        } else {
            self.events[place] = Some(event);
        }
        self.heap.push(Reverse((at, number, place)));
    }

    pub(super) fn next(&mut self) -> Option<(Instant, Event)> {
        let Reverse((at, number, place)) = self.heap.pop()?;
        self.taken = number;
        self.free.push(place);
        let event = self.events[place].take()?;
        self.others -= usize::from(!is_endless(&event));
        Some((at, event))
    }

    /// Whether only events of the connections themselves and of observers are left. Those have no end: idle connections are asked whether
    /// they live, and observers look.
    pub(super) fn is_idle(&self) -> bool {
        self.others == 0
    }
}

fn is_endless(event: &Event) -> bool {
    use Event::{Alarm, Arrive, Broken, Connected, Listen, Observe, Return};
    matches!(
        event,
        Alarm { .. } | Arrive { .. } | Broken { .. } | Connected { .. } | Listen { .. } | Return { .. } | Observe { .. }
    )
}
