//! Mapping: what is known of the map of a cluster.

use std::collections::VecDeque;

use tokio::task::AbortHandle;

use crate::clock::Tick;
use crate::server::redis::address::Address;
use crate::server::redis::cluster::parcel::Parcel;
use crate::server::redis::cluster::topology::Topology;

/// How many nodes are asked at once.
const ASKED: usize = 5;

/// How many nodes are remembered, to be asked later.
const REMEMBERED: usize = 64;

/// What is known of the map.
#[derive(Default)]
pub(super) struct Mapping {
    pub(super) topology: Option<Topology>,
    /// The nodes that any map has named, the latest first.
    pub(super) seen: VecDeque<Address>,
    /// Whether nodes are being asked, or will be soon.
    pub(super) asks: bool,
    /// Whether the map has proved wrong since they were asked.
    pub(super) again: bool,
    pub(super) asked_at: Option<Tick>,
    /// The task that asks them.
    pub(super) task: Option<AbortHandle>,
    /// The operations that wait for the first map.
    waiting: Vec<Parcel>,
}

impl Mapping {
    /// The primary of a slot.
    pub(super) fn primary_of(&self, slot: u16) -> Option<Address> {
        self.topology.as_ref()?.primary_of(slot).cloned()
    }

    /// All primaries, if the map is known.
    pub(super) fn primaries(&self) -> Option<&[Address]> {
        self.topology.as_ref().map(Topology::primaries)
    }

    /// A slot is served by another node.
    pub(super) fn moved(&mut self, slot: u16, primary: &Address) {
        if let Some(topology) = &mut self.topology {
            topology.moved(slot, primary);
        }
    }

    /// Has an operation wait for the first map. Gives it back if the map is known.
    pub(super) fn wait(&mut self, parcel: Parcel) -> Option<Parcel> {
        if self.topology.is_some() {
            return Some(parcel);
        }
        self.waiting.push(parcel);
        None
    }

    /// Ends the questions.
    pub(super) fn close(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    /// Takes the operations that wait.
    pub(super) fn take_waiting(&mut self) -> Vec<Parcel> {
        std::mem::take(&mut self.waiting)
    }

    pub(super) fn learn(&mut self, nodes: Vec<Address>) {
        for node in nodes {
            self.seen.retain(|seen| *seen != node);
            self.seen.push_front(node);
        }
        self.seen.truncate(REMEMBERED);
    }

    /// Some of the nodes of the map, in an order that changes.
    pub(super) fn some_primaries(&self) -> Vec<Address> {
        let mut nodes = self.primaries().unwrap_or_default().to_vec();
        fastrand::shuffle(&mut nodes);
        nodes.truncate(ASKED);
        nodes
    }
}
