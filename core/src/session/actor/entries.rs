//! Entries: how an answer, a caller that is gone, and an alarm come to an actor.

use std::sync::Arc;

use super::LockActor;
use crate::clock::Tick;
use crate::io::canceller::Cancellable;
use crate::io::reactor::Io;
use crate::io::timers::Alarm;
use crate::op::Answer;
use crate::protocol::{Input, Tag};
use crate::server::Receives;

impl Receives for LockActor {
    fn receive(self: Arc<Self>, server: usize, tag: Tag, answer: Answer, io: &Io) {
        self.send(Input::Answer { server, tag, answer }, io);
    }
}

impl Cancellable for LockActor {
    fn cancel(self: Arc<Self>, io: &Io) {
        // A child of a fork has the parent's acquire, with its mutexes and its connections.
        if !self.session.is_inherited() {
            self.send(Input::Cancel, io);
        }
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
