//! Queue: events on their way to a program in another language, and what else comes in their order. A program that is too far behind loses
//! the oldest event for each new one, and its client counts that.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most events that wait.
const MOST: usize = 4_096;

/// Something that waits in a queue.
pub trait Queued {
    /// The counter of its client, if it may be dropped.
    fn counter(&self) -> Option<&AtomicU64>;
}

/// What waits, the oldest first.
#[derive(Debug)]
pub struct EventQueue<T> {
    waiting: VecDeque<T>,
    /// How many of them may be dropped.
    droppable: usize,
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), droppable: 0 }
    }
}

impl<T: Queued> EventQueue<T> {
    /// Adds something behind all others. If it may be dropped and there are too many such, the oldest of them is.
    pub fn push(&mut self, queued: T) {
        if queued.counter().is_some() {
            if self.droppable >= MOST {
                self.drop_oldest();
            }
            self.droppable += 1;
        }
        self.waiting.push_back(queued);
    }

    fn drop_oldest(&mut self) {
        let oldest = self.waiting.iter().position(|queued| queued.counter().is_some());
        if let Some(oldest) = oldest.and_then(|at| self.waiting.remove(at)) {
            self.droppable -= 1;
            oldest.counter().inspect(|counter| _ = counter.fetch_add(1, Ordering::Relaxed));
        }
    }

    /// Takes the oldest, `most` at most.
    pub fn take(&mut self, most: usize) -> Vec<T> {
        let taken: Vec<T> = self.waiting.drain(..most.min(self.waiting.len())).collect();
        self.droppable -= taken.iter().filter(|queued| queued.counter().is_some()).count();
        taken
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// An event, or a result.
    #[derive(Debug, Clone)]
    struct Item(usize, Option<Arc<AtomicU64>>);

    impl Queued for Item {
        fn counter(&self) -> Option<&AtomicU64> {
            self.1.as_deref()
        }
    }

    #[test]
    fn the_oldest_events_go_and_are_counted_and_nothing_else_does() {
        let counters = [(); 2].map(|()| Arc::<AtomicU64>::default());
        let mut queue = EventQueue::default();
        queue.push(Item(0, None));
        (0..MOST + 5).for_each(|number| queue.push(Item(number, Some(Arc::clone(&counters[number % 2])))));
        queue.push(Item(1, None));
        assert_eq!(counters.each_ref().map(|counter| counter.load(Ordering::Relaxed)), [3, 2]);
        let first: Vec<usize> = queue.take(3).iter().map(|item| item.0).collect();
        assert_eq!(first, [0, 5, 6], "the result stands before them");
        // There is room again.
        queue.push(Item(7, Some(Arc::clone(&counters[0]))));
        let rest = queue.take(usize::MAX);
        assert_eq!((rest.len(), rest[0].0, queue.is_empty()), (MOST, 7, true));
        assert_eq!(counters[0].load(Ordering::Relaxed), 3);
    }
}
