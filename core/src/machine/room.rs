//! Room: a lock that several hold at once, with its gate and its marks, at one time.

use std::sync::Arc;
use std::time::Duration;

use super::cut::cut;
use super::found::Found;
use super::members::Members;
use super::queue::{self, CLAIM_MS, limit_in, wants_permit};
use super::state::State;
use crate::error::Remaining;
use crate::mutant::mutant;
use crate::name::{Keys, Kind};
use crate::op::holder::{Gate, claim, is_claim};
use crate::op::{Inside, QueuePlace, Queued, Reply, Verdict};

/// The most waiters that one operation lets in.
const ADMITTED: usize = 8;

/// Among so many marks a refusal looks for one to show.
const LOOKED_AT: usize = 20;

/// A look shows so many of those inside.
const SHOWN: usize = 100;

/// An operation drops so many marks that have ended.
const DROPPED: usize = 100;

pub(super) fn reads(entry: &str) -> bool {
    entry.starts_with(['r', 's'])
}

impl Gate {
    /// Whether it is the gate of this kind of lock.
    pub(super) fn is_of(self, keys: &Keys) -> bool {
        matches!((self, keys.kind()), (Self::Read(_), Kind::Read) | (Self::Permits(_), Kind::Semaphore(_)))
    }
}

/// A lock and its marks, at one time.
pub(super) struct Room<'a> {
    pub(super) state: &'a mut State,
    pub(super) keys: &'a Keys,
    pub(super) now_us: u64,
}

impl Room<'_> {
    pub(super) fn now_ms(&self) -> u64 {
        self.now_us / 1_000
    }

    pub(super) fn score(&self, owner: &str) -> Option<u64> {
        self.state.members(self.keys.marks(), self.now_us)?.score(owner).map(i64::unsigned_abs)
    }

    /// The end of a mark that lives: until the millisecond of its end, through which the gate lives.
    pub(super) fn end_of(&self, owner: &str) -> Option<u64> {
        self.score(owner).filter(|end| *end > self.now_ms() || mutant!(EndedMarkLives))
    }

    /// The last mark to end, if it lives.
    pub(super) fn last(&self) -> Option<(u64, &Arc<str>)> {
        last(self.state, self.keys, self.now_us)
    }

    pub(super) fn last_end(&self) -> Option<u64> {
        self.last().map(|(end, _)| end)
    }

    /// The marks that live, in the order of their ends.
    pub(super) fn living(&self) -> impl Iterator<Item = (u64, &Arc<str>)> {
        living(self.state, self.keys, self.now_us)
    }

    pub(super) fn count(&self) -> u64 {
        self.living().count() as u64
    }

    pub(super) fn mark(&mut self, owner: &str, end: u64) {
        self.state.put_member(self.keys.marks(), owner, signed(end), self.now_us);
    }

    pub(super) fn unmark(&mut self, owner: &str) {
        self.state.drop_members(self.keys.marks(), &[owner], self.now_us);
    }

    /// Takes every mark out. A key of another type stays.
    pub(super) fn unmark_all(&mut self) {
        if self.state.members(self.keys.marks(), self.now_us).is_some() {
            self.state.remove(self.keys.marks());
        }
    }

    pub(super) fn drop_ended(&mut self) {
        let Some(members) = self.state.members(self.keys.marks(), self.now_us) else { return };
        let before = signed(self.now_ms() + 1);
        let ended = members.from(i64::MIN).take_while(|(end, _)| *end < before).take(DROPPED);
        let ended: Vec<Arc<str>> = ended.map(|(_, owner)| Arc::clone(owner)).collect();
        self.state.drop_members(self.keys.marks(), &ended.iter().map(|owner| &**owner).collect::<Vec<_>>(), self.now_us);
    }

    /// What remains of the lock's key.
    pub(super) fn left_ms(&self) -> Option<u64> {
        self.state.get(self.keys.lock(), self.now_us).and_then(|entry| entry.left_ms(self.now_us))
    }

    /// Has gate and marks end then.
    pub(super) fn end_at(&mut self, end: u64) {
        self.marks_end_at(end);
        self.state.expire(self.keys.lock(), self.now_us, end.saturating_sub(self.now_ms()));
    }

    pub(super) fn marks_end_at(&mut self, end: u64) {
        self.state.expire(self.keys.marks(), self.now_us, end.saturating_sub(self.now_ms()));
    }

    /// Has gate and marks last until then at least.
    pub(super) fn last_until(&mut self, end: u64) {
        if self.last_end().is_none_or(|last| end >= last) || mutant!(GateNotOfLast) {
            self.end_at(end);
        }
    }

    /// Has gate and marks end with the last mark.
    pub(super) fn last_until_last(&mut self) {
        if let Some(end) = self.last_end() {
            self.end_at(end);
        }
    }

    /// Whether this hold is inside: its mark lives, and a reader's period is that of the gate.
    pub(super) fn is_inside(&self, found: &Found, owner: &str, fence: u64) -> bool {
        let is_its_gate = match found.gate() {
            Some(Gate::Read(period)) => self.keys.kind() == Kind::Read && (period == fence || mutant!(AnyPeriodConfirms)),
            Some(Gate::Permits(_)) => self.keys.kind() != Kind::Read,
            None => false,
        };
        is_its_gate && self.end_of(owner).is_some()
    }

    /// Lets waiters in that may enter beside those inside, at most eight. Nobody passes the first one.
    pub(super) fn admit(&mut self, gate: Gate) {
        let (keys, now_us) = (self.keys, self.now_us);
        let mut is_kept = false;
        for _ in 0..ADMITTED {
            let Some(head) = queue::first(self.state, keys, now_us) else { return };
            let entry = &head.entry;
            match gate {
                Gate::Read(_) if reads(entry) && !mutant!(ReadersNotLetIn) => {
                    queue::leave(self.state, keys, entry, now_us);
                    queue::notify(self.state, keys, entry, "free", CLAIM_MS);
                }
                Gate::Permits(limit) if wants_permit(entry) => {
                    if self.count() >= limit_in(entry).unwrap_or(limit) {
                        // Who has one kept may not come.
                        if is_kept && !mutant!(LapsedClaimNotNotified) {
                            queue::notify(self.state, keys, entry, "next", CLAIM_MS);
                        }
                        return;
                    }
                    queue::leave(self.state, keys, entry, now_us);
                    if !head.is_served_directly(now_us) {
                        queue::notify(self.state, keys, entry, "free", CLAIM_MS);
                        if let Some(second) = queue::first(self.state, keys, now_us) {
                            queue::notify(self.state, keys, &second.entry, "next", CLAIM_MS);
                        }
                        return;
                    }
                    let end = self.now_ms() + CLAIM_MS;
                    self.last_until(end);
                    self.mark(&claim(entry), end);
                    queue::notify(self.state, keys, entry, "claim", CLAIM_MS);
                    is_kept = true;
                }
                _ => return,
            }
        }
    }

    /// The refusal of an acquire. It names the mark that ends last, and the one that ends first to who waits for a permit. That one may
    /// wait in the queue from now on.
    pub(super) fn held(&mut self, found: &Found, owner: &str, place: Option<&QueuePlace>) -> Reply {
        let gate = found.gate();
        let waits_for_first = matches!(gate, Some(Gate::Permits(_))) && self.keys.kind() != Kind::Read;
        let first = self.living().next().filter(|_| waits_for_first).map(|(end, _)| for_ms(end - self.now_ms()));
        let holder = match first {
            Some(_) => named(shown_in(self.living()), owner, found),
            None => holder(self.state, self.keys, found, owner),
        };
        let (holder, remaining) = (holder.unwrap_or_default(), first.unwrap_or_else(|| self.remaining(found)));
        let verdict = Verdict::Held { holder, remaining };
        let other_limit = self.other_limit(gate);
        let queued = place.map_or(Queued::Nothing, |place| queue::enqueue(self.state, self.keys, place, self.now_us));
        Reply { queued, other_limit, ..Reply::new(verdict, self.now_us, 0) }
    }

    /// What remains of the lock's key by now.
    pub(super) fn remaining(&self, found: &Found) -> Remaining {
        if found.is_held() { self.left_ms().map_or(Remaining::Forever, for_ms) } else { Remaining::Gone }
    }

    /// The number of permits that those inside have asked for, if it is not that of this lock; else 0.
    pub(super) fn other_limit(&self, gate: Option<Gate>) -> u32 {
        match (gate, self.keys.kind()) {
            (Some(Gate::Permits(theirs)), Kind::Semaphore(ours)) if theirs != u64::from(ours) && self.last_end().is_some() => {
                u32::try_from(theirs).unwrap_or(u32::MAX)
            }
            _ => 0,
        }
    }

    /// The refusal of a hold that isn't inside. Others that are inside in the same way are not in its place, so nobody is named then. The
    /// fence is the period that the gate shows.
    pub(super) fn no(&self, found: &Found, owner: &str, leaves: Option<&str>) -> Reply {
        let gate = found.gate();
        let holder = match gate {
            Some(gate) if gate.is_of(self.keys) => None,
            Some(_) => holder(self.state, self.keys, found, owner),
            None => found.shown().filter(|_| !leaves.is_some_and(|entry| found.is_claimed_by(entry))),
        };
        let period = if let Some(Gate::Read(period)) = gate { period } else { 0 };
        let remaining = if holder.is_none() && gate.is_none() { Remaining::Gone } else { self.remaining(found) };
        Reply::new(Verdict::No { holder, remaining }, self.now_us, period)
    }
}

fn last<'a>(state: &'a State, keys: &Keys, now_us: u64) -> Option<(u64, &'a Arc<str>)> {
    let (end, owner) = state.members(keys.marks(), now_us)?.last()?;
    Some((end.unsigned_abs(), owner)).filter(|(end, _)| *end > now_us / 1_000)
}

fn living<'a>(state: &'a State, keys: &Keys, now_us: u64) -> impl Iterator<Item = (u64, &'a Arc<str>)> + use<'a> {
    let members = state.members(keys.marks(), now_us);
    let from = signed(now_us / 1_000 + 1);
    members.into_iter().flat_map(move |members| members.from(from)).map(|(end, owner)| (end.unsigned_abs(), owner))
}

/// What is shown of a mark, or of the lock's value if there is none: a refusal never names who asks, whatever another program has written.
fn named(mark: Option<&str>, asks: &str, found: &Found) -> Option<String> {
    mark.filter(|owner| *owner != asks).map(|owner| cut(owner).to_owned()).or_else(|| found.shown())
}

/// The first owner of these marks. What is kept for a waiter is shown only if there is nothing else.
fn shown_in<'a>(marks: impl Iterator<Item = (u64, &'a Arc<str>)>) -> Option<&'a str> {
    let mut kept = None;
    for (_, owner) in marks.take(LOOKED_AT) {
        if !is_claim(owner) {
            return Some(owner);
        }
        kept = kept.or(Some(&**owner));
    }
    kept
}

/// Who has the lock, as a reply shows it: of a gate the owner of the mark that ends last.
pub(super) fn holder(state: &State, keys: &Keys, found: &Found, asks: &str) -> Option<String> {
    let from_last = || state.members(keys.marks(), found.now_us).into_iter().flat_map(Members::from_last);
    let living = from_last().map(|(end, owner)| (end.unsigned_abs(), owner)).take(LOOKED_AT);
    let mark = found.gate().and_then(|_| shown_in(living.filter(|(end, _)| *end > found.now_us / 1_000)));
    named(mark, asks, found)
}

/// Those who hold the lock at once; nobody does while the gate has no mark that lives.
pub(super) fn inside(state: &State, keys: &Keys, found: &Found) -> Option<Inside> {
    let gate = found.gate()?;
    let all = living(state, keys, found.now_us).count() as u64;
    let first = living(state, keys, found.now_us).take(SHOWN).map(|(_, owner)| owner);
    let (claims, owners): (Vec<_>, Vec<_>) = first.partition(|owner| is_claim(owner));
    let available = if let Gate::Permits(limit) = gate { Some(limit.saturating_sub(all)) } else { None };
    let owners = owners.into_iter().map(|owner| cut(owner).to_owned()).collect();
    Some(Inside { holders: all - claims.len() as u64, owners, available }).filter(|_| all > 0)
}

fn for_ms(left_ms: u64) -> Remaining {
    Remaining::For(Duration::from_millis(left_ms))
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
