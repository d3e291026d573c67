//! The queue of future events, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use locktender::internals::protocol::Input;
use locktender::internals::redis::Role;

use super::clock::Instant;
use super::faults::Fault;

/// Which of the sockets of a client's connections to a server: the how-manieth connection, and what the socket is for.
pub(super) type Way = (usize, Role);

/// Something that happens at an instant.
#[derive(Debug)]
pub(super) enum Happening {
    /// Bytes reach a server.
    Arrive {
        client: usize,
        server: usize,
        way: Way,
        conn: u32,
        bytes: Vec<u8>,
    },
    /// Bytes reach a client; the message that they are part of.
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
    /// A connection's timer; one that was set anew since still rings.
    Alarm {
        client: usize,
        server: usize,
        way: usize,
        timer: u32,
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
    /// How many of them are no connection's.
    others: usize,
}

impl Queue {
    pub(super) fn add(&mut self, at: Instant, happening: Happening) {
        self.added += 1;
        self.others += usize::from(!is_of_a_connection(&happening));
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
        let happening = self.happenings[place].take()?;
        self.others -= usize::from(!is_of_a_connection(&happening));
        Some((at, happening))
    }

    /// Whether nothing is left but what connections do for themselves, which has no end: they are asked whether they live.
    pub(super) fn is_idle(&self) -> bool {
        self.others == 0
    }
}

fn is_of_a_connection(happening: &Happening) -> bool {
    use Happening::{Alarm, Arrive, Broken, Connected, Return};
    matches!(happening, Alarm { .. } | Arrive { .. } | Broken { .. } | Connected { .. } | Return { .. })
}
