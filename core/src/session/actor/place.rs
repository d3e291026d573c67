//! Place: how an acquisition comes to its place in the local queue: before its first input, or on its way.

use super::{ActorState, LockActor};
use crate::protocol::{Command, Input};
use crate::wait::Waiter;

impl LockActor {
    /// Takes its place in the local queue, before any input.
    pub(in crate::session) fn take_place(&self, waiter: Waiter) {
        // An adopt may try at once, at any place in the queue: the hold is meant for the process with the ticket.
        let waiter = if self.recipe.adopt.is_some() { waiter.may_try() } else { waiter };
        self.state.lock().machine.take_place(waiter);
    }

    /// Takes its place in the local queue, if it asks for the lock without one: another one wants to wait behind it.
    pub(crate) fn lets_wait_behind(&self) {
        let mut state = self.state.lock();
        if state.machine.may_take_place() {
            state.machine.take_place(self.session.place_in_queue(&self.recipe, self.id));
        }
    }

    /// Has the machine take an input.
    pub(super) fn handle(&self, state: &mut ActorState, input: Input, commands: &mut Vec<Command>) {
        let now = self.session.now();
        if state.machine.needs_place(now.tick, &input) {
            state.machine.take_place(self.session.place_in_queue(&self.recipe, self.id));
        }
        state.machine.handle(now, input, commands);
        state.asks.take_if(|_| !state.machine.is_asking());
    }
}
