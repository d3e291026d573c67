//! Refreshing: the nodes are asked for the map, when that is needed or proves wrong.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::clock::Tick;
use crate::op::{Failure, FailureKind};
use crate::server::redis::address::Address;
use crate::server::redis::cluster::asking::ask_each;
use crate::server::redis::cluster::cluster::Cluster;
use crate::server::redis::cluster::mapping::{Again, Found, Mapping, PAUSE};
use crate::server::redis::cluster::nodes::{Node, Stage, about};
use crate::server::redis::cluster::topology::{Ballot, Elected, Topology};
use crate::server::redis::connection::server_state::{Failover, ServerState};
use crate::server::redis::listening::{Moved, place_channels};

/// The pause between two looks at the deadlines of what waits for the map.
const LOOK: Duration = Duration::from_millis(20);

impl Cluster {
    /// Asks nodes for the map, unless they are asked already, or were just before: then in a moment.
    pub(super) fn refresh(self: &Arc<Self>) {
        self.ask_from(Mapping::begins);
    }

    /// Asks nodes for the map from now on, whatever they were asked before.
    pub(super) fn refresh_at_once(self: &Arc<Self>) {
        self.ask_from(|mapping, now| mapping.begins_at_once().then_some(now));
    }

    fn ask_from(self: &Arc<Self>, begins: impl FnOnce(&mut Mapping, Tick) -> Option<Tick>) {
        let mut refreshing = self.refreshing.lock();
        if self.nodes.stage() == Stage::Closed {
            return;
        }
        let now = Tick::now();
        let Some(due) = begins(&mut self.mapping.lock(), now) else { return };
        let weak = Arc::downgrade(self);
        let task = self.host.spawn(async move {
            sleep(due.since(now)).await;
            while let Some(cluster) = weak.upgrade() {
                let again = cluster.ask_once().await;
                let pause = match again {
                    Again::Never => return,
                    Again::AtOnce => Duration::ZERO,
                    Again::Soon => PAUSE,
                    Again::Watch => cluster.mapping.lock().watch_pause(),
                };
                drop(cluster);
                sleep(pause).await;
                if again == Again::Watch && !weak.upgrade().is_some_and(|cluster| cluster.keeps_watching()) {
                    return;
                }
            }
        });
        // The one before has ended, or rests until it asks again: this one does so from now on.
        if let Some(before) = refreshing.replace(task.abort_handle()) {
            before.abort();
        }
    }

    /// Ends the questions.
    pub(super) fn stop_refreshing(&self) {
        if let Some(task) = self.refreshing.lock().take() {
            task.abort();
        }
    }

    /// Whether nodes are to be asked because one of them fails.
    fn keeps_watching(&self) -> bool {
        self.nodes.stage() == Stage::Open && self.nodes.are_failing() && self.mapping.lock().watches()
    }

    /// Asks nodes once, and takes the map that they give. Returns when they have to be asked again.
    async fn ask_once(self: &Arc<Self>) -> Again {
        let some = self.mapping.lock().some_primaries();
        let mut found = self.ask_in_time(some).await;
        if found.is_err() {
            let all = self.mapping.lock().all_nodes(&self.target.seeds);
            found = self.ask_in_time(all).await;
        }
        let mapping = self.mapping.lock();
        let is_another = found.as_ref().is_ok_and(|(topology, _)| mapping.is_foreign(topology));
        let used = |node: &Address| self.nodes.used(node).is_some();
        let successors = found.as_ref().map_or_else(|_| Vec::new(), |(topology, _)| mapping.successors(topology, used));
        let in_charge = found.as_ref().ok().map(|(topology, _)| mapping.in_charge(topology));
        let replaced = in_charge.as_ref().map_or_else(Vec::new, |in_charge| self.replaced(&mapping, in_charge));
        drop(mapping);
        // Before an operation goes there by the new map: what a connection shows that is up by then is not compared again.
        self.replace(&replaced);
        let (waiting, again) = self.mapping.lock().answered(&found, self.nodes.are_failing(), Tick::now(), fastrand::f64());
        if let Some(in_charge) = &in_charge {
            self.retire(in_charge.primaries());
            place_channels(self, Moved::Map);
        }
        self.handshake_with(&successors);
        if is_another {
            // The URL leads to another cluster by now. Whatever is held may be gone. A cluster has no replication id.
            let (old_replid, new_replid) = ("?".into(), "?".into());
            (self.on_state)(ServerState::FailedOver(Failover { address: None, old_replid, new_replid }));
        }
        for routed in waiting {
            match &found {
                Ok(_) => self.submit(routed),
                Err(failure) => routed.fail(failure.clone()),
            }
        }
        again
    }

    /// The nodes in use that fail and serve nothing any more by this map, each with a primary that it has in their place.
    fn replaced(&self, mapping: &Mapping, map: &Topology) -> Vec<(Arc<Node>, Address)> {
        let gone = self.nodes.gone(map.primaries()).into_iter();
        let pairs = gone.map(|node| {
            let successors = mapping.successors(map, |was| *was == node.address).into_iter();
            successors.map(|successor| (Arc::clone(&node), successor)).collect::<Vec<_>>()
        });
        pairs.flatten().collect()
    }

    /// Nodes that were not in use have the slots of others, which fail.
    fn replace(self: &Arc<Self>, replaced: &[(Arc<Node>, Address)]) {
        for (node, successor) in replaced.iter().filter(|(_, successor)| self.nodes.used(successor).is_none()) {
            if let Ok(Some(successor)) = self.node(successor) {
                successor.routes.replaces(&node.routes);
            }
        }
    }

    /// Asks primaries that follow others which are in use for their replication ids. A successor shows there whose data it has, so
    /// the holds of those nodes are confirmed before their next operation. It may have a connection from an earlier time as primary.
    fn handshake_with(self: &Arc<Self>, successors: &[Address]) {
        for successor in successors {
            if let Ok(Some(node)) = self.node(successor) {
                node.routes.verify();
            }
        }
    }

    /// Asks these nodes. What waits for the map ends at its deadline meanwhile.
    async fn ask_in_time(&self, nodes: Vec<Address>) -> Found {
        let mut asking = pin!(self.ask(nodes));
        loop {
            tokio::select! {
                biased;
                found = &mut asking => return found,
                () = sleep(LOOK) => {
                    let (late, why) = self.mapping.lock().overdue(Tick::now());
                    late.into_iter().for_each(|routed| routed.fail(why.clone()));
                }
            }
        }
    }

    /// Asks these nodes, and gives the map that most of them agree on, with the nodes that they name.
    async fn ask(&self, nodes: Vec<Address>) -> Found {
        let nodes: Vec<_> = nodes.into_iter().map(|node| (node.clone(), self.settings(&node))).collect();
        let (mut ballot, mut named) = (Ballot::new(nodes.len()), Vec::new());
        let mut last = Failure::not_applied(FailureKind::Refused, "no node is known");
        let mut asking = ask_each(nodes);
        while let Some(report) = asking.join_next().await {
            match report {
                // An address may belong to a node of another cluster by now. Only the URL says which cluster is meant.
                Ok((address, Ok((topology, _)))) if self.is_captured_by(&address, &topology) => {
                    let why = "this is a node of another cluster than before, and the URL doesn't name it";
                    last = about(&address, Failure::not_applied(FailureKind::ClusterDown, why));
                }
                Ok((_, Ok((topology, nodes)))) => {
                    named.push((topology.clone(), nodes));
                    if let Some(topology) = ballot.vote(topology) {
                        return Ok(with_nodes(topology, named));
                    }
                }
                Ok((address, Err(failure))) => last = about(&address, failure),
                Err(_) => {}
            }
        }
        match ballot.close() {
            Elected::Map(topology) => Ok(with_nodes(topology, named)),
            Elected::Several => {
                let why = "these are nodes of several clusters: their maps have no node in common; name those of one";
                Err(Failure::not_applied(FailureKind::Mismatch, why))
            }
            Elected::None => Err(Failure {
                message: format!("no node of the cluster says which node serves which slot; {}", last.message),
                ..last
            }),
        }
    }

    /// Whether a node that the URL doesn't name shows the map of another cluster.
    fn is_captured_by(&self, address: &Address, map: &Topology) -> bool {
        !self.target.seeds.contains(address) && self.mapping.lock().is_foreign(map)
    }
}

/// A map, and the nodes that maps of its cluster name.
fn with_nodes(topology: Topology, named: Vec<(Topology, Vec<Address>)>) -> (Topology, Vec<Address>) {
    let nodes = named.into_iter().filter(|(map, _)| map.is_akin_to(&topology)).flat_map(|(_, nodes)| nodes).collect();
    (topology, nodes)
}
