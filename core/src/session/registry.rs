//! Registry: every acquisition of a client that is not finished. The registry keeps the acquisitions alive.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::Tick;
use crate::io::reactor::Io;
use crate::protocol::Input;
use crate::session::actor::LockActor;
use crate::sync::Mutex;

#[derive(Default)]
pub(crate) struct Registry {
    actors: Mutex<HashMap<u64, Arc<LockActor>>>,
    emptied: Notify,
}

impl Registry {
    pub(crate) fn insert(&self, id: u64, actor: &Arc<LockActor>) {
        self.actors.lock().insert(id, Arc::clone(actor));
    }

    pub(super) fn remove(&self, id: u64) -> Option<Arc<LockActor>> {
        let mut actors = self.actors.lock();
        let removed = actors.remove(&id);
        let empty = actors.is_empty();
        drop(actors);
        if empty {
            self.emptied.notify_waiters();
        }
        removed
    }

    pub(super) fn get(&self, id: u64) -> Option<Arc<LockActor>> {
        self.actors.lock().get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<LockActor>> {
        self.actors.lock().values().cloned().collect()
    }

    /// Confirms every hold that the node at `address` serves: the server may have lost it, because another node answers for it. The
    /// hold that ends first is confirmed first.
    pub(crate) fn confirm(&self, server: usize, address: Option<&str>) {
        let mut actors = self.all();
        let is_served = |actor: &LockActor, address: &str| {
            let node = actor.session.server(server).node_of(&actor.recipe.keys);
            node.is_none_or(|node| node == address)
        };
        // The nodes of a cluster share the locks; a failover concerns those of one.
        actors.retain(|actor| address.is_none_or(|address| is_served(actor, address)));
        actors.sort_by_key(|actor| actor.valid_until());
        for actor in actors {
            actor.send(Input::FailedOver(server), &Io::Background);
        }
    }

    pub(super) fn is_anything_held(&self, now: Tick) -> bool {
        self.actors.lock().values().any(|actor| now < actor.valid_until())
    }

    /// Waits until every acquisition is finished, at most for `timeout`.
    pub(super) async fn wait_until_empty(&self, timeout: Duration) {
        let emptied = self.emptied.notified();
        tokio::pin!(emptied);
        emptied.as_mut().enable();
        if !self.actors.lock().is_empty() {
            // By the clock of the runtime, which stands still while the machine sleeps: a close may take longer then, and no hold counts on it.
            let _ = tokio::time::timeout(timeout, emptied).await;
        }
    }
}
