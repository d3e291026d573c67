//! Agenda: the future events, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::Instant;

/// Events by instant. Events of one instant have the order in which they were added.
pub(super) struct Agenda<T> {
    /// The instant, a running number, and the place in `events`: small, because a heap moves the values that it sorts.
    heap: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    events: Vec<Option<T>>,
    free: Vec<usize>,
    added: u64,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), events: Vec::new(), free: Vec::new(), added: 0 }
    }
}

impl<T> Agenda<T> {
    pub(super) fn add(&mut self, at: Instant, event: T) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[place] = Some(event);
        self.added += 1;
        self.heap.push(Reverse((at, self.added, place)));
    }

    pub(super) fn next(&mut self) -> Option<(Instant, T)> {
        let Reverse((at, _, place)) = self.heap.pop()?;
        self.free.push(place);
        Some((at, self.events[place].take()?))
    }
}
