//! Holds while a minority or a majority of the servers fails.

use std::time::{Duration, Instant};

use locktender::{EventKind, LossReason, Outcome};
use locktender_tests::{PROMPTLY, TOLERANCE, TTL, eventually};

use crate::servers::{Ensemble, ms};

#[test]
fn a_quorum_holds_extends_and_releases_on_every_server() {
    let quorum = Ensemble::start(3);
    let client = quorum.trusted();
    let held = client.lock("a").ttl(ms(20_000)).acquire_blocking().unwrap();
    eventually("every server has it", PROMPTLY, || quorum.count("a", held.owner()) == 3);
    held.extend(ms(60_000)).blocking().unwrap();
    assert!(held.remaining() > ms(59_000));
    assert!(client.lock("a").try_acquire_blocking().unwrap().is_none());
    assert_eq!(client.lock("a").inspect_blocking().unwrap().unwrap().owner, held.owner());
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    quorum.left_clean("a");
    let next = client.lock("a").acquire_blocking().unwrap();
    assert!(next.fence() > held.fence());
}

#[test]
fn one_refused_one_stopped_and_one_slow_of_five_lose_nothing() {
    let mut quorum = Ensemble::start(5);
    // Who waited for the dead would wait for as long as this.
    let (client, events) = quorum.watched_with(|options| options.response_timeout = Some(ms(600_000)));
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    quorum.servers[0].kill();
    quorum.servers[1].pause();
    quorum.proxies[2].latency(ms(30), ms(30));
    events.next_renewal();
    assert!(held.is_valid(), "{:?}", held.check());
    held.extend(ms(60_000)).blocking().unwrap();
    assert!(client.lock("a").try_acquire_blocking().unwrap().is_none());
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    quorum.servers[0].restart();
    quorum.servers[1].resume();
    quorum.left_clean("a");
}

#[test]
fn a_majority_that_is_down_is_a_loss_when_validity_ends_and_not_before() {
    for stopped in [true, false] {
        let mut quorum = Ensemble::start(3);
        let client = quorum.trusted();
        let held = client.lock("a").ttl(ms(2_000)).renew(false).acquire_blocking().unwrap();
        let start = Instant::now();
        let remaining = held.remaining();
        for server in &mut quorum.servers[..2] {
            if stopped { server.pause() } else { server.kill() }
        }
        let extend = held.extend(ms(2_000));
        let loss = held.lost().wait_for(ms(3_000)).expect("validity ends").unwrap();
        let lasted = start.elapsed();
        assert_eq!(loss.reason, LossReason::Expired);
        assert!(lasted >= remaining && lasted < remaining + TOLERANCE, "{remaining:?} became {lasted:?}");
        assert!(extend.blocking().is_err());
        if stopped {
            quorum.servers[..2].iter().for_each(locktender_tests::RealServer::resume);
        }
    }
}

#[test]
fn a_majority_that_comes_back_in_time_is_no_loss() {
    let quorum = Ensemble::start(3);
    let (client, events) = quorum.watched_with(|options| options.response_timeout = Some(ms(1_000)));
    let held = client.lock("a").ttl(2 * TTL).acquire_blocking().unwrap();
    for round in 1..=2 {
        quorum.servers[..2].iter().for_each(locktender_tests::RealServer::pause);
        // A renewal has failed, and two thirds of the ttl are left but for a second.
        events.more(EventKind::ServerFailed, 2);
        quorum.servers[..2].iter().for_each(locktender_tests::RealServer::resume);
        events.more(EventKind::Renewed, 1);
        assert!(held.is_valid(), "{:?}", held.check());
        // The renewal needs one of the two. The other one may still be read, and a server that has failed can't fail again.
        events.at_least(EventKind::ServerRecovered, 2 * round);
    }
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    quorum.left_clean("a");
}

#[test]
fn f16_what_a_holder_believes_never_exceeds_what_a_majority_keeps() {
    let quorum = Ensemble::start(3);
    let client = quorum.trusted();
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    let mut rng = fastrand::Rng::with_seed(16);
    let until = Instant::now() + ms(4_000);
    while Instant::now() < until {
        for proxy in &quorum.proxies {
            proxy.latency(ms(rng.u64(0..30)), ms(rng.u64(0..30)));
        }
        let one = &quorum.proxies[rng.usize(..3)];
        match rng.u8(0..6) {
            0 => drop(held.extend(ms(rng.u64(100..3_000))).blocking()),
            1 => drop(held.extend_by(ms(rng.u64(10..200))).blocking()),
            2 => one.cut_after_apply(1, "~lt:fence"),
            3 => one.cut_before_apply(1, "~lt:fence"),
            _ => std::thread::sleep(ms(rng.u64(0..120))),
        }
        let believed = Instant::now() + held.remaining();
        let mut kept: Vec<Instant> = (0..3).map(|server| kept_until(&quorum, server)).collect();
        kept.sort();
        assert!(believed <= kept[3 - quorum.majority()], "believed until {believed:?}, kept until {kept:?}");
    }
    assert!(held.is_valid(), "one link at a time failed: {:?}", held.check());
}

/// An instant by which the server's key is surely gone: not earlier than when it really goes.
fn kept_until(quorum: &Ensemble, server: usize) -> Instant {
    let left = quorum.servers[server].command(&["PTTL", "a"]).int();
    Instant::now() + Duration::from_millis(u64::try_from(left).map_or(0, |left| left + 1))
}

#[test]
fn f29_scripts_may_be_flushed_on_every_server_before_any_operation() {
    let quorum = Ensemble::start(3);
    let (client, events) = quorum.watched();
    for n in 0..5 {
        quorum.flush_scripts();
        let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
        quorum.flush_scripts();
        held.extend(TTL + ms(100)).blocking().unwrap();
        // One of three alone, between the servers' own scripts.
        quorum.servers[n % 3].command(&["SCRIPT", "FLUSH"]);
        assert!(client.lock("a").inspect_blocking().unwrap().is_some());
        quorum.flush_scripts();
        if n == 0 {
            events.more(EventKind::Renewed, 1);
            assert!(held.is_valid(), "{:?}", held.check());
            quorum.flush_scripts();
        }
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    }
    quorum.left_clean("a");
}

#[test]
fn f29_a_confirmation_after_a_flush_is_sent_as_text() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted();
    for n in 1..6 {
        // Counters that differ make a second round necessary.
        let ahead = crate::servers::wall_us() + n * 10_000_000;
        for server in 0..3 {
            quorum.set_fence(server, "a", ahead + server as u64);
        }
        quorum.flush_scripts();
        let held = client.lock("a").acquire_blocking().unwrap();
        assert!(held.fence() > ahead);
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    }
}
