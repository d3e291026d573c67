//! What a client tells of its heartbeats.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use locktender::{Event, EventKind, Sink};

/// The renewals of a client's holds, as they are confirmed.
pub struct Renewals(Receiver<()>);

impl Renewals {
    /// What a client has to be built with, and what is told.
    pub fn new() -> (impl Sink, Self) {
        let (renewed, renewals) = channel();
        let renewed = Mutex::new(renewed);
        let sink = move |event: &Event| {
            if event.kind == EventKind::Renewed {
                let _ = renewed.lock().unwrap().send(());
            }
        };
        (sink, Self(renewals))
    }

    /// Waits for the next that has not been waited for.
    pub fn next(&self, patience: Duration) {
        self.0.recv_timeout(patience).expect("a renewal is confirmed");
    }

    /// Waits for one that begins after this, which the second from now does.
    pub fn next_to_begin(&self, patience: Duration) {
        self.0.try_iter().for_each(drop);
        self.next(patience);
        self.next(patience);
    }
}
