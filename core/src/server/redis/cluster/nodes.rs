//! Nodes: the nodes of a cluster that are in use, and which of them fail.

use std::collections::HashSet;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::op::Failure;
use crate::server::redis::address::Address;
use crate::server::redis::connection::primary::Lineage;
use crate::server::redis::routes::Routes;
use crate::sync::Mutex;

/// One node in use.
pub(super) struct Node {
    pub(super) address: Address,
    pub(super) routes: Arc<Routes>,
}

/// The nodes in use. A node is added when a slot of it is first used.
#[derive(Default)]
pub(super) struct Nodes {
    /// Read for every operation.
    pub(super) used: ArcSwap<Vec<Arc<Node>>>,
    pub(super) state: Mutex<State>,
    pub(super) lineage: Arc<Lineage>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) failing: HashSet<Address>,
    pub(super) stage: Stage,
}

/// How far a close has come.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    #[default]
    Open,
    /// Only releases are accepted.
    Cancelled,
    Closed,
}

impl Nodes {
    /// The nodes in use.
    pub(super) fn all(&self) -> Arc<Vec<Arc<Node>>> {
        self.used.load_full()
    }

    pub(super) fn used(&self, address: &Address) -> Option<Arc<Node>> {
        self.used.load().iter().find(|node| node.address == *address).cloned()
    }

    pub(super) fn stage(&self) -> Stage {
        self.state.lock().stage
    }

    /// Whether a node in use fails.
    pub(super) fn are_failing(&self) -> bool {
        !self.state.lock().failing.is_empty()
    }

    /// Begins a stage of the close; gives the nodes that take part.
    pub(super) fn begin(&self, stage: Stage) -> Arc<Vec<Arc<Node>>> {
        let mut state = self.state.lock();
        state.stage = state.stage.max(stage);
        if stage == Stage::Closed { self.used.swap(Arc::default()) } else { self.all() }
    }

    /// The nodes that serve no slot any more and fail.
    pub(super) fn gone(&self, primaries: &[Address]) -> Vec<Arc<Node>> {
        let state = self.state.lock();
        let is_gone = |node: &&Arc<Node>| !primaries.contains(&node.address) && state.failing.contains(&node.address);
        self.all().iter().filter(is_gone).cloned().collect()
    }

    /// Takes the nodes out that serve no slot any more and fail: what waits for them has to go elsewhere.
    pub(super) fn retire(&self, primaries: &[Address]) -> (Vec<Arc<Node>>, bool) {
        let mut state = self.state.lock();
        let had_failing = !state.failing.is_empty();
        let all = self.all();
        let serves = |node: &Node| primaries.contains(&node.address);
        let (kept, retired): (Vec<_>, Vec<_>) =
            all.iter().cloned().partition(|node| serves(node) || !state.failing.contains(&node.address));
        if !retired.is_empty() {
            self.used.store(Arc::new(kept));
        }
        state.failing.retain(|address| primaries.contains(address));
        (retired, had_failing && state.failing.is_empty())
    }
}

/// A failure that names its node.
pub(super) fn about(address: &Address, failure: Failure) -> Failure {
    Failure { message: format!("{address}: {}", failure.message), ..failure }
}
