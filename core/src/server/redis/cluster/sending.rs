//! Sending: an operation on its way to the node that serves it, from node to node if it has to be.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::clock::Tick;
use crate::io::reactor::Io;
use crate::op::{Answer, Failure, FailureKind, Op, Redirect, Reply, Verdict};
use crate::server::redis::address::Address;
use crate::server::redis::cluster::cluster::Cluster;
use crate::server::redis::cluster::facts;
use crate::server::redis::cluster::mapping::Wait;
use crate::server::redis::cluster::nodes::{Stage, about};
use crate::server::redis::cluster::routed::Routed;
use crate::server::redis::cluster::scanned::Scanned;
use crate::server::redis::cluster::split::{Next, Split};
use crate::server::redis::connection::failure::{closed, too_late};
use crate::server::redis::connection::in_flight::InFlight;
use crate::server::redis::listening::{Moved, place_channels};
use crate::server::redis::pauses::Pauses;
use crate::server::{Completion, Request, Server};

/// From how many nodes an operation may be sent on.
const HOPS: u8 = 5;

/// The pauses before an operation is sent again whose slot is moving.
const AGAIN: Pauses = Pauses { first: Duration::from_millis(5), longest: Duration::from_millis(50) };

/// Nodes that are to announce hostnames, and have none, announce `?`.
pub(super) const UNSERVED: &str = "no node of the cluster serves this slot, or the nodes announce no hostname for it (?): then set \
                        cluster-announce-hostname";

impl Cluster {
    /// Sends an operation to the node that serves it. Before the map is known it waits for that.
    pub(super) fn submit(self: &Arc<Self>, routed: Routed) {
        if self.nodes.stage() >= Stage::Cancelled && !routed.request.op.survives_reconnect()
            || self.nodes.stage() == Stage::Closed
        {
            return routed.fail(closed(false));
        }
        if routed.request.deadline <= Tick::now() {
            return routed.fail(too_late());
        }
        match routed.request.op {
            Op::Examine => return self.examine(routed),
            Op::Scan { cursor, .. } => return self.scan(Scanned::read(cursor), routed),
            _ => {}
        }
        let slot = routed.slot();
        let mapping = self.mapping.lock();
        let found = mapping.primaries().map(|primaries| match slot {
            Some(slot) => mapping.primary_of(slot),
            None => (!primaries.is_empty()).then(|| primaries[fastrand::usize(..primaries.len())].clone()),
        });
        drop(mapping);
        match found {
            Some(Some(address)) => {
                // A node that serves a slot may be asked to: so it shows whether that is permitted.
                let asking = matches!(routed.request.op, Op::Probe { .. });
                self.send_to(&address, routed, asking);
            }
            Some(None) => {
                self.refresh();
                routed.fail(Failure::not_applied(FailureKind::ClusterDown, UNSERVED));
            }
            None => self.wait_for_map(routed),
        }
    }

    /// Has an operation wait for the first map, which may have come meanwhile. A client that closes has nothing to wait for.
    pub(super) fn wait_for_map(self: &Arc<Self>, routed: Routed) {
        if self.nodes.stage() >= Stage::Cancelled {
            return routed.fail(closed(false));
        }
        let wait = self.mapping.lock().wait(routed.later(), Tick::now());
        match wait {
            Wait::Known(routed) => self.submit(routed),
            Wait::Waits => self.refresh(),
            Wait::Refused(routed, failure) => {
                self.refresh();
                routed.fail(failure);
            }
        }
    }

    /// Sends an operation to a node. `asking` says whether that serves it only because it is asked to.
    pub(super) fn send_to(self: &Arc<Self>, address: &Address, routed: Routed, asking: bool) {
        let node = match self.node(address) {
            Ok(Some(node)) => node,
            Ok(None) => return routed.fail(closed(false)),
            Err(failure) => return routed.fail(about(address, failure)),
        };
        let (cluster, address, mut request) = (Arc::clone(self), address.clone(), routed.request.clone());
        if let Op::Scan { cursor, .. } = &mut request.op {
            cursor.place = 0;
        }
        let completion = Completion::followed(move |answer, io| cluster.answered(&address, routed, answer, io));
        node.routes.send(InFlight { asking, ..InFlight::new(request, completion) });
    }

    /// Sends an operation on, where its answer was read.
    fn send_on(self: &Arc<Self>, address: &Address, routed: Routed, asking: bool) {
        let routed = Routed { hops: routed.hops + 1, ..routed };
        if routed.hops > HOPS {
            let why = "the nodes of the cluster send this operation from one to the other";
            return routed.fail(Failure::not_applied(FailureKind::ClusterDown, why));
        }
        if routed.request.deadline <= Tick::now() {
            return routed.fail(too_late());
        }
        self.send_to(address, routed, asking);
    }

    /// Takes the answer of a node.
    fn answered(self: &Arc<Self>, from: &Address, mut routed: Routed, answer: Answer, io: &Io) {
        let failure = match answer {
            Ok(reply) => return routed.completion.complete_by(io, Ok(whole(&routed.request.op, reply))),
            Err(failure) => failure,
        };
        // The thread that reads the answer sends the operation on: an event loop at once, with no other.
        routed.request.io = io.clone();
        match failure.redirect.as_deref() {
            Some(Redirect::Moved { slot, host, port }) => {
                let to = from.elsewhere(host, *port);
                self.mapping.lock().moved(*slot, &to);
                place_channels(self, Moved::Slot(*slot));
                self.refresh();
                return self.send_on(&to, routed, false);
            }
            Some(Redirect::Ask { host, port }) => return self.send_on(&from.elsewhere(host, *port), routed, true),
            Some(Redirect::TryAgain) => return self.split(routed, failure),
            None => {}
        }
        if let (FailureKind::Disconnected, Op::Scan { cursor, .. }) = (failure.kind, &mut routed.request.op)
            && routed.hops < HOPS
        {
            *cursor = Scanned::read(*cursor).over().write();
            self.refresh();
            return self.submit(Routed { hops: routed.hops + 1, ..routed });
        }
        use FailureKind::{Closed, ClusterDown, Disconnected, Dns, ReadOnly, Refused, Timeout};
        match failure.kind {
            // The node was left, not the client.
            Closed if self.nodes.stage() < Stage::Closed => {
                if routed.request.op.survives_reconnect() && routed.hops < HOPS {
                    return self.submit(Routed { hops: routed.hops + 1, ..routed });
                }
                if self.nodes.stage() < Stage::Cancelled {
                    let why = "the node is no primary of the cluster any more";
                    let failure = Failure { kind: Disconnected, message: why.to_owned(), ..failure };
                    return routed.fail(about(from, failure));
                }
            }
            ClusterDown | Disconnected | Dns | ReadOnly | Refused | Timeout => self.refresh(),
            // Managed services say this of a script while they scale.
            _ if failure.message.contains("non local key") => self.refresh(),
            _ => {}
        }
        routed.fail(if failure.kind == Closed { failure } else { about(from, failure) });
    }

    /// Does an operation in parts, as its slot is moving. What has none is sent again later.
    fn split(self: &Arc<Self>, routed: Routed, failure: Failure) {
        let begun = match &routed.request.op {
            Op::Lock(op) => Split::begin(op),
            _ => None,
        };
        match begun {
            Some((split, first)) => self.send_part(split, first, routed.request.deadline, routed.completion, &routed.request.io),
            None => self.send_later(routed, failure),
        }
    }

    fn send_part(self: &Arc<Self>, mut split: Split, part: Op, deadline: Tick, completion: Completion, io: &Io) {
        let cluster = Arc::clone(self);
        // What was taken is given back also behind the deadline of the whole.
        let is_late = part.survives_reconnect();
        let until = if is_late { deadline.max(Tick::now().after(self.response_timeout)) } else { deadline };
        let next = Completion::followed(move |answer, io| match split.next(answer) {
            Next::Send(part) => cluster.send_part(split, part, deadline, completion, io),
            Next::Done(answer) => completion.complete_by(io, answer),
        });
        self.submit(Routed::new(Request::new(part, until).by(io), next));
    }

    /// Sends an operation again, as its slot is moving, if it has the time.
    fn send_later(self: &Arc<Self>, routed: Routed, failure: Failure) {
        let pause = AGAIN.spread(routed.waits.saturating_add(1), fastrand::f64());
        if routed.request.deadline <= Tick::now().after(pause) {
            return routed.fail(failure);
        }
        let (cluster, routed) = (Arc::clone(self), Routed { waits: routed.waits + 1, ..routed }.later());
        self.host.spawn(async move {
            sleep(pause).await;
            cluster.submit(routed);
        });
    }

    /// Asks every primary what it is, by a map that the nodes have just given: an older one may name what fails.
    fn examine(self: &Arc<Self>, routed: Routed) {
        if routed.hops == 0 {
            self.mapping.lock().await_map(Routed { hops: 1, ..routed }.later());
            return self.refresh();
        }
        let mapping = self.mapping.lock();
        let (primaries, unserved) = (mapping.primaries().unwrap_or_default().to_vec(), mapping.unserved());
        drop(mapping);
        let Routed { request, completion, .. } = routed;
        if primaries.is_empty() {
            self.refresh();
            return completion.complete(Err(Failure::not_applied(FailureKind::ClusterDown, UNSERVED)));
        }
        let mut asked = Vec::with_capacity(primaries.len());
        for address in &primaries {
            let (sender, received) = oneshot::channel();
            let completion = Completion::new(move |answer| drop(sender.send(answer)));
            self.send_to(address, Routed::new(request.clone(), completion), false);
            asked.push(received);
        }
        self.host.spawn(async move {
            let mut answers = Vec::with_capacity(asked.len());
            for received in asked {
                answers.extend(received.await);
            }
            completion.complete(facts::of_all(answers, unserved));
        });
    }

    /// Cancels all operations but releases, also those that are submitted later.
    pub(super) fn cancel(&self) {
        self.nodes.begin(Stage::Cancelled).iter().for_each(|node| node.routes.cancel());
        let waiting = self.mapping.lock().take_waiting();
        waiting.into_iter().for_each(|routed| routed.fail(closed(false)));
    }

    pub(super) fn close(&self) {
        self.nodes.begin(Stage::Closed).iter().for_each(|node| node.routes.close());
        self.listening.close();
        self.stop_refreshing();
        let waiting = self.mapping.lock().take_waiting();
        waiting.into_iter().for_each(|routed| routed.fail(closed(false)));
    }
}

/// What a node's reply says of the whole cluster.
fn whole(op: &Op, mut reply: Reply) -> Reply {
    if let (Op::Scan { cursor, .. }, Verdict::Scanned { next, .. }) = (op, &mut reply.verdict) {
        *next = Scanned::read(*cursor).behind(next.own).write();
    }
    reply
}
