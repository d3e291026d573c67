//! The queue of future events, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use locktender::internals::protocol::Input;
use locktender::op::Answer;

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
    /// An acquisition's timer; one that was set anew since still rings.
    Wake {
        client: usize,
        slot: usize,
        timer: u32,
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
    /// Another library's client does the next thing with a lock.
    Foreign {
        name: usize,
    },
    /// A client closes.
    Close {
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

/// Happenings by instant; those of one instant in the order in which they were added.
#[derive(Default)]
pub(super) struct Queue {
    /// When, the how-manieth, and its place in `happenings`: small, because a heap moves what it sorts.
    heap: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    happenings: Vec<Option<Happening>>,
    free: Vec<usize>,
    added: u64,
}

impl Queue {
    pub(super) fn add(&mut self, at: Instant, happening: Happening) {
        self.added += 1;
        let place = self.free.pop().unwrap_or(self.happenings.len());
        if place == self.happenings.len() {
            self.happenings.push(Some(happening));
        } else {
            self.happenings[place] = Some(happening);
        }
        self.heap.push(Reverse((at, self.added, place)));
    }

    pub(super) fn next(&mut self) -> Option<(Instant, Happening)> {
        let Reverse((at, _, place)) = self.heap.pop()?;
        self.free.push(place);
        Some((at, self.happenings[place].take()?))
    }
}
