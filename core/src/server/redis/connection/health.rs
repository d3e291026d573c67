//! Whether a server answers, told once for every change, however many lanes lead to it.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::event::callback;
use crate::op::Failure;
use crate::server::redis::ServerState;

pub(crate) struct Health {
    failing: AtomicBool,
    report: Box<dyn Fn(ServerState) + Send + Sync>,
}

impl Health {
    pub(crate) fn new(report: Box<dyn Fn(ServerState) + Send + Sync>) -> Self {
        Self { failing: AtomicBool::new(false), report }
    }

    pub(crate) fn failed(&self, failure: &Failure) {
        if !self.failing.swap(true, Ordering::Relaxed) {
            self.tell(ServerState::Failed(failure.clone()));
        }
    }

    fn tell(&self, state: ServerState) {
        callback::call_or_trace("the callback for a server's state", || (self.report)(state));
    }

    pub(crate) fn recovered(&self) {
        // Asked after every answer: a read is cheaper than a swap.
        if self.failing.load(Ordering::Relaxed) && self.failing.swap(false, Ordering::Relaxed) {
            self.tell(ServerState::Recovered);
        }
    }
}
