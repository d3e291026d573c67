//! A client's servers and holds in one process.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::event::{Event, Sink, trace};
use crate::options::ClientOptions;
use crate::owner::Signature;
use crate::protocol::Input;
use crate::runtime::Runtime;
use crate::server::{Fleet, Server};
use crate::tended::Tended;

/// Where a client's events go.
#[derive(Clone, Default)]
pub(crate) struct Emitter(pub(crate) Option<Arc<dyn Sink>>);

impl Emitter {
    pub(crate) fn emit(&self, event: &Event) {
        trace(event);
        if let Some(sink) = &self.0 {
            sink.event(event);
        }
    }
}

/// What a client is in the process that uses it. A forked child gets a new one; the parent's is left alone.
pub(crate) struct Live {
    pid: u32,
    runtime: Arc<Runtime>,
    servers: Vec<Arc<dyn Server>>,
    pub(crate) addresses: Arc<[String]>,
    pub(crate) fleet: Option<Fleet>,
    pub(crate) signature: Arc<Signature>,
    pub(crate) options: Arc<ClientOptions>,
    emitter: Emitter,
    /// Set before the roll is read for closing: whoever enrols later sees it.
    closing: AtomicBool,
    /// Whether all servers were heard once.
    introduced: AtomicBool,
    seeds: Mutex<fastrand::Rng>,
    /// Every acquisition that is not finished: this is what keeps them alive.
    roll: Mutex<HashMap<u64, Arc<Tended>>>,
    emptied: Notify,
    /// The task that holds each owner value, where the caller told.
    holders: Mutex<HashMap<Arc<str>, u64>>,
}

impl Live {
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        servers: Vec<Arc<dyn Server>>,
        options: Arc<ClientOptions>,
        fleet: Option<Fleet>,
        emitter: Emitter,
    ) -> Self {
        let app = options.app.clone().or_else(|| std::env::var("LOCKTENDER_APP").ok());
        Self {
            pid: std::process::id(),
            runtime,
            addresses: servers.iter().map(|server| server.address().to_owned()).collect(),
            servers,
            fleet,
            signature: Arc::new(Signature::of_this_process(app.as_deref())),
            options,
            emitter,
            closing: AtomicBool::new(false),
            introduced: AtomicBool::new(false),
            seeds: Mutex::new(fastrand::Rng::with_seed(entropy())),
            roll: Mutex::default(),
            emptied: Notify::new(),
            holders: Mutex::default(),
        }
    }

    /// Whether this is the parent's, seen from a forked child.
    pub(crate) fn is_inherited(&self) -> bool {
        self.pid != std::process::id()
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn server(&self, index: usize) -> &dyn Server {
        &*self.servers[index]
    }

    pub(crate) fn server_count(&self) -> usize {
        self.servers.len()
    }

    pub(crate) fn emit(&self, event: &Event) {
        self.emitter.emit(event);
    }

    /// Whether the client is being closed.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Whether an acquire still has to hear every server out.
    pub(crate) fn introduces(&self) -> bool {
        self.servers.len() > 1 && !self.introduced.load(Ordering::Relaxed)
    }

    /// An acquire has heard every server out.
    pub(crate) fn has_introduced(&self) {
        self.introduced.store(true, Ordering::Relaxed);
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seeds.lock().u64(..)
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.runtime.next_id()
    }

    pub(crate) fn enrol(&self, id: u64, tended: &Arc<Tended>) {
        self.roll.lock().insert(id, Arc::clone(tended));
    }

    /// Takes a finished acquisition off the roll.
    pub(crate) fn strike(&self, id: u64) {
        let mut roll = self.roll.lock();
        let finished = roll.remove(&id);
        let empty = roll.is_empty();
        drop(roll);
        if let Some(owner) = finished.as_ref().and_then(|finished| finished.noted_owner()) {
            self.forget_holder(owner);
        }
        if empty {
            self.emptied.notify_waiters();
        }
    }

    pub(crate) fn note_holder(&self, owner: &Arc<str>, context: u64) {
        self.holders.lock().insert(Arc::clone(owner), context);
    }

    pub(crate) fn forget_holder(&self, owner: &str) {
        self.holders.lock().remove(owner);
    }

    pub(crate) fn holder_context(&self, owner: &str) -> Option<u64> {
        self.holders.lock().get(owner).copied()
    }

    /// Ends everything: acquires fail, holds are lost and released, connections are let go, all within a response timeout.
    pub(crate) async fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
        let all: Vec<Arc<Tended>> = self.roll.lock().values().cloned().collect();
        for tended in all {
            tended.feed(Input::Close);
        }
        let emptied = self.emptied.notified();
        tokio::pin!(emptied);
        emptied.as_mut().enable();
        if !self.roll.lock().is_empty() {
            let patience = self.options.response_timeout_for(self.servers.len());
            let _ = tokio::time::timeout(patience, emptied).await;
        }
        for server in &self.servers {
            server.close();
        }
    }
}

/// A seed from the operating system: the hasher of the standard library is keyed with it.
fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u64(crate::clock::Tick::now().as_micros());
    hasher.write_u32(std::process::id());
    hasher.finish()
}
