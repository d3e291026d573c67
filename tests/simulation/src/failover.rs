//! Failovers: a replica with older data is promoted, and the old primary may still answer those that are connected to it.

use locktender::internals::name::Kind;

use super::clock::{Clock, Instant, micros, ms};
use super::history::Granted;
use super::node::Node;
use super::queue::Event;
use super::role::Role;
use super::route::Socket;
use super::world::World;

/// A promotion. Times are microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promotion {
    /// The age of the replica's data: what was written later is lost.
    pub(super) age: u64,
    /// The time until the replica answers as the primary.
    pub(super) outage: u64,
    /// The time for which the old primary still answers.
    pub(super) lingers: u64,
    /// The difference of the replica's clock.
    pub(super) skew: i64,
}

/// A promotion that took place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failover {
    at: Instant,
    /// The time until which the old primary answered.
    until: Instant,
    skew: u64,
    /// The number of the old primary.
    node: u32,
    /// Its clock, and by how much that was ahead in its last answer.
    clock: (Clock, u64),
}

impl Failover {
    /// The time until which the old primary answered.
    pub(super) const fn until(&self) -> Instant {
        self.until
    }

    /// Whether it may have parted what began at these two times: the one on the old primary, the other on the new one.
    pub(super) fn parts(&self, earlier: Instant, later: Instant) -> bool {
        earlier <= self.until && later >= self.at
    }

    /// The time after which a next fence is above those that were lost: a second, and the difference of the clocks. A client knows
    /// a server's clock a little less well, and clocks drift.
    fn repeats_for(&self) -> u64 {
        ms(1_500) + self.skew
    }

    /// By how much a fence of the old primary was ahead of its clock: an earlier failover had raised it.
    fn raised_by(&self, grant: &Granted) -> u64 {
        let (clock, ahead) = &self.clock;
        grant.fence.saturating_sub(clock.at(grant.voted) + ahead)
    }
}

/// The failovers of a run, and the old primaries that still answer, by server.
#[derive(Default)]
pub(super) struct Failovers {
    pub(super) past: Vec<Failover>,
    old: Vec<(usize, Node)>,
}

impl World {
    /// The node with this number, if it answers for the server, or has answered and isn't gone.
    pub(super) fn node(&self, server: usize, number: u32) -> Option<&Node> {
        let old = self.failovers.old.iter().filter(|(of, _)| *of == server).map(|(_, node)| node);
        std::iter::once(&self.nodes[server]).chain(old).find(|node| node.number == number)
    }

    pub(super) fn node_mut(&mut self, (server, number): (usize, u32)) -> Option<&mut Node> {
        let old = self.failovers.old.iter_mut().filter(|(of, _)| *of == server).map(|(_, node)| node);
        std::iter::once(&mut self.nodes[server]).chain(old).find(|node| node.number == number)
    }

    pub(super) fn fail_over(&mut self, server: usize, promotion: Promotion) {
        let Promotion { age, outage, lingers, skew } = promotion;
        if !self.nodes[server].up {
            return;
        }
        let (now, drift) = (self.now, self.plan.drift_ppm);
        let drift = self.rng.i64(-drift..=drift);
        let mut next = self.nodes[server].replica(now, age, skew, drift);
        next.forgot_at = self.nodes[server].forgot_at.max(Some(now + lingers));
        let old = std::mem::replace(&mut self.nodes[server], next);
        let (node, clock) = (old.number, (old.clock, old.ahead - old.unshown));
        self.failovers.past.push(Failover { at: now, until: now + lingers, skew: skew.unsigned_abs(), node, clock });
        self.failovers.old.push((server, old));
        self.forgot = true;
        for client in 0..self.processes.len() {
            self.disturb(client, server, outage.max(lingers));
            self.break_one(client, server, now + outage);
        }
        self.queue.add(now + outage, Event::Restart { server });
        self.queue.add(now + lingers, Event::Demote { server, node });
    }

    pub(super) fn go_and_return(&mut self, server: usize, age: u64) {
        let now = self.now;
        if !self.nodes[server].up {
            return;
        }
        let Node { number: node, clock, ahead, unshown, .. } = self.nodes[server];
        self.nodes[server].go_and_return(now, age);
        self.failovers.past.push(Failover { at: now, until: now, skew: 0, node, clock: (clock, ahead - unshown) });
        self.forgot = true;
        (0..self.processes.len()).for_each(|client| self.disturb(client, server, 0));
    }

    /// Has one of two connections break soon after `at`. The next one goes to the new primary, and the other is still there.
    fn break_one(&mut self, client: usize, server: usize, at: Instant) {
        let ways = &self.routes[client][server].ways;
        let way = self.rng.usize(..ways.len());
        let Socket::Open(conn) = ways[way].sockets[Role::Operations as usize] else { return };
        if ways.len() > 1 && self.rng.bool() {
            let at = at + self.rng.u64(..ms(50));
            self.queue.add(at, Event::Broken { client, server, way: (way, Role::Operations), conn });
        }
    }

    /// An old primary is gone, or has become a replica, which closes its connections.
    pub(super) fn demote(&mut self, server: usize, node: u32) {
        self.failovers.old.retain(|(of, old)| (*of, old.number) != (server, node));
        for client in 0..self.processes.len() {
            self.cut_to(client, server, Some(node), 0, true);
        }
    }

    /// A client has read an answer with the time of its node.
    pub(super) fn read_time(&mut self, client: usize, server: usize, way: usize, time_us: u64) {
        let number = self.routes[client][server].ways[way].node();
        let Some(node) = self.node(server, number) else { return };
        let ahead = time_us.saturating_sub(node.clock.at(self.now)).min(node.ahead);
        let shown = &mut self.routes[client][server].shown;
        let before = if shown.0 == number { shown.1 } else { 0 };
        *shown = (number, before.max(ahead));
    }

    /// A connection is up, and another one was at `read_at`: its client has accepted this node as the server's primary. What it has
    /// read of the old primary's clock since then is no older, and both clocks drift.
    pub(super) fn accepted(&mut self, client: usize, server: usize, node: u32, read_at: Instant) {
        let (now, moment) = (self.now, self.moment());
        let (before, shown) = (self.routes[client][server].replid.0, self.routes[client][server].shown);
        if node <= before {
            return;
        }
        // The clock may have jumped when this client was out of reach.
        let shown = if shown.0 == before { shown.1 } else { 0 };
        let known = self.failovers.past.iter().find(|failover| self.plan.servers == 1 && failover.node == before);
        let drift = (now - read_at) * 2 * self.plan.drift_ppm.unsigned_abs() / 1_000_000;
        let floor =
            known.map(|Failover { clock: (clock, ahead), .. }| clock.at(now.saturating_sub(moment)) + shown.min(*ahead) - drift);
        let route = &mut self.routes[client][server];
        route.replid = (node, now);
        route.floor = floor.map(|floor| (now, floor)).or(route.floor);
    }

    /// A client that knew the old primary gets no fence from the new one that the old one may have given before.
    pub(super) fn sinks(&self, client: usize, name: usize, grant: &Granted) -> Option<String> {
        let (since, floor) = self.routes[client][0].floor.filter(|(since, _)| grant.asked > *since)?;
        (grant.fence < floor && !self.keeps_older_period(name, grant))
            .then(|| format!("c{client}: {grant:?} is below {floor}, the time of the old primary at {since}"))
    }

    /// A client writes an operation for this node, or into a socket that was cut (0), which it hasn't noticed.
    pub(super) fn writes_to(&mut self, client: usize, server: usize, node: u32) {
        let present = self.routes[client][server].replid.0;
        if (1..present).contains(&node) {
            self.violate(format!("c{client} writes to node {node} of s{server}, and knows that node {present} has followed it"));
        }
    }

    /// A client that knows a promoted node has asked it for all of its holds: no handle is valid whose key the node lacks.
    pub(super) fn look_for_believers(&mut self) {
        let (node, longest) = (&self.nodes[0], self.plan.latency_us + self.plan.jitter_us);
        let is_steady = self.plan.lost_per_mille == 0 && micros(self.plan.response_timeout) > 4 * longest && !self.plan.outside;
        if self.plan.servers > 1 || !is_steady || !node.up {
            return;
        }
        let limit = micros(self.plan.response_timeout) + 2 * self.moment();
        let is_quiet = |at: Instant| at + limit < self.now;
        let mut found = None;
        for (client, process) in self.processes.iter().enumerate().filter(|(_, process)| process.alive && !process.closed) {
            let route = &self.routes[client][0];
            let (replid, mut since) = route.replid;
            // Of a return it learns by its next handshake.
            if node.returned_at >= since {
                since = if route.followed_at > node.returned_at { route.followed_at } else { self.now };
            }
            let troubles = [since, node.troubled_at, node.stopped_until, process.stopped_until, route.troubled_until];
            if replid != node.number || !troubles.into_iter().all(is_quiet) {
                continue;
            }
            let tick = self.read_clocks(client).tick;
            let valid = process.live.iter().filter(|slot| process.slots[**slot].valid_until > tick);
            for slot in valid {
                let entry = &process.slots[*slot];
                let holder = node.lock(&entry.recipe.keys, self.now).map(|(holder, _)| holder);
                let kept =
                    entry.owner.as_deref().and_then(|owner| node.kept_or_barred_until(&entry.recipe.keys, owner, self.now));
                if entry.granted_at < since && entry.grant.is_some() && entry.gone.is_none() && kept.is_none() {
                    found = Some(format!("c{client}.{slot} believes in a hold that its server has lost: it has {holder:?}"));
                }
            }
        }
        if let Some(why) = found {
            self.violate(why);
        }
    }

    /// Fences over failovers: a later one is larger, but for a moment after a failover that lost some. A client that has seen a
    /// fence gets no smaller one.
    pub(super) fn disorder_of_failovers(&self) -> Option<String> {
        for (name, grants) in &self.history.grants {
            let pairs = grants.iter().flat_map(|before| grants.iter().map(move |after| (before, after)));
            let fails = |(before, after): &(&Granted, &Granted)| {
                // What an old primary gave is parted from the new one by every later failover, too.
                let parted = self.failovers.past.iter().skip_while(|failover| !failover.parts(before.voted, after.voted));
                let parted: Vec<_> = parted.filter(|failover| failover.at <= after.voted).collect();
                let raised_by = parted.first().map_or(0, |failover| failover.raised_by(before));
                let repeats_for = parted.iter().map(|failover| failover.repeats_for()).sum::<u64>() + raised_by;
                let has_seen = before.client == after.client && before.returned < after.asked;
                // Readers of one period have the same.
                let is_same = before.fence == after.fence && (before.kind, after.kind) == (Kind::Read, Kind::Read);
                let sinks = after.fence <= before.fence && !is_same && !self.keeps_older_period(*name, after);
                sinks && (has_seen || before.voted + repeats_for < after.voted)
            };
            if let Some((before, after)) = pairs.into_iter().find(fails) {
                return Some(format!("l{name}: {after:?} is not above {before:?}"));
            }
        }
        None
    }
}
