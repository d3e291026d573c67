//! Client: the local queues of one process, what it knows of the shards, and its acquisitions.

use std::sync::Arc;

use locktender::internals::protocol::{Acquisition, Recipe};
use locktender::internals::wait::LocalQueues;

use super::users::Task;
use crate::clock::Instant;

pub(super) struct Client {
    pub(super) queues: LocalQueues,
    /// What its clock shows at the begin of the run.
    pub(super) booted: u64,
    /// Whether it is connected to the primary that has taken over.
    pub(super) knows_primary: bool,
    /// When the last request arrives at each shard: a later one does not overtake it.
    pub(super) arrives: Box<[Instant]>,
    /// The name that it begins next.
    pub(super) next: usize,
    /// Its acquisitions that wait or hold, in no order.
    pub(super) live: Vec<usize>,
}

/// One acquisition.
pub(super) struct Life {
    pub(super) machine: Acquisition,
    pub(super) recipe: Arc<Recipe>,
    pub(super) client: usize,
    pub(super) shard: usize,
    pub(super) task: Task,
    /// The instant of the next wake, and the number of its timer.
    pub(super) wake: (Instant, u32),
    /// Whether its user has got the lock.
    pub(super) is_granted: bool,
    /// Whether its user is done with it.
    pub(super) is_over: bool,
}

/// The acquisitions of all clients. A place is used again, with another number, when no work is left for the acquisition.
#[derive(Default)]
pub(super) struct Lives {
    places: Vec<(u32, Option<Life>)>,
    free: Vec<usize>,
}

/// Names one acquisition: its place, and which one of those that have had the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) place: usize,
    number: u32,
}

impl Lives {
    /// The place of the next one.
    pub(super) fn next_place(&self) -> usize {
        self.free.last().copied().unwrap_or(self.places.len())
    }

    pub(super) fn add(&mut self, life: Life) -> Id {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() - 1
        });
        self.places[place].1 = Some(life);
        self.id(place)
    }

    pub(super) fn id(&self, place: usize) -> Id {
        Id { place, number: self.places[place].0 }
    }

    pub(super) fn get(&mut self, id: Id) -> Option<&mut Life> {
        let (number, life) = &mut self.places[id.place];
        life.as_mut().filter(|_| *number == id.number)
    }

    /// Frees the place.
    pub(super) fn remove(&mut self, id: Id) {
        self.places[id.place] = (id.number + 1, None);
        self.free.push(id.place);
    }
}
