//! A fleet on a cluster, of which one shard fails.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use locktender_simulation::{FleetPlan, Report, run_fleet};

/// The first shard is the one that fails.
const OTHERS: std::ops::Range<usize> = 1..6;

/// The locks of the shard are held again when the replica has taken over, every client has learned that, and a round trip has passed.
fn recovers(report: &Report) {
    let within = report.takeover_us + 1_000_000 + 100_000;
    assert!(report.recovery.max <= within, "{:?} is not within {within} µs", report.recovery);
    assert!(report.recovery.count > 0 && report.lost * 20 < report.recovery.count, "{} of {:?}", report.lost, report.recovery);
}

#[test]
fn a_shard_fails_over_and_no_other_one_notices() {
    let report = run_fleet(FleetPlan::small());
    recovers(&report);
    for shard in OTHERS {
        let (before, during) = (report.rate(shard, &report.before), report.rate(shard, &report.during));
        assert!((0.93..1.07).contains(&(during / before)), "shard {shard}: {before} commands a second, then {during}");
        let (before, during) = (report.hand_overs_before[shard], report.hand_overs_during[shard]);
        assert!(during.count > 0 && during.max < before.max * 11 / 10, "shard {shard}: {before:?}, then {during:?}");
    }
}

#[test]
fn a_client_that_confirms_all_its_holds_burdens_the_other_shards() {
    let report = run_fleet(FleetPlan { confirms_all: true, ..FleetPlan::small() });
    recovers(&report);
    let most = |shard: usize| report.rates[shard][report.during.clone()].iter().max().copied().unwrap();
    for shard in OTHERS {
        let before = report.rate(shard, &report.before);
        assert!(
            f64::from(most(shard)) > before * 1.5,
            "shard {shard}: {before} commands a second, and then at most {}",
            most(shard)
        );
    }
}

#[test]
fn a_seed_decides_everything() {
    let run = |seed| run_fleet(FleetPlan { seed, names: 2_000, ..FleetPlan::small() });
    let [first, again, other] = [7, 7, 8].map(run);
    assert_eq!(format!("{first:?}"), format!("{again:?}"));
    assert_ne!(first.rates, other.rates);
}
