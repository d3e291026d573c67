//! Overlaps: what a failover that loses the last writes costs, in each mode and each way.

use locktender::{ClientBuilder, EventKind, Failover, Hold};
use locktender_tests::{Events, eventually};

use crate::pair::ms;
use crate::trio::{Trio, Way, in_every_way};

const COUNT: usize = 20;

fn names() -> impl Iterator<Item = String> {
    (0..COUNT).map(|number| format!("a{number}"))
}

/// What a failover cost.
#[derive(Debug, PartialEq, Eq)]
struct Cost {
    /// The locks that were granted in the stretch that was lost.
    granted: usize,
    /// The locks that had two valid holders before the first holder could know.
    overlaps: usize,
    /// The holds that were lost after the failover.
    lost: usize,
    /// The holds that the new primary has again.
    kept: usize,
}

/// Grants locks that the replicas don't get, fails over, and lets another client try before the holder can know.
fn cost(mut trio: Trio, way: Way, options: fn(ClientBuilder) -> ClientBuilder, trusted: bool) -> Cost {
    let (holder, events) = Events::of(options(trio.holders()).ttl(ms(20_000)));
    if trusted {
        holder.initialize_quorum().blocking().unwrap();
        trio.has_replicated("{~lt}:marker");
    }
    trio.cut_links();
    let held: Vec<Hold> = names().map(|name| holder.lock(name).acquire_blocking().unwrap()).collect();
    trio.fail_over(way);
    let rival = options(trio.others()).ttl(ms(20_000)).build().unwrap();
    let taken: Vec<Hold> = names().filter_map(|name| rival.lock(name).try_acquire_blocking().ok().flatten()).collect();
    let is_held = |taken: &&Hold| held.iter().any(|held| held.name() == taken.name() && held.is_valid() && taken.is_valid());
    let overlaps = taken.iter().filter(is_held).count();
    for taken in &taken {
        assert!(
            held.iter().all(|held| held.name() != taken.name() || held.fence() < taken.fence()),
            "{way:?}: fences order them"
        );
    }
    trio.move_holders();
    events.at_least(EventKind::FailedOver, 1);
    let keeps = |held: &&Hold| trio.promoted().holder(held.name()).as_deref() == Some(held.owner());
    let settled = || events.count(EventKind::Lost) + held.iter().filter(keeps).count() == COUNT;
    eventually("every hold is kept or lost", locktender_tests::PATIENCE, settled);
    let kept = held.iter().filter(|held| held.is_valid()).filter(keeps).count();
    Cost { granted: held.len(), overlaps, lost: events.count(EventKind::Lost), kept }
}

#[test]
fn without_quarantine_each_lock_of_the_lost_stretch_has_two_valid_holders_until_the_first_one_is_notified() {
    in_every_way(|trio, way| {
        let cost = cost(trio, way, |builder| builder, false);
        assert_eq!(cost, Cost { granted: COUNT, overlaps: COUNT, lost: COUNT, kept: 0 }, "{way:?}");
    });
}

#[test]
fn with_quarantine_no_lock_of_the_lost_stretch_has_two_valid_holders_and_every_hold_is_kept() {
    let quarantined =
        |builder: ClientBuilder| builder.failover(Failover::Quarantine).max_ttl(ms(20_000)).unavailable_after(ms(100));
    in_every_way(|trio, way| {
        let cost = cost(trio, way, quarantined, true);
        assert_eq!(cost, Cost { granted: COUNT, overlaps: 0, lost: 0, kept: COUNT }, "{way:?}");
    });
}
