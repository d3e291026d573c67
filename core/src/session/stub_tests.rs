//! Stub: a server for tests of the session that answers when the test says so, in the order that the test wants.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::op::{Failure, FailureKind};
use crate::server::memory::MemoryServer;
use crate::server::{Completion, Listener, Notice, Request, Server};
use crate::sync::Mutex;
use crate::{Client, EventKind, LockEvent};

/// A server in this process. While it is held back, its operations wait for [`Stub::answer`].
pub(super) struct Stub {
    memory: MemoryServer,
    held_back: Mutex<Option<VecDeque<(Request, Completion)>>>,
    listener: Mutex<Option<Listener>>,
    submitted: AtomicUsize,
    listens: bool,
}

impl Stub {
    pub(super) fn new(name: &str) -> Arc<Self> {
        Self::with(name, true)
    }

    /// A server that publishes nothing.
    pub(super) fn silent(name: &str) -> Arc<Self> {
        Self::with(name, false)
    }

    fn with(name: &str, listens: bool) -> Arc<Self> {
        Arc::new(Self {
            memory: MemoryServer::new(name),
            held_back: Mutex::default(),
            listener: Mutex::default(),
            submitted: AtomicUsize::new(0),
            listens,
        })
    }

    /// Makes operations wait from now on.
    pub(super) fn hold_back(&self) {
        self.held_back.lock().get_or_insert_default();
    }

    /// The number of operations that wait.
    pub(super) fn waiting(&self) -> usize {
        self.held_back.lock().as_ref().map_or(0, VecDeque::len)
    }

    /// The number of operations that were submitted.
    pub(super) fn submitted(&self) -> usize {
        self.submitted.load(Ordering::SeqCst)
    }

    /// Executes the oldest operation that waits.
    pub(super) fn answer(&self) {
        let next = self.held_back.lock().as_mut().and_then(VecDeque::pop_front);
        let (request, completion) = next.expect("an operation waits");
        self.memory.submit(request, completion);
    }

    /// Fails the oldest operation that waits, without having executed it.
    pub(super) fn refuse(&self) {
        let next = self.held_back.lock().as_mut().and_then(VecDeque::pop_front);
        let (_, completion) = next.expect("an operation waits");
        completion.complete(Err(Failure::unknown(FailureKind::Timeout, "the test refused it")));
    }

    /// Sends a notice to the client that listens; gives whether one listens.
    pub(super) fn publish(&self, notice: Notice) -> bool {
        let listener = self.listener.lock().clone();
        listener.map(|listener| listener(notice)).is_some()
    }
}

impl Server for Stub {
    fn address(&self) -> &str {
        self.memory.address()
    }

    fn submit(&self, request: Request, completion: Completion) {
        self.submitted.fetch_add(1, Ordering::SeqCst);
        if let Some(waiting) = &mut *self.held_back.lock() {
            return waiting.push_back((request, completion));
        }
        self.memory.submit(request, completion);
    }

    fn listen(&self, channel: &str, listener: Listener) -> bool {
        if !self.listens {
            return false;
        }
        *self.listener.lock() = Some(Arc::clone(&listener));
        self.memory.listen(channel, listener)
    }
}

/// A client of the stub, and the events that it emits.
pub(super) fn client(stub: &Arc<Stub>) -> (Client, Arc<Mutex<Vec<LockEvent>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&seen);
    let sink = move |event: &LockEvent| events.lock().push(event.clone());
    (Client::builder().server(Arc::clone(stub) as Arc<dyn Server>).sink(Arc::new(sink)).build().unwrap(), seen)
}

/// The messages of the warnings among the events so far.
pub(super) fn warnings(seen: &Mutex<Vec<LockEvent>>) -> Vec<String> {
    let seen = seen.lock();
    seen.iter().filter(|event| event.kind == EventKind::Warning).filter_map(|event| event.message.clone()).collect()
}
