//! Answers that come later: one thread per server, started when the first is needed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;

use crate::clock::Tick;
use crate::op::{Answer, Failure, FailureKind};
use crate::server::Completion;
use crate::sync::Mutex;

/// Completions to be called at their time. Dropping it ends them all.
#[derive(Default)]
pub(super) struct Delayed(Mutex<Option<Sender<Message>>>);

enum Message {
    At(Tick, Completion, Answer),
    EndAll,
}

impl Delayed {
    pub(super) fn complete_at(&self, due: Tick, completion: Completion, answer: Answer) {
        let mut thread = self.0.lock();
        let sender = thread.get_or_insert_with(|| {
            let (sender, inbox) = channel();
            // Without a thread the completion is dropped below, and so has an unknown outcome.
            let _ = thread::Builder::new().name("locktender-scripted".into()).spawn(move || run(&inbox));
            sender
        });
        let _ = sender.send(Message::At(due, completion, answer));
    }

    pub(super) fn end_all(&self) {
        if let Some(sender) = &*self.0.lock() {
            let _ = sender.send(Message::EndAll);
        }
    }
}

/// What waits, the earliest first, in the order of submission among equals.
#[derive(Default)]
struct Waiting {
    order: BinaryHeap<Reverse<(Tick, u64)>>,
    completions: std::collections::HashMap<u64, (Completion, Answer)>,
    count: u64,
}

fn run(inbox: &Receiver<Message>) {
    let mut waiting = Waiting::default();
    loop {
        let message = match waiting.next() {
            Some(due) => inbox.recv_timeout(due.since(Tick::now())),
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match message {
            Ok(Message::At(due, completion, answer)) => waiting.push(due, completion, answer),
            Ok(Message::EndAll) => waiting.end_all(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return waiting.end_all(),
        }
        waiting.complete_until(Tick::now());
    }
}

impl Waiting {
    fn next(&self) -> Option<Tick> {
        self.order.peek().map(|Reverse((due, _))| *due)
    }

    fn push(&mut self, due: Tick, completion: Completion, answer: Answer) {
        self.order.push(Reverse((due, self.count)));
        self.completions.insert(self.count, (completion, answer));
        self.count += 1;
    }

    fn complete_until(&mut self, now: Tick) {
        while self.next().is_some_and(|due| due <= now) {
            let Some(Reverse((_, number))) = self.order.pop() else { return };
            if let Some((completion, answer)) = self.completions.remove(&number) {
                completion.complete(answer);
            }
        }
    }

    fn end_all(&mut self) {
        while let Some(Reverse((_, number))) = self.order.pop() {
            if let Some((completion, _)) = self.completions.remove(&number) {
                completion.complete(Err(Failure::unknown(FailureKind::Closed, "the client was closed before the answer came")));
            }
        }
    }
}
