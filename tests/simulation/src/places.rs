//! Places: which acquisitions of a process stand in its local queues, and which take the fast path without one.

use std::sync::Arc;

use locktender::internals::protocol::Recipe;

use super::world::World;

impl World {
    /// Whether nobody of the process wants the lock, as far as the servers don't know it. Whoever asks for it takes a place, to wait behind.
    pub(super) fn may_ask_first(&mut self, client: usize, recipe: &Recipe) -> bool {
        let process = &self.processes[client];
        let is_same = |slot: &&usize| process.slots[**slot].recipe.keys.lock() == recipe.keys.lock();
        let asks = |slot: &&usize| process.slots[**slot].machine.is_asking() && is_same(slot);
        if let Some(slot) = process.live.iter().filter(asks).nth(recipe.asks_at_once() - 1).copied() {
            if process.slots[slot].machine.may_take_place() && !recipe.keys.kind().is_shared() {
                self.take_place(client, slot);
            }
            return false;
        }
        self.plan.has_fast_path && recipe.suits_fast_path() && !process.local_queues.is_waited_for(&recipe.queue_key())
    }

    /// Puts an acquisition into its local queue.
    pub(super) fn take_place(&mut self, client: usize, slot: usize) {
        let process = &mut self.processes[client];
        let entry = &mut process.slots[slot];
        let waiter = process.local_queues.join(&entry.recipe.queue_key(), slot as u64, entry.recipe.mode());
        let place = Arc::clone(waiter.slot.entry());
        entry.machine.take_place(waiter);
        self.joins_queue(&place, client, slot);
    }
}
