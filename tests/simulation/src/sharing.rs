//! Sharing: which holds of readers and of permits may be valid at the same time, how their fences are ordered, and what is left of them.

use std::collections::BTreeSet;

use locktender::internals::name::Kind;

use super::clock::Instant;
use super::failover::Failover;
use super::history::{Granted, History, Stretch};
use super::inside::Inside;
use super::world::World;

/// Whether holds of these kinds may be valid at the same time.
pub(super) const fn overlaps(one: Kind, other: Kind) -> bool {
    matches!((one, other), (Kind::Read, Kind::Read) | (Kind::Semaphore(_), Kind::Semaphore(_)))
}

fn limit(kind: Kind) -> u32 {
    if let Kind::Semaphore(limit) = kind { limit } else { 0 }
}

impl History {
    /// Readers are valid beside readers only, permits beside permits, and at no instant more of these than the largest number that one
    /// of them was granted with. `stretches` are in the order of their beginnings.
    pub(super) fn crowd(&self, stretches: &[Stretch], failovers: &[Failover], quarantine: bool) -> Option<String> {
        let mut inside: Vec<&Stretch> = Vec::new();
        for next in stretches {
            inside.retain(|stretch| stretch.to > next.from);
            let is_parted = |other: &&&Stretch| self.is_parted((other, next), failovers, quarantine);
            let others: Vec<&&Stretch> =
                inside.iter().filter(|other| other.who != next.who).filter(|other| !is_parted(other)).collect();
            if let Some(other) = others.iter().find(|other| !overlaps(other.kind, next.kind)) {
                return Some(format!("two valid holds: {other:?} and {next:?}"));
            }
            let holders: BTreeSet<_> = others.iter().map(|other| other.who).collect();
            let most = others.iter().map(|other| limit(other.kind)).fold(limit(next.kind), u32::max);
            if next.kind != Kind::Read && overlaps(next.kind, next.kind) && holders.len() >= most as usize {
                return Some(format!("more than {most} have a permit: {others:?} and {next:?}"));
            }
            inside.push(next);
        }
        None
    }
}

/// A fence is above those of all holds that returned before it was asked for; readers of one period have the same one, and nobody else
/// was granted anything between them.
pub(super) fn disorder(grants: &[Granted]) -> Option<String> {
    let (mut by_return, mut by_asked) = (grants.to_vec(), grants.to_vec());
    by_return.sort_by_key(|grant| grant.returned);
    by_asked.sort_by_key(|grant| grant.asked);
    let (mut returned, mut of_readers, mut of_others) = (0, 0, 0);
    for grant in &by_asked {
        while let Some(before) = by_return.get(returned).filter(|before| before.returned < grant.asked) {
            let highest = if before.kind == Kind::Read { &mut of_readers } else { &mut of_others };
            *highest = before.fence.max(*highest);
            returned += 1;
        }
        let sinks = if grant.kind == Kind::Read { grant.fence < of_readers } else { grant.fence <= of_readers };
        if sinks || grant.fence <= of_others {
            return Some(format!("{grant:?} is not above {of_readers} of readers and {of_others} of others before"));
        }
    }
    let mut by_fence = grants.to_vec();
    by_fence.sort_by_key(|grant| (grant.fence, grant.voted));
    for pair in by_fence.windows(2).filter(|pair| pair[0].fence == pair[1].fence) {
        let is_between = |grant: &&Granted| grant.kind != Kind::Read && (pair[0].voted..pair[1].voted).contains(&grant.voted);
        let between = grants.iter().find(is_between);
        if pair.iter().any(|grant| grant.kind != Kind::Read) || between.is_some() {
            return Some(format!("one fence for {:?} and {:?}, and between them {between:?}", pair[0], pair[1]));
        }
    }
    None
}

impl World {
    /// Whether a reader joined a period behind a failover. The period keeps its number until all of its readers are out, as the page about
    /// readers says: it may have begun on the old primary, or for a client that knew less of the old one's clock and fences.
    pub(super) fn keeps_older_period(&self, name: usize, grant: &Granted) -> bool {
        let began = self.history.periods.get(&(name, grant.fence)).filter(|_| grant.kind == Kind::Read);
        let is_joined = began.is_some_and(|began| *began < grant.voted);
        is_joined && self.failovers.past.iter().any(|failover| failover.parts(0, grant.voted))
    }

    /// A mark of a hold that is over, or of a round that was undone, is gone a second after the server can be reached.
    pub(super) fn left_mark(&self, server: usize) -> Option<String> {
        let node = &self.nodes[server];
        self.keys.iter().enumerate().filter(|_| self.plan.is_shared).find_map(|(name, keys)| {
            let inside = Inside::of(&node.state, keys, node.wall_us(self.now));
            let left = inside.owners().find(|owner| self.is_leftover(server, name, owner))?;
            Some(format!("s{server}: the mark of {left} is still there: {:?}", self.history.whose(name, left)))
        })
    }

    /// Whether those inside on a promoted node were all granted the lock before this hold: the node lacks their releases.
    pub(super) fn has_earlier_marks(&self, client: usize, slot: usize) -> bool {
        let (entry, node) = (&self.processes[client].slots[slot], &self.nodes[0]);
        let Some(voted) = entry.owner.as_deref().map(|owner| self.history.voted(owner)).filter(|_| self.plan.is_shared) else {
            return false;
        };
        let (keys, now_us) = (&entry.recipe.keys, node.wall_us(self.now));
        let inside = Inside::of(&node.state, keys, now_us);
        // Also where their marks were deleted since then.
        let lost = node.bereft(keys, now_us).into_iter().flat_map(|bereft| &bereft.owners);
        let mut owners = inside.owners().chain(lost).peekable();
        owners.peek().is_some() && owners.all(|owner| self.history.voted(owner) < voted)
    }

    /// Whether marks of a lock are still there at an instant.
    pub(super) fn has_marks(&self, name: usize, at: Instant) -> bool {
        self.nodes.iter().any(|node| node.state.get(self.keys[name].marks(), node.wall_us(at)).is_some())
    }
}
