//! Inside: those who hold a lock at once on one server, and what an operation may change of them. The rules of the gate and of its marks,
//! written independently.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use locktender::internals::name::{Keys, Kind};
use locktender::machine::{State, claim, is_claim};
use locktender::op::{LockOp, Op, Reply, Verb, Verdict};

/// What the lock's key shows while several hold the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// Readers, with their fence.
    Read(u64),
    /// At most so many.
    Permits(u64),
}

impl Gate {
    /// The gate that a value is, if it is one.
    pub(super) fn of(value: &str) -> Option<Self> {
        let (kind, number) = value.split_once(' ')?;
        match (kind, number.parse().ok()?) {
            ("read", period) => Some(Self::Read(period)),
            ("permits", limit) => Some(Self::Permits(limit)),
            _ => None,
        }
    }

    pub(super) const fn is_of(self, kind: Kind) -> bool {
        matches!((self, kind), (Self::Read(_), Kind::Read) | (Self::Permits(_), Kind::Semaphore(_)))
    }
}

/// The gate of a lock, and its marks.
pub(super) struct Inside {
    gate: Option<Gate>,
    /// When the lock's key expires.
    ends_ms: Option<u64>,
    /// The marks with their ends: all, and those that live.
    known: BTreeMap<Arc<str>, u64>,
    marks: BTreeMap<Arc<str>, u64>,
    /// When the set of marks expires; `None` if there is no set.
    set_ends_ms: Option<Option<u64>>,
    now_ms: u64,
}

impl Inside {
    pub(super) fn of(state: &State, keys: &Keys, now_us: u64) -> Self {
        let (lock, set) = (state.get(keys.lock(), now_us), state.get(keys.marks(), now_us));
        let members = state.members(keys.marks(), now_us);
        let known: BTreeMap<_, _> = members
            .into_iter()
            .flat_map(|members| members.from(0))
            .map(|(end, owner)| (owner.clone(), end.unsigned_abs()))
            .collect();
        let marks = known.iter().filter(|(_, end)| **end > now_us / 1_000).map(|(owner, end)| (owner.clone(), *end)).collect();
        Self {
            gate: lock.and_then(|entry| Gate::of(entry.text()?)),
            ends_ms: lock.and_then(|entry| entry.expires_ms),
            known,
            marks,
            set_ends_ms: set.map(|entry| entry.expires_ms),
            now_ms: now_us / 1_000,
        }
    }

    /// The end of a hold of this kind by its mark, in milliseconds.
    pub(super) fn end_of(&self, kind: Kind, owner: &str) -> Option<u64> {
        self.marks.get(owner).copied().filter(|_| self.gate.is_some_and(|gate| gate.is_of(kind)))
    }

    /// Whether a waiter of the queue may enter beside those inside; `None` if nobody is.
    pub(super) fn has_room_for(&self, entry: &str) -> Option<bool> {
        let gate = self.gate.filter(|_| !self.marks.is_empty())?;
        Some(match gate {
            Gate::Read(_) => entry.starts_with(['r', 's']),
            Gate::Permits(shown) => {
                let limit = entry.split(" permits=").nth(1).and_then(|limit| limit.split(' ').next()?.parse().ok());
                entry.starts_with(['p', 'q']) && (self.marks.len() as u64) < limit.unwrap_or(shown)
            }
        })
    }

    /// Whether who asks has come in already, or is expected: it has a mark, or names one, or a permit is kept for it.
    pub(super) fn expects(&self, op: &LockOp) -> bool {
        let Verb::Acquire { adopt, place, .. } = &op.verb else { return false };
        let kept = place.as_ref().map(|place| claim(&place.entry));
        let named = adopt.as_ref().map(|adopt| &*adopt.owner);
        [Some(&*op.by), named, kept.as_deref()].into_iter().flatten().any(|owner| self.marks.contains_key(owner))
    }

    /// The marks that live.
    pub(super) fn owners(&self) -> impl Iterator<Item = &Arc<str>> {
        self.marks.keys()
    }

    /// Whether readers of this kind of lock join those inside: they get no fence of their own.
    pub(super) fn is_joined(&self, op: &Op) -> bool {
        let reads = op.keys().is_some_and(|keys| keys.kind() == Kind::Read);
        reads && matches!(self.gate, Some(Gate::Read(_))) && !self.marks.is_empty()
    }

    /// Whether an operation may change the gate; `None` if there is none.
    pub(super) fn may_change(&self, op: &Op) -> Option<bool> {
        let (gate, Op::Lock(LockOp { keys, by, verb })) = (self.gate?, op) else { return None };
        let lives = !self.marks.is_empty();
        let is_its = lives && gate.is_of(keys.kind());
        // What was kept for a waiter that leaves goes to the next one.
        let leaves = |entry: &str| lives || self.known.contains_key(&*claim(entry));
        Some(match verb {
            Verb::Acquire { .. } => is_its,
            Verb::Extend { .. } | Verb::Heal { .. } | Verb::Release { leave: None, .. } => is_its && self.marks.contains_key(by),
            Verb::Release { leave: Some(entry), .. } => leaves(entry),
            Verb::Leave => leaves(by),
            _ => false,
        })
    }

    /// Whether somebody is inside.
    pub(super) fn has_holders(&self) -> bool {
        self.gate.is_some() && !self.marks.is_empty()
    }

    /// Checks what an operation has made of it. `is_bereft`: the marks of its gate were deleted.
    pub(super) fn allows(&self, op: &Op, reply: &Reply, after: &Self, is_bereft: bool) -> Result<(), String> {
        let Op::Lock(op) = op else { return Ok(()) };
        let kind = op.keys.kind();
        let is_barred = is_bereft && (after.gate, after.ends_ms) == (self.gate, self.ends_ms);
        after.is_whole(self.has_stray_marks(), is_barred)?;
        let enters = kind.is_shared() && reply.verdict == Verdict::Vote;
        let may_be = match (self.gate, after.gate) {
            (before, now) if before == now => true,
            (None, Some(gate)) => enters && gate.is_of(kind),
            // The gate shows the number of the last one who entered.
            (Some(Gate::Permits(_)), Some(Gate::Permits(limit))) => {
                enters && matches!(kind, Kind::Semaphore(most) if u64::from(most) == limit)
            }
            (Some(_), now) => now.is_none(),
            (None, None) => true,
        };
        if !may_be {
            return Err(format!("{op:?} made {:?} of {:?}", after.gate, self.gate));
        }
        let owners: BTreeSet<_> = self.marks.keys().chain(after.marks.keys()).collect();
        for owner in owners {
            let (before, now) = (self.marks.get(owner), after.marks.get(owner));
            let is_stray = enters && now.is_none() && self.has_stray_marks();
            if before != now && !is_stray && !may_mark(op, owner, (before, now), enters) {
                return Err(format!("{op:?} moved the mark of {owner} from {before:?} to {now:?}"));
            }
        }
        if let (Verb::Release { leave: Some(entry), .. }, _) | (Verb::Leave, entry) = (&op.verb, &op.by)
            && after.marks.contains_key(&*claim(entry))
        {
            return Err(format!("{op:?} keeps what was kept for it"));
        }
        if let (Verb::Confirm { fence } | Verb::Extend { fence, .. }, Verdict::Ok, true) =
            (&op.verb, &reply.verdict, kind.is_shared())
        {
            let is_its = self.end_of(kind, &op.by).is_some() && (kind != Kind::Read || self.gate == Some(Gate::Read(*fence)));
            if !is_its {
                return Err(format!("{op:?} was confirmed, and is not inside {:?}", self.gate));
            }
        }
        if let (Verb::Acquire { place: Some(place), .. }, Verdict::Held { .. }, Kind::Semaphore(limit)) =
            (&op.verb, &reply.verdict, kind)
            && self.marks.contains_key(&*claim(&place.entry))
            && self.marks.len() <= limit as usize
        {
            return Err(format!("{op:?} was refused what was kept for it"));
        }
        if let (Verb::Acquire { ttl_ms, place, .. }, true) = (&op.verb, enters) {
            if after.end_of(kind, &op.by).is_none_or(|end| end < after.now_ms + ttl_ms) {
                return Err(format!("{op:?} is not inside for so long: {:?}", after.marks));
            }
            if kind == Kind::Read && after.gate != Some(Gate::Read(reply.fence)) {
                return Err(format!("{op:?} has the fence {}, and not that of {:?}", reply.fence, after.gate));
            }
            let kept = place.as_ref().map(|place| claim(&place.entry));
            let others = self.marks.keys().filter(|owner| **owner != op.by && Some(&***owner) != kept.as_deref()).count();
            let others = if self.gate.is_some() { others } else { 0 };
            if matches!(kind, Kind::Semaphore(limit) if others >= limit as usize) {
                return Err(format!("{op:?} is the next one behind {others}"));
            }
        }
        Ok(())
    }

    /// Whether there are marks and no gate. A promoted replica whose clock is behind may show a set again that had expired, and whose gate
    /// was written over since. Who enters deletes it.
    const fn has_stray_marks(&self) -> bool {
        self.gate.is_none() && self.set_ends_ms.is_some()
    }

    /// Gate and marks end with the last mark. `had_strays`: there were marks without a gate before. `is_barred`: it is a gate
    /// whose marks were deleted, which has none until it ends.
    fn is_whole(&self, had_strays: bool, is_barred: bool) -> Result<(), String> {
        let last = self.marks.values().max().copied();
        match (self.gate, self.set_ends_ms, last) {
            (_, Some(None), _) => Err(format!("marks without an expiry: {:?}", self.known)),
            (None, Some(_), _) if !had_strays => Err(format!("marks without a gate: {:?}", self.known)),
            (Some(_), Some(set), Some(_)) if set != last || self.ends_ms != last => {
                Err(format!("the last mark ends at {last:?}, the gate at {:?}, the marks at {set:?}", self.ends_ms))
            }
            (Some(_), None, _) if is_barred => Ok(()),
            (Some(_), Some(_), _) if is_barred => Err(format!("marks were written again: {:?}", self.known)),
            (Some(_), _, None) if self.ends_ms.is_none_or(|end| end > self.now_ms) => {
                Err(format!("a gate without a mark until {:?}", self.ends_ms))
            }
            _ => Ok(()),
        }
    }
}

/// Whether an operation may change this mark so.
fn may_mark(op: &LockOp, owner: &Arc<str>, change: (Option<&u64>, Option<&u64>), enters: bool) -> bool {
    let LockOp { keys, by, verb } = op;
    let is_its = keys.kind().is_shared() && by == owner;
    let (place, leave) = match verb {
        Verb::Acquire { place, .. } => (place.as_ref().map(|place| &place.entry), None),
        Verb::Release { leave, .. } => (None, leave.as_ref()),
        Verb::Leave => (None, Some(by)),
        _ => (None, None),
    };
    match change {
        // A permit is kept for a waiter, and for nobody else.
        (None, Some(_)) if is_claim(owner) => matches!(verb, Verb::Acquire { .. } | Verb::Release { .. } | Verb::Leave),
        // It may have asked again since, and be the first one again.
        (Some(before), Some(now)) if is_claim(owner) => now > before,
        (Some(_), None) if is_claim(owner) => place.or(leave).is_some_and(|entry| claim(entry) == **owner),
        (None, Some(_)) => is_its && enters,
        (Some(before), Some(now)) => is_its && now > before && (enters || matches!(verb, Verb::Extend { .. })),
        (Some(_), None) => match verb {
            Verb::Release { .. } => is_its,
            Verb::Acquire { adopt: Some(adopt), .. } => enters && !adopt.beside && adopt.owner == *owner,
            _ => false,
        },
        (None, None) => true,
    }
}
