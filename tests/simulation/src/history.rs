//! History: the events in true time, and whether they were allowed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use locktender::internals::name::Kind;
use locktender::op::{LockOp, Op, Reply, Verb, Verdict};

use super::clock::Instant;
use super::failover::Failover;
use super::session::Late;
use super::sharing;
use super::world::World;

/// A stretch of time in which a handle showed that it was valid.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) from: Instant,
    pub(super) to: Instant,
    pub(super) who: (usize, usize),
    pub(super) kind: Kind,
}

/// A grant: the time of its request, the time of its return, and its fence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) client: usize,
    pub(super) asked: Instant,
    pub(super) returned: Instant,
    /// The time of the vote.
    pub(super) voted: Instant,
    pub(super) fence: u64,
    pub(super) kind: Kind,
}

/// The acquisition that an owner value belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whose {
    pub(super) client: usize,
    pub(super) slot: usize,
    /// Since when the value should be on no server.
    pub(super) since: Option<Instant>,
}

/// A node that voted.
#[derive(Clone, Copy)]
struct Voter {
    node: u32,
    at: Instant,
    /// Whether another node had followed it by then.
    late: bool,
}

#[derive(Default)]
pub(super) struct History {
    pub(super) stretches: BTreeMap<usize, Vec<Stretch>>,
    pub(super) grants: BTreeMap<usize, Vec<Granted>>,
    /// By owner value and lock: locks that were acquired at once have one value.
    owners: HashMap<Arc<str>, BTreeMap<usize, Whose>>,
    /// The time of the last write of a value on a server, and whether the request was an orphan: read from a dead connection after
    /// its client had stopped asking about it.
    written: HashMap<(usize, Arc<str>), (Instant, bool)>,
    /// The servers that voted for a value, or confirmed it, with a fence.
    attested: HashMap<(Arc<str>, u64), BTreeSet<usize>>,
    /// The time of the last vote for a value.
    voted: HashMap<Arc<str>, Instant>,
    /// The node that voted for an acquisition last.
    voter: HashMap<(usize, usize), Voter>,
    /// The acquisitions that a later node has confirmed.
    moved: HashSet<(usize, usize)>,
    /// When a period of readers began, by lock and fence.
    pub(super) periods: HashMap<(usize, u64), Instant>,
    /// The places where a heal wrote a value.
    healed: HashSet<(usize, Arc<str>)>,
}

impl History {
    pub(super) fn own(&mut self, name: usize, owner: &Arc<str>, client: usize, slot: usize) {
        self.owners.entry(owner.clone()).or_default().insert(name, Whose { client, slot, since: None });
    }

    /// One of several locks that an acquisition has got is another one from now on.
    pub(super) fn hand_on(&mut self, name: usize, owner: &Arc<str>, client: usize, (from, to): (usize, usize)) {
        self.own(name, owner, client, to);
        if let Some(voter) = self.voter.get(&(client, from)).copied() {
            self.voter.insert((client, to), voter);
        }
    }

    /// From now on the value should go from the servers.
    pub(super) fn disown(&mut self, name: usize, owner: &str, now: Instant) {
        if let Some(whose) = self.owners.get_mut(owner).and_then(|whose| whose.get_mut(&name)) {
            whose.since.get_or_insert(now);
        }
    }

    pub(super) fn whose(&self, name: usize, owner: &str) -> Option<Whose> {
        self.owners.get(owner)?.get(&name).copied()
    }

    pub(super) fn written(&self, server: usize, owner: &Arc<str>) -> Option<(Instant, bool)> {
        self.written.get(&(server, owner.clone())).copied()
    }

    /// The number of servers that attest a fence.
    pub(super) fn attested(&self, owner: &Arc<str>, fence: u64) -> usize {
        self.attested.get(&(owner.clone(), fence)).map_or(0, BTreeSet::len)
    }

    pub(super) fn voted(&self, owner: &str) -> Instant {
        self.voted.get(owner).copied().unwrap_or_default()
    }

    /// Whether a server gave this fence in a vote for another acquisition.
    pub(super) fn voted_for_another(&self, fence: u64, (client, slot): (usize, usize)) -> bool {
        let is_other = |whose: &Whose| (whose.client, whose.slot) != (client, slot);
        let others = |owner: &Arc<str>| self.owners.get(owner).is_some_and(|whose| whose.values().all(is_other));
        self.attested.keys().any(|(owner, vote)| *vote == fence && others(owner))
    }

    /// Whether an old primary granted the one of these two, which its successor can't know. With quarantine the successor grants
    /// nothing meanwhile, so the other one has to last there from before.
    fn are_parted(&self, one: (usize, usize), other: (usize, usize), quarantine: bool) -> bool {
        let was_late = |who| self.voter.get(&who).is_some_and(|voter| voter.late);
        let was_there = |who| !quarantine || self.moved.contains(&who);
        was_late(one) && was_there(other) || was_late(other) && was_there(one)
    }

    /// Whether a failover parted two stretches, of which the first one began first.
    pub(super) fn is_parted(&self, (last, next): (&Stretch, &Stretch), failovers: &[Failover], quarantine: bool) -> bool {
        let voted = |stretch: &Stretch| self.voter.get(&stretch.who).map_or(stretch.from, |voter| voter.at.min(stretch.from));
        // A client that was paused meanwhile takes the vote of the old primary late.
        let parts = |failover: &Failover| failover.parts(voted(last), next.from) || failover.parts(voted(next), voted(last));
        let is_lost = || failovers.iter().any(parts);
        self.are_parted(last.who, next.who, quarantine) || !quarantine && is_lost()
    }

    /// No two handles of a name are valid at the same instant, but where one of `failovers` parted them.
    pub(super) fn overlap(&mut self, failovers: &[Failover], quarantine: bool) -> Option<String> {
        self.stretches.values_mut().for_each(|stretches| stretches.sort_by_key(|stretch| stretch.from));
        for (name, stretches) in &self.stretches {
            if stretches.iter().any(|stretch| stretch.kind.is_shared()) {
                if let Some(why) = self.crowd(stretches, failovers, quarantine) {
                    return Some(format!("l{name}: {why}"));
                }
                continue;
            }
            let mut last: Option<&Stretch> = None;
            for next in stretches {
                let is_parted = |last: &Stretch| self.is_parted((last, next), failovers, quarantine);
                if let Some(last) = last.filter(|last| last.to > next.from && last.who != next.who && !is_parted(last)) {
                    return Some(format!("two valid holds of l{name}: {last:?} and {next:?}"));
                }
                last = if last.is_some_and(|last| last.to > next.to) { last } else { Some(next) };
            }
        }
        None
    }

    /// Fences are unique. A fence is larger than those of all holds that returned before it was asked for.
    pub(super) fn disorder(&mut self) -> Option<String> {
        for (name, grants) in &mut self.grants {
            if grants.iter().any(|grant| grant.kind.is_shared()) {
                if let Some(why) = sharing::disorder(grants) {
                    return Some(format!("l{name}: {why}"));
                }
                continue;
            }
            let mut by_return = grants.clone();
            by_return.sort_by_key(|grant| grant.returned);
            grants.sort_by_key(|grant| grant.asked);
            let (mut returned, mut highest) = (0, 0);
            for grant in grants.iter() {
                while by_return.get(returned).is_some_and(|before| before.returned < grant.asked) {
                    highest = highest.max(by_return[returned].fence);
                    returned += 1;
                }
                if grant.fence <= highest {
                    return Some(format!("l{name}: {grant:?} is not above the fence {highest} of a hold that returned before"));
                }
            }
            by_return.sort_by_key(|grant| grant.fence);
            if let Some(pair) = by_return.windows(2).find(|pair| pair[0].fence == pair[1].fence) {
                return Some(format!("l{name}: one fence for two holds: {:?} and {:?}", pair[0], pair[1]));
            }
        }
        None
    }
}

impl World {
    /// Whose value this operation has on its lock.
    fn whose(&self, op: &Op, owner: &str) -> Option<Whose> {
        self.history.whose(self.name_of(op.keys()?.lock())?, owner)
    }

    /// Follows an acquisition from node to node. `late`: another node has followed this one.
    fn follow(&mut self, node: u32, late: bool, op: &Op, reply: &Reply) {
        let (Op::Lock(LockOp { by: owner, verb: Verb::Acquire { .. } | Verb::Extend { .. }, .. })
        | Op::Lock(LockOp { by: owner, verb: Verb::Heal { .. }, .. })) = op
        else {
            return;
        };
        let Some(Whose { client, slot, .. }) = self.whose(op, owner) else { return };
        let who = (client, slot);
        match (op, &reply.verdict) {
            (Op::Lock(LockOp { verb: Verb::Acquire { .. }, .. }), Verdict::Vote) => {
                self.history.voter.insert(who, Voter { node, at: self.now, late });
            }
            (_, Verdict::Ok) if self.history.voter.get(&who).is_some_and(|voter| voter.node < node) => {
                self.history.moved.insert(who);
            }
            _ => (),
        }
    }

    /// A server has done an operation.
    pub(super) fn applied(&mut self, (server, node): (usize, u32), op: &Op, reply: &Reply, late: Late) {
        self.follow(node, node < self.nodes[server].number, op, reply);
        self.enters_reign(server, op);
        if let (
            Op::Lock(LockOp { by: owner, verb: Verb::Acquire { .. } | Verb::Confirm { .. }, .. }),
            Verdict::Vote | Verdict::Ok,
        ) = (op, &reply.verdict)
        {
            self.history.attested.entry((owner.clone(), reply.fence)).or_default().insert(server);
            self.history.voted.insert(owner.clone(), self.now);
            if let Some(keys) = op.keys().filter(|keys| keys.kind() == Kind::Read)
                && let Some(name) = self.name_of(keys.lock())
            {
                self.history.periods.entry((name, reply.fence)).or_insert(self.now);
            }
        }
        if let (Op::Lock(LockOp { by: owner, verb: Verb::Heal { .. }, .. }), Verdict::Ok) = (op, &reply.verdict) {
            self.history.healed.insert((server, owner.clone()));
        }
        if let (Op::Lock(LockOp { by: owner, verb: Verb::Acquire { .. }, .. }), Verdict::Vote, false) =
            (op, &reply.verdict, late.overtaken)
            && self.history.healed.contains(&(server, owner.clone()))
        {
            self.violate(format!("s{server}: a heal overtook the acquire of {owner}"));
        }
        if let Op::Lock(LockOp { by: owner, verb: Verb::Acquire { .. } | Verb::Heal { .. }, .. }) = op {
            self.history.written.insert((server, owner.clone()), (self.now, late.orphan));
        }
        // No operation removes a value from a server that a valid hold counts on.
        if let (Op::Lock(LockOp { by: owner, verb: Verb::Release { .. } | Verb::EndAttempt { .. }, .. }), Verdict::Ok) =
            (op, &reply.verdict)
        {
            let Some(Whose { client, slot, .. }) = self.whose(op, owner) else { return };
            let entry = &self.processes[client].slots[slot];
            let tick = self.read_clocks(client).tick;
            if entry.valid_until > tick && entry.grant.is_some() {
                self.servers_keep(client, slot, entry.valid_until);
            }
        }
    }
}
