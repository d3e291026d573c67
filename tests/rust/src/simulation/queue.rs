//! What will happen, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use locktender::protocol::Input;
use locktender::server::Answer;

use super::clock::Instant;
use super::faults::Fault;

/// Something that happens at an instant.
#[derive(Debug)]
pub(super) enum Happening {
    /// A request reaches a server.
    Arrive {
        client: usize,
        server: usize,
        job: usize,
        conn: u32,
    },
    /// An answer reaches a client.
    Return {
        client: usize,
        server: usize,
        job: usize,
        conn: u32,
        answer: Answer,
    },
    /// A client notices that its connection is gone.
    Broken {
        client: usize,
        server: usize,
        conn: u32,
    },
    /// An attempt to connect ends.
    Connected {
        client: usize,
        server: usize,
        attempt: u32,
    },
    /// The pause before the next attempt to connect is over.
    Backoff {
        client: usize,
        server: usize,
    },
    /// A request has waited long enough: to be sent, or for its answer.
    Overdue {
        client: usize,
        server: usize,
        job: usize,
    },
    /// A subscription is confirmed.
    Subscribed {
        client: usize,
        server: usize,
        conn: u32,
    },
    /// A server's message reaches a client.
    Hear {
        client: usize,
        server: usize,
        conn: u32,
        message: String,
    },
    /// Something is brought to an acquisition.
    Bring {
        client: usize,
        slot: usize,
        input: Input,
    },
    /// An acquisition's timer.
    Wake {
        client: usize,
        slot: usize,
    },
    /// A user does the next thing.
    Step {
        client: usize,
        worker: usize,
        turn: u32,
    },
    /// Requests decided before their process was stopped are written when it goes on.
    Resume {
        client: usize,
    },
    /// A closed client's connections are let go.
    LetGo {
        client: usize,
    },
    Fault(Fault),
    /// A crashed server is back.
    Restart {
        server: usize,
    },
    /// Users begin nothing more, faults are over.
    Settle,
    /// Look at everything.
    Sample,
}

struct Entry(Instant, u64, Happening);

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Happenings by instant; those of one instant in the order in which they were added.
#[derive(Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    added: u64,
}

impl Queue {
    pub(super) fn add(&mut self, at: Instant, happening: Happening) {
        self.added += 1;
        self.heap.push(Reverse(Entry(at, self.added, happening)));
    }

    pub(super) fn next(&mut self) -> Option<(Instant, Happening)> {
        self.heap.pop().map(|Reverse(Entry(at, _, happening))| (at, happening))
    }
}
