//! A slot: one acquisition of a client, and the results that its user has got so far.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use locktender::Loss;
use locktender::internals::clock::Tick;
use locktender::internals::protocol::{Acquisition, CallId, Grant, Manner, Recipe};

use super::clock::Instant;

/// What a call of a holder was, and what it was promised.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Validity shall then reach this tick, or what `max_hold` allows.
    Extend {
        reach: Tick,
    },
    Release(Manner),
    HandOver,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) id: CallId,
    pub(super) kind: Kind,
    pub(super) at: Instant,
    /// How long its process had been stopped before.
    pub(super) stopped: u64,
}

/// What ends a hold by its user's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    Released,
    HandedOver,
    Abandoned,
    Closed,
}

pub(super) struct Slot {
    pub(super) machine: Acquisition,
    pub(super) recipe: Arc<Recipe>,
    pub(super) name: usize,
    pub(super) worker: usize,
    pub(super) started: Instant,
    pub(super) stopped: u64,
    /// When the next wake is set for, and by which timer.
    pub(super) wake_set: Instant,
    pub(super) timer: u32,
    /// How often it was brought something at this instant.
    pub(super) brought: (Instant, u32),
    /// How many rounds it began in which second.
    pub(super) rounds: (Instant, u32),
    /// What the handle says its validity ends at, and since when.
    pub(super) valid_until: Tick,
    pub(super) valid_since: Instant,
    /// The value of the latest round.
    pub(super) owner: Option<Arc<str>>,
    /// The acquire has ended, or its user no longer wants it.
    pub(super) answered: bool,
    pub(super) grant: Option<Grant>,
    pub(super) granted_at: Instant,
    pub(super) loss: Option<Loss>,
    pub(super) gone: Option<Gone>,
    /// An explicit release was begun; its outcome was told.
    pub(super) released: (bool, bool),
    /// Leaving was answered.
    pub(super) left: bool,
    pub(super) calls: Vec<Pending>,
    pub(super) next_call: CallId,
    /// How many servers have confirmed which round of extension; the round of the last answer.
    pub(super) extended: BTreeMap<u32, usize>,
    pub(super) answered_round: u32,
    /// What each round of extension asks for, to the millisecond.
    pub(super) spans: BTreeMap<u32, Duration>,
    /// A server has refused an extension.
    pub(super) refused: bool,
    /// A server has answered to the release that the lock is not ours.
    pub(super) release_refused: bool,
    /// An acquire has had no answer, and may be read at any time.
    pub(super) unanswered: bool,
    /// How long it was valid when it was granted, microseconds.
    pub(super) first_span: u64,
    /// How many trips the first renewal may take.
    pub(super) trips: u64,
}

impl Slot {
    pub(super) fn new(recipe: Arc<Recipe>, machine: Acquisition, name: usize, worker: usize, now: Instant, stopped: u64) -> Self {
        Self {
            machine,
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
            granted_at: 0,
            loss: None,
            gone: None,
            released: (false, false),
            left: false,
            calls: Vec::new(),
            next_call: 0,
            extended: BTreeMap::new(),
            answered_round: 0,
            spans: BTreeMap::new(),
            refused: false,
            release_refused: false,
            unanswered: false,
            first_span: 0,
            trips: 1,
        }
    }

    /// Whether it waits for the lock, or its handle says it is valid.
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
