//! Slot: one acquisition of a client, and the results that its user has got so far.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use locktender::Loss;
use locktender::internals::clock::Tick;
use locktender::internals::protocol::{AcquirePath, CallId, Grant, Manner, Recipe};
use locktender::op::HistoryEntry;
use locktender::op::job::Ending;

use super::clock::Instant;
use super::shadow::Shadow;

/// The kind of a holder's call, with its promise.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Validity shall then reach this tick, or the end that `max_hold` allows.
    Extend {
        reach: Tick,
    },
    Release(Manner),
    /// Of an attempt of a job.
    End,
    HandOver,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) id: CallId,
    pub(super) kind: Kind,
    pub(super) at: Instant,
    /// The time for which its process had been stopped before.
    pub(super) stopped: u64,
}

/// The way in which its user ended a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    Released,
    HandedOver,
    Abandoned,
    Closed,
}

pub(super) struct Slot {
    pub(super) machine: AcquirePath,
    /// Of one that began on the fast path.
    pub(super) shadow: Option<Shadow>,
    pub(super) recipe: Arc<Recipe>,
    pub(super) name: usize,
    pub(super) worker: usize,
    pub(super) started: Instant,
    pub(super) stopped: u64,
    /// The instant of the next wake; `timer` is the number of its timer.
    pub(super) wake_set: Instant,
    pub(super) timer: u32,
    /// The number of inputs at one instant.
    pub(super) brought: (Instant, u32),
    /// The number of rounds that began in one second.
    pub(super) rounds: (Instant, u32),
    /// The end of validity that the handle gives; `valid_since` is the start of that answer.
    pub(super) valid_until: Tick,
    pub(super) valid_since: Instant,
    /// The value of the latest round.
    pub(super) owner: Option<Arc<str>>,
    /// Whether the acquire has ended, or its user no longer wants it.
    pub(super) answered: bool,
    pub(super) grant: Option<Grant>,
    /// The first one of several locks with which it was acquired at once; `None` for that one itself.
    pub(super) held_with: Option<usize>,
    pub(super) granted_at: Instant,
    pub(super) loss: Option<Loss>,
    pub(super) gone: Option<Gone>,
    /// Whether an explicit release was begun, and whether its outcome was reported.
    pub(super) released: (bool, bool),
    /// How its user has ended an attempt of a job.
    pub(super) ending: Option<Ending>,
    /// Whether a release has had no answer, and may have been done.
    pub(super) is_unsure: bool,
    /// Whether its last release has had no answer.
    pub(super) is_unheard: bool,
    /// Whether its user was told that an attempt was given back.
    pub(super) is_given_back: bool,
    /// Whether its job was over.
    pub(super) is_over: bool,
    /// Whether the release at the end of the body was answered.
    pub(super) left: bool,
    pub(super) calls: Vec<Pending>,
    pub(super) next_call: CallId,
    /// The number of servers that have confirmed each round of extension; `answered_round` is the round of the last answer.
    pub(super) extended: BTreeMap<u32, usize>,
    pub(super) answered_round: u32,
    /// The span that each round of extension asks for, to the millisecond.
    pub(super) spans: BTreeMap<u32, Duration>,
    /// Whether a server has refused an extension.
    pub(super) refused: bool,
    /// Whether a server has answered to the release that the lock is not ours.
    pub(super) release_refused: bool,
    /// What the server has shown of its history.
    pub(super) shown: Arc<[HistoryEntry]>,
    /// Whether the outcome of the release is decided, also if no caller was notified.
    pub(super) decided: bool,
    /// Whether an acquire has had no answer, and may be read at any time.
    pub(super) unanswered: bool,
    /// The length of its validity at the grant, microseconds.
    pub(super) first_span: u64,
    /// The number of round trips that the first renewal may take.
    pub(super) trips: u64,
}

impl Slot {
    pub(super) fn new(recipe: Arc<Recipe>, machine: AcquirePath, name: usize, worker: usize, now: Instant, stopped: u64) -> Self {
        Self {
            machine,
            shadow: None,
            recipe,
            name,
            worker,
            started: now,
            stopped,
            wake_set: Instant::MAX,
            timer: 0,
            brought: (0, 0),
            rounds: (0, 0),
            valid_until: Tick::default(),
            valid_since: now,
            owner: None,
            answered: false,
            grant: None,
            held_with: None,
            granted_at: 0,
            loss: None,
            gone: None,
            released: (false, false),
            ending: None,
            is_unsure: false,
            is_unheard: false,
            is_given_back: false,
            is_over: false,
            left: false,
            calls: Vec::new(),
            next_call: 0,
            extended: BTreeMap::new(),
            answered_round: 0,
            spans: BTreeMap::new(),
            refused: false,
            release_refused: false,
            shown: Arc::new([]),
            decided: false,
            unanswered: false,
            first_span: 0,
            trips: 1,
        }
    }

    /// Whether it waits for the lock, or its handle says that it is valid.
    pub(super) fn is_live(&self) -> bool {
        !self.answered || self.valid_until > Tick::default()
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.answered && !self.recipe.busy_is_none
    }

    pub(super) fn call(&mut self, kind: Kind, at: Instant, stopped: u64) -> CallId {
        self.next_call += 1;
        self.calls.push(Pending { id: self.next_call, kind, at, stopped });
        self.next_call
    }

    pub(super) fn end_call(&mut self, id: CallId) -> Option<Pending> {
        let at = self.calls.iter().position(|call| call.id == id)?;
        Some(self.calls.remove(at))
    }

    pub(super) fn ttl(&self) -> Duration {
        self.recipe.options.ttl
    }
}
