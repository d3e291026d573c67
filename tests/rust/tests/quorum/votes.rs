//! Fences on servers whose counters differ, and answers that come after the grant.

use locktender::Outcome;
use locktender_tests::{PATIENCE, PROMPTLY, RealServer, TTL, eventually};

use crate::ensemble::{Ensemble, wall_us};

const SECOND: u64 = 1_000_000;

#[test]
fn fences_rise_however_the_counters_are_skewed() {
    let quorum = Ensemble::start(5);
    let client = quorum.acquainted();
    let mut rng = fastrand::Rng::with_seed(6);
    let mut last = 0;
    for _ in 0..40 {
        for server in 0..5 {
            // Upwards only: a counter that sinks is a server that forgot.
            if rng.u8(..3) == 0 {
                let ahead = wall_us() + rng.u64(..30) * SECOND;
                quorum.set_fence(server, "a", ahead.max(quorum.fence(server, "a")));
            }
        }
        let held = client.lock("a").acquire_blocking().unwrap();
        assert!(held.fence() > last, "{} after {last}", held.fence());
        last = held.fence();
        let attested = (0..5).filter(|server| quorum.fence(*server, "a") >= last).count();
        assert!(attested >= 3, "{last} is attested by {attested}");
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    }
    quorum.left_clean("a");
}

#[test]
fn a_late_vote_below_the_token_is_confirmed() {
    let quorum = Ensemble::start(3);
    let (client, events) = quorum.watched();
    let ahead = wall_us() + 600 * SECOND;
    quorum.set_fence(0, "a", ahead);
    quorum.set_fence(1, "a", ahead);
    quorum.proxies[2].hold_answers();
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    assert_eq!(held.fence(), ahead + 1);
    eventually("it voted", PATIENCE, || quorum.value(2, "a").as_deref() == Some(held.owner()));
    assert!(quorum.fence(2, "a") < ahead, "nothing is known of its vote yet");
    quorum.proxies[2].let_answers_go();
    eventually("confirmed", PROMPTLY, || quorum.fence(2, "a") == held.fence());
    assert_eq!(quorum.value(2, "a").as_deref(), Some(held.owner()));
    // It counts from now on: with it and another one alone the hold continues.
    quorum.servers[0].pause();
    events.next_renewal();
    assert!(held.is_valid(), "{:?}", held.check());
    quorum.servers[0].resume();
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    quorum.left_clean("a");
}

#[test]
fn a_late_vote_above_the_token_is_released_there_and_never_counts() {
    let quorum = Ensemble::start(3);
    let (client, events) = quorum.watched();
    let ahead = wall_us() + 600 * SECOND;
    quorum.set_fence(2, "a", ahead);
    quorum.proxies[2].hold_answers();
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    assert!(held.fence() < ahead);
    let voted = || quorum.value(2, "a").as_deref() == Some(held.owner());
    eventually("it votes, though nothing is known of its vote yet", PATIENCE, voted);
    quorum.proxies[2].let_answers_go();
    eventually("released there", PROMPTLY, || quorum.value(2, "a").is_none());
    events.next_renewal();
    assert!(held.is_valid(), "{:?}", held.check());
    assert_eq!(quorum.value(2, "a"), None, "no renewal writes it again");
    assert_eq!(quorum.fence(2, "a"), ahead + 1);
    quorum.servers[0].pause();
    held.lost().wait_for(TTL).expect("one server of three is no majority").unwrap();
    quorum.servers[0].resume();
    held.release().blocking().unwrap();
    quorum.left_clean("a");
    let next = client.lock("a").acquire_blocking().unwrap();
    assert!(next.fence() > held.fence());
}

#[test]
fn unequal_votes_take_a_second_round_and_the_third_server_is_confirmed_with_it() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted();
    for (server, ahead) in [(0, 10), (1, 20), (2, 30)] {
        quorum.set_fence(server, "a", wall_us() + ahead * SECOND);
    }
    let before = quorum.fence(1, "a");
    let held = client.lock("a").acquire_blocking().unwrap();
    assert!(held.fence() > before, "the largest of a majority's votes");
    eventually("settled", PROMPTLY, || {
        let exact =
            (0..3).filter(|server| quorum.fence(*server, "a") == held.fence() && quorum.value(*server, "a").is_some()).count();
        let above = (0..3).filter(|server| quorum.fence(*server, "a") > held.fence());
        exact >= 2 && above.into_iter().all(|server| quorum.value(server, "a").is_none())
    });
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    quorum.left_clean("a");
}

/// How many scripts a server has run.
pub fn scripts_run(server: &RealServer) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]).text().unwrap();
    let calls = |line: &str| line.split_once("calls=")?.1.split_once(',')?.0.parse::<u64>().ok();
    stats.lines().filter(|line| line.starts_with("cmdstat_eval")).filter_map(calls).sum()
}

#[test]
#[ignore = "long: it counts how often answers of five servers cross, which depends on the load"]
fn nearly_every_uncontended_grant_takes_one_round_and_no_confirmation() {
    const GRANTS: u64 = 200;
    let quorum = Ensemble::start(5);
    let client = quorum.acquainted();
    // So that no server has a script to learn.
    let held = client.lock("warm").acquire_blocking().unwrap();
    held.release().blocking().unwrap();
    quorum.left_clean("warm");
    let before: Vec<u64> = quorum.servers.iter().map(scripts_run).collect();
    for n in 0..GRANTS {
        // The same names again: their counters are where earlier grants left them.
        let held = client.lock(format!("a{}", n % 10)).acquire_blocking().unwrap();
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    }
    (0..10).for_each(|n| quorum.left_clean(&format!("a{n}")));
    for (server, before) in quorum.servers.iter().zip(before) {
        let run = scripts_run(server) - before;
        // An acquire and a release each; a second round would be one more, or three with its undo.
        assert!((2 * GRANTS..=2 * GRANTS + GRANTS / 20).contains(&run), "{run} scripts for {GRANTS} grants");
    }
}
