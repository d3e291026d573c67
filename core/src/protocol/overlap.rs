//! Overlap: whether another program held the lock between the last confirmation of a hold and its release, where nobody holds the
//! lock any more. Pure.
//!
//! Two things of a single server show that. Its history has what other holders have noted, which proves their holds. The clock of
//! the lock's slot gives a fence with each grant: where it has given none since, there was none. Everything else is unknown.

use std::sync::Arc;

use crate::mutant::mutant;
use crate::op::{Beside, HistoryEntry, HistoryNote, HoldState, Reply};

/// A hold whose key was gone when it was released.
pub(super) struct Ours<'a> {
    pub(super) lock: &'a str,
    pub(super) owner: &'a str,
    pub(super) fence: u64,
    /// The owner whose hold it took over.
    pub(super) adopted: Option<&'a str>,
    /// Who may have held the lock beside it.
    pub(super) beside: Beside,
}

/// The next hold that the history proves.
pub(super) fn next_hold<'a>(entries: &'a [HistoryEntry], ours: &Ours<'_>) -> Option<&'a HistoryNote> {
    entries.iter().filter(|entry| proves(entry, ours)).map(|entry| &entry.note).min_by_key(|note| note.fence)
}

fn proves(HistoryEntry { id: (ms, number), note }: &HistoryEntry, ours: &Ours<'_>) -> bool {
    let is_another = &*note.owner != ours.owner && Some(&*note.owner) != ours.adopted;
    // Who lost it may have got it late, and never have worked.
    let has_held = note.state != HoldState::Lost || mutant!(LostEntryProves);
    // A fence above the time of its own note is that of a clock that was ahead.
    let is_plausible = note.fence <= ms.saturating_mul(1_000).saturating_add(*number) || mutant!(ClockAheadProves);
    let is_apart = ours.beside == Beside::Nobody || note.beside != ours.beside || mutant!(ReaderProvesToReader);
    &*note.lock == ours.lock && note.fence > ours.fence && is_another && has_held && is_plausible && is_apart
}

/// The answer of a server that had no key of ours when it was asked to delete it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    time_us: u64,
    last_fence: u64,
    run_id: Option<Arc<str>>,
    is_alone: bool,
    /// The period that a gate of readers showed; 0 for none.
    period: u64,
}

impl Refused {
    pub(super) fn of(reply: &Reply) -> Self {
        let (time_us, last_fence, is_alone) = (reply.time_us, reply.last_fence, reply.is_alone);
        Self { time_us, last_fence, run_id: reply.run_id.clone(), is_alone, period: reply.fence }
    }

    /// Whether the clock has continued from `fence`: it was neither lost nor replaced by an older one.
    pub(super) fn knows(&self, fence: u64) -> bool {
        self.last_fence >= fence
    }

    /// Whether nobody was granted the lock after `confirmed_us`, the server's time when it last confirmed our hold with this fence.
    /// `run_id` is the server that granted it.
    pub(super) fn excludes(&self, fence: u64, confirmed_us: u64, run_id: Option<&Arc<str>>) -> bool {
        let is_same = run_id.is_some() && self.run_id.as_ref() == run_id || mutant!(AnotherServerExcludes);
        // Behind a failover the old server may answer, and know nothing of what the new one grants.
        let is_alone = self.is_alone || mutant!(OldServerExcludes);
        // A fence is the beginning of its millisecond, or later.
        let before = confirmed_us / 1_000 * 1_000;
        let gave_none = self.last_fence == fence || self.last_fence < before && self.last_fence > fence;
        let gave_none = gave_none || self.last_fence < fence && mutant!(LostClockExcludes);
        // Other readers are still inside: no writer came between.
        let gave_none = gave_none || self.period == fence;
        is_same && is_alone && self.time_us >= confirmed_us && gave_none
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutant::{Mutant, assert_each_noticed, assert_noticed};
    use crate::op::Verdict;

    /// The fence that is proved by entries of lock `a` behind our fence 5,000 of `us`, who took over from `old`: the owner, the fence, the
    /// state and the id.
    fn proved(entries: &[(&str, u64, HoldState, (u64, u64))]) -> Option<u64> {
        proved_beside((Beside::Nobody, Beside::Nobody), entries)
    }

    /// The same where others may hold the lock beside us, and beside the holders of the entries.
    fn proved_beside((ours, theirs): (Beside, Beside), entries: &[(&str, u64, HoldState, (u64, u64))]) -> Option<u64> {
        let entry = |(owner, fence, state, id): &(&str, u64, HoldState, (u64, u64))| {
            let (lock, owner) = owner.split_once('/').unwrap_or(("a", owner));
            let (lock, owner, fence, state) = (lock.into(), (*owner).into(), *fence, *state);
            HistoryEntry { id: *id, note: HistoryNote { lock, owner, fence, state, beside: theirs } }
        };
        let entries: Vec<_> = entries.iter().map(entry).collect();
        let ours = Ours { lock: "a", owner: "us", fence: 5_000, adopted: Some("old"), beside: ours };
        next_hold(&entries, &ours).map(|note| note.fence)
    }

    fn only_who_excludes_it_proves() {
        use Beside::{Nobody, Permits, Readers};
        for (ours, theirs, expected) in [
            (Nobody, Readers, true),
            (Readers, Nobody, true),
            (Permits, Nobody, true),
            (Permits, Readers, true),
            (Readers, Readers, false),
        ] {
            let proved = proved_beside((ours, theirs), &[("b", 6_000, HoldState::Released, (7, 0))]);
            assert_eq!(proved.is_some(), expected, "{ours:?} {theirs:?}");
        }
    }

    fn only_a_later_hold_of_another_proves() {
        use HoldState::{Holds, Lost, Released};
        for (entries, expected) in [
            (&[][..], None),
            (&[("b", 6_000, Holds, (7, 0))], Some(6_000)),
            (&[("b", 6_000, Released, (6, 0))], Some(6_000)),
            (&[("b", 6_002, Holds, (6, 2))], Some(6_002)),
            (&[("b", 6_000, Lost, (7, 0))], None),
            (&[("b", 6_000, Holds, (5, 999))], None),
            (&[("b", 5_000, Holds, (7, 0))], None),
            (&[("b", 4_000, Holds, (7, 0))], None),
            (&[("us", 6_000, Holds, (7, 0))], None),
            (&[("old", 6_000, Holds, (7, 0))], None),
            (&[("other/b", 6_000, Holds, (7, 0))], None),
            (&[("c", 8_000, Holds, (9, 0)), ("b", 6_000, Released, (7, 0)), ("b", 6_000, Holds, (6, 5))], Some(6_000)),
        ] {
            assert_eq!(proved(entries), expected, "{entries:?}");
        }
    }

    #[test]
    fn the_history_proves_the_next_hold_of_another() {
        only_a_later_hold_of_another_proves();
        only_who_excludes_it_proves();
        assert_each_noticed([Mutant::LostEntryProves, Mutant::ClockAheadProves], only_a_later_hold_of_another_proves);
        assert_noticed(Mutant::ReaderProvesToReader, only_who_excludes_it_proves);
    }

    fn a_clock_that_stood_still_excludes_others() {
        let (fence, confirmed) = (5_000, 9_700);
        for (last_fence, time_us, run_id, expected) in [
            (5_000, 9_700, Some("r"), true),
            (5_000, 9_699, Some("r"), false),
            (5_001, 9_700, Some("r"), true),
            (8_999, 9_700, Some("r"), true),
            // Granted in the millisecond of the confirmation, perhaps behind it.
            (9_000, 20_000, Some("r"), false),
            (12_000, 20_000, Some("r"), false),
            (4_999, 20_000, Some("r"), false),
            (0, 20_000, Some("r"), false),
            (5_000, 20_000, Some("another"), false),
            (5_000, 20_000, None, false),
        ] {
            let run_id = run_id.map(Arc::from);
            let reply = Reply { last_fence, run_id, is_alone: true, ..Reply::new(Verdict::Ok, time_us, 0) };
            let excludes = |reply| Refused::of(&reply).excludes(fence, confirmed, Some(&"r".into()));
            assert_eq!(excludes(reply.clone()), expected, "{last_fence} {time_us} {:?}", reply.run_id);
            assert!(!excludes(Reply { is_alone: false, ..reply }), "a server that has a replica");
        }
        let in_period = |period| {
            let reply =
                Reply { last_fence: 12_000, run_id: Some("r".into()), is_alone: true, ..Reply::new(Verdict::Ok, 20_000, period) };
            Refused::of(&reply).excludes(fence, confirmed, Some(&"r".into()))
        };
        assert!(in_period(5_000) && !in_period(5_001), "of a reader's own period others are still inside");
        let reply = Reply { last_fence: 5_000, is_alone: true, ..Reply::new(Verdict::Ok, 20_000, 0) };
        assert!(!Refused::of(&reply).excludes(fence, confirmed, None), "a server that doesn't say which one it is");
    }

    #[test]
    fn a_clock_that_gave_no_fence_since_excludes_another_hold() {
        a_clock_that_stood_still_excludes_others();
        assert_each_noticed(
            [Mutant::LostClockExcludes, Mutant::AnotherServerExcludes, Mutant::OldServerExcludes],
            a_clock_that_stood_still_excludes_others,
        );
    }
}
