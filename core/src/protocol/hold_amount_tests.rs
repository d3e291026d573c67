//! Amounts: the span of an extend, and the remaining time that a user reads before and after it, in virtual time.

use std::time::Duration;

use super::tests::{Bench, recipe, yes};
use crate::clock::Tick;
use crate::error::Code;
use crate::op::{Answer, QuorumConfig, Verdict};
use crate::options::LockOptions;
use crate::protocol::waiting::tests::{at, ms};
use crate::protocol::{Amount, Recipe};

/// Answers every extension after two milliseconds.
fn soon(_: usize, _: Tick) -> Option<(Duration, Answer)> {
    Some((ms(2), yes(Verdict::Ok)))
}

fn unrenewed(ttl: Duration) -> Recipe {
    let recipe = recipe(1, ttl);
    Recipe { options: LockOptions { renew: false, ..recipe.options }, ..recipe }
}

/// Extends; gives the caller's result, and the remaining time before and after it.
fn extend(bench: &mut Bench, call: u64, amount: Amount) -> (Option<Code>, Duration, Duration, Duration) {
    let (asked, before) = (bench.now, bench.valid_until().since(bench.now));
    bench.extend_to(call, amount, soon);
    bench.run(asked.after(ms(2)), soon);
    if bench.reported().iter().all(|(reported, ..)| *reported != call) {
        // A renewal was under way.
        bench.run(asked.after(ms(4)), soon);
    }
    let reported = bench.reported().into_iter().find(|(reported, ..)| *reported == call).expect("answered in two round trips");
    (reported.2, before, bench.valid_until().since(bench.now), bench.now.since(asked))
}

#[test]
fn many_small_extensions_add_up() {
    let mut bench = Bench::held(unrenewed(ms(10_000)));
    for call in 1..=100 {
        let (failed, ..) = extend(&mut bench, call, Amount::By(ms(100)));
        assert_eq!(failed, None);
    }
    // The answers have taken two hundredths of a second.
    assert!(bench.valid_until() >= at(9_898 + 10_000), "{:?}", bench.valid_until());
    assert!(bench.valid_until() <= at(9_898 + 10_001));
}

#[test]
fn a_small_extension_of_a_long_one_adds_what_was_asked_for() {
    let mut bench = Bench::held(unrenewed(ms(10_000)));
    extend(&mut bench, 1, Amount::To(ms(300_000)));
    let (_, before, after, passed) = extend(&mut bench, 2, Amount::By(ms(2_000)));
    assert!(after + passed >= before + ms(2_000) && after + passed <= before + ms(2_001), "{before:?} {after:?}");
}

#[test]
fn whatever_is_asked_for_in_whatever_order_the_holder_gets_it_and_the_servers_keep_it() {
    for seed in 0..400 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut recipe = recipe(1, ms(rng.u64(200..60_000)));
        recipe.options.renew = rng.bool();
        recipe.options.max_hold = (rng.u8(..3) == 0).then(|| ms(rng.u64(1_000..200_000)));
        let end = recipe.options.max_hold.map_or(Tick::NEVER, |span| at(0).after(span));
        let mut bench = Bench::held(recipe);
        for call in 1..=40 {
            let left = bench.valid_until().since(bench.now);
            bench.run(bench.now.after(left.mul_f64(rng.f64() * rng.f64())), soon);
            if bench.lost.is_some() || bench.valid_until() <= bench.now.after(ms(5)) {
                break;
            }
            let most = [5_000, 1_000_000, 300_000_000][rng.usize(..3)];
            let span = Duration::from_micros(rng.u64(..most));
            let amount = [Amount::Own, Amount::To(span.max(ms(10))), Amount::By(span)][rng.usize(..3)];
            let (failed, before, after, passed) = extend(&mut bench, call, amount);
            assert_eq!(failed, None, "{seed}: {amount:?}");
            let most = end.since(bench.now);
            let least = if let Amount::By(more) = amount { before + more } else { before };
            assert!(after >= least.saturating_sub(passed).min(most), "{seed}: {amount:?} of {before:?} gave {after:?}");
            assert!(bench.valid_until() <= bench.kept_until && after <= most, "{seed}: {amount:?} gave too much: {after:?}");
        }
    }
}

#[test]
fn what_can_not_be_kept_is_refused_in_the_users_own_numbers() {
    const DAY: Duration = Duration::from_secs(24 * 3_600);
    let quorum_config = QuorumConfig { servers: 1, max_ttl_ms: 60_000 };
    for (quorum_config, to, by, fits) in [
        (None, DAY, ms(860_000), true),
        (None, DAY, ms(870_000), false),
        (None, DAY, Duration::MAX, false),
        (Some(quorum_config), ms(60_000), ms(0), true),
        (Some(quorum_config), ms(60_000), ms(100), false),
        (Some(quorum_config), ms(50_000), ms(9_800), true),
        (Some(quorum_config), ms(50_000), ms(10_000), false),
    ] {
        let mut bench = Bench::held(Recipe { quorum_config, ..unrenewed(ms(10_000)) });
        // A tenth of the day less, so that the extend fits.
        let to = if quorum_config.is_none() && fits { to - ms(1_000_000) } else { to };
        assert_eq!(extend(&mut bench, 1, Amount::To(to)).0, None);
        let (failed, ..) = extend(&mut bench, 2, Amount::By(by));
        assert_eq!(failed.is_none(), fits, "{to:?} and {by:?} on {quorum_config:?}: {:?}", bench.errors());
        if let [.., error] = &bench.errors()[..] {
            let given = format!("given: {by:?}");
            assert!(error.starts_with("by: ") && (by == Duration::MAX || error.contains(&given)), "{error}");
        }
    }
}
