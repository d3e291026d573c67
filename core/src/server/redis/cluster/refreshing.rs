//! Refreshing: the nodes are asked for the map, when that proves wrong.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::clock::Tick;
use crate::op::{Failure, FailureKind};
use crate::server::redis::address::Address;
use crate::server::redis::cluster::asking::ask_each;
use crate::server::redis::cluster::cluster::Cluster;
use crate::server::redis::cluster::nodes::{Stage, about};
use crate::server::redis::cluster::topology::{Ballot, Topology};

/// The least pause between two questions for the map.
const PAUSE: Duration = Duration::from_secs(1);

impl Cluster {
    /// Asks nodes for the map, unless they are asked already; at most once a second.
    pub(super) fn refresh(self: &Arc<Self>) {
        let mut mapping = self.mapping.lock();
        if self.nodes.stage() == Stage::Closed || std::mem::replace(&mut mapping.asks, true) {
            mapping.again = true;
            return;
        }
        let now = Tick::now();
        let due = mapping.asked_at.map_or(now, |asked_at| asked_at.after(PAUSE));
        let cluster = Arc::downgrade(self);
        let task = self.host.spawn(async move {
            sleep(due.since(now)).await;
            while let Some(cluster) = cluster.upgrade() {
                if !cluster.ask_once().await {
                    return;
                }
                drop(cluster);
                sleep(PAUSE).await;
            }
        });
        mapping.task = Some(task.abort_handle());
    }

    /// Asks nodes once, and takes the map that they give. Says whether they have to be asked again.
    async fn ask_once(self: &Arc<Self>) -> bool {
        let first = {
            let mut mapping = self.mapping.lock();
            mapping.again = false;
            mapping.asked_at = Some(Tick::now());
            mapping.some_primaries()
        };
        let mut found = self.ask(first).await;
        if found.is_err() {
            // None of them answers: the nodes of the URL, whose names may lead elsewhere by now, and all others.
            let seen: Vec<Address> = self.mapping.lock().seen.iter().cloned().collect();
            let mut all = self.target.seeds.clone();
            all.extend(seen.into_iter().filter(|node| !self.target.seeds.contains(node)));
            found = self.ask(all).await;
        }
        let (waiting, primaries, again) = {
            let mut mapping = self.mapping.lock();
            let primaries = match &found {
                Ok((topology, nodes)) => {
                    mapping.learn(nodes.clone());
                    mapping.topology = Some(topology.clone());
                    Some(topology.primaries().to_vec())
                }
                Err(_) => None,
            };
            // Without a map the next operation asks.
            let again = mapping.again && mapping.topology.is_some();
            mapping.asks = again;
            (mapping.take_waiting(), primaries, again)
        };
        if let Some(primaries) = primaries {
            self.retire(&primaries);
            self.place_channels();
        }
        for parcel in waiting {
            match &found {
                Ok(_) => self.submit(parcel),
                Err(failure) => parcel.fail(failure.clone()),
            }
        }
        again
    }

    /// Asks these nodes, and gives the map that most of them agree on, with the nodes that they name.
    async fn ask(&self, nodes: Vec<Address>) -> Result<(Topology, Vec<Address>), Failure> {
        let nodes: Vec<_> = nodes.into_iter().map(|node| (node.clone(), self.settings(&node))).collect();
        let (mut ballot, mut named) = (Ballot::new(nodes.len()), Vec::new());
        let mut last = Failure::not_applied(FailureKind::Refused, "no node is known");
        let mut asking = ask_each(nodes);
        while let Some(told) = asking.join_next().await {
            match told {
                Ok((_, Ok((topology, nodes)))) => {
                    named.extend(nodes);
                    if let Some(topology) = ballot.vote(topology) {
                        return Ok((topology, named));
                    }
                }
                Ok((address, Err(failure))) => last = about(&address, failure),
                Err(_) => {}
            }
        }
        ballot.close().map(|topology| (topology, named)).ok_or_else(|| Failure {
            message: format!("no node of the cluster says which node serves which slot; {}", last.message),
            ..last
        })
    }
}
