//! Entries: how an answer, a caller that is gone, and an alarm come to an actor.

use std::sync::Arc;

use super::{ActorState, LockActor};
use crate::clock::Tick;
use crate::io::canceller::Cancellable;
use crate::io::reactor::Io;
use crate::io::timers::Alarm;
use crate::op::Answer;
use crate::protocol::{Command, Input, Tag};
use crate::server::Receives;

impl LockActor {
    /// Takes its place in the local queue, if it asks for the lock without one: another one wants to wait behind it.
    pub(crate) fn lets_wait_behind(&self) {
        let mut state = self.state.lock();
        if state.machine.asks_alone() && self.recipe.waits_in_queues() {
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

impl Receives for LockActor {
    fn receive(self: Arc<Self>, server: usize, tag: Tag, answer: Answer, io: &Io) {
        self.send(Input::Answer { server, tag, answer }, io);
    }
}

impl Cancellable for LockActor {
    fn cancel(self: Arc<Self>, io: &Io) {
        self.send(Input::Cancel, io);
    }
}

impl Alarm for LockActor {
    fn ring(self: Arc<Self>) {
        self.state.lock().alarm = Tick::NEVER;
        self.send(Input::Wake, &Io::Background);
    }

    fn ends(&self) -> Tick {
        self.valid_until()
    }
}
