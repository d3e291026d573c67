//! Validity: what a holder may believe while the network, the server and its own process fail.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use locktender::{Client, Code, EventKind, Hold, LossReason, Outcome};
use locktender_tests::{Events, Proxy, RealServer, ServerOptions, TTL, eventually};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn open(url: &str) -> Client {
    Client::open(url).unwrap()
}

fn watched(url: &str) -> (Client, Events) {
    Events::of(Client::builder().url(url))
}

/// The milliseconds the key remains: negative if it is gone.
fn pttl(server: &RealServer, key: &str) -> i64 {
    server.command(&["PTTL", key]).int()
}

#[test]
fn f01_a_blocked_executor_keeps_its_lock() {
    let server = RealServer::start();
    let (client, rival) = (open(&server.url()), open(&server.url()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // With a ttl that leaves a busy machine time for each renewal.
        let ttl = ms(1_500);
        let held = client.lock("a").ttl(ttl).acquire().await.unwrap();
        std::thread::sleep(5 * ttl);
        assert!(held.is_valid());
        assert!(rival.lock("a").try_acquire().await.unwrap().is_none());
        assert_eq!(held.release().await.unwrap().outcome, Outcome::Released);
    });
}

#[test]
fn f03_a_key_that_vanishes_or_changes_hands_is_a_loss_and_is_not_written_again() {
    let server = RealServer::start();
    let client = open(&server.url());
    for (name, command, reason, after) in [
        ("deleted", vec!["DEL", "deleted"], LossReason::Missing, None),
        ("overwritten", vec!["SET", "overwritten", "rival", "PX", "60000"], LossReason::Taken, Some("rival")),
    ] {
        let held = client.lock(name).ttl(TTL).acquire_blocking().unwrap();
        server.command(&command);
        let loss = held.lost().blocking().unwrap();
        assert_eq!((loss.reason, loss.next_owner.as_deref()), (reason, after), "{name}");
        assert!(!held.is_valid());
        assert_eq!(held.check().unwrap_err().code(), Code::LockLost);
        assert_eq!(held.extend(ms(600)).blocking().unwrap_err().code(), Code::LockLost);
        assert_eq!(server.holder(name).as_deref(), after, "{name} was written again");
        let release = held.release().blocking().unwrap();
        let expected = if after.is_some() { Outcome::Taken } else { Outcome::Expired };
        assert_eq!((release.outcome, release.next_owner.as_deref()), (expected, after));
    }
}

#[test]
fn a_loss_that_nobody_saw_is_warned_of_once_when_its_hold_is_dropped() {
    let warnings = |saw: fn(&Hold), closes: bool| {
        let (client, events) = watched("memory://unseen");
        let held = client.lock("a").ttl(TTL).max_hold(ms(50)).acquire_blocking().unwrap();
        events.at_least(EventKind::Lost, 1);
        saw(&held);
        if closes {
            held.release().blocking().unwrap();
        }
        drop(held);
        events.count(EventKind::Warning)
    };
    assert_eq!([warnings(|_| (), false), warnings(|_| (), true)], [1, 1]);
    assert_eq!(warnings(|held| assert!(!held.is_valid()), false), 0);
    assert_eq!(warnings(|held| assert!(held.remaining().is_zero()), false), 0);
    assert_eq!(warnings(|held| assert!(held.check().is_err()), true), 0);
    assert_eq!(warnings(|held| assert!(held.lost().blocking().is_ok()), true), 0);
    assert_eq!(warnings(|held| assert!(held.extend(TTL).blocking().is_err()), false), 0);
    assert_eq!(warnings(|held| assert!(held.leave().blocking().is_err()), false), 0);
}

#[test]
fn f04_renewals_that_fail_are_no_loss_while_one_succeeds_in_time() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let (client, events) = watched(&proxy.url());
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    proxy.black_hole();
    events.more(EventKind::ServerFailed, 1);
    proxy.restore();
    events.more(EventKind::Renewed, 1);
    assert!(held.is_valid(), "{:?}", held.check());
    proxy.black_hole();
    assert_eq!(held.lost().blocking().unwrap().reason, LossReason::Expired);
    proxy.restore();
    let again = client.lock("a").ttl(TTL).wait(ms(5_000)).acquire_blocking().unwrap();
    // The next hold of the same name is renewed.
    events.more(EventKind::Renewed, 1);
    assert!(again.is_valid(), "{:?}", again.check());
    assert!(again.fence() > held.fence());
}

#[test]
fn f06_what_a_holder_believes_never_exceeds_what_the_server_keeps() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let client = open(&proxy.url());
    let held = client.lock("a").ttl(ms(400)).acquire_blocking().unwrap();
    let mut rng = fastrand::Rng::with_seed(6);
    let until = Instant::now() + ms(4_000);
    while Instant::now() < until {
        proxy.latency(ms(rng.u64(0..40)), ms(rng.u64(0..40)));
        let span = ms(rng.u64(100..3_000));
        match rng.u8(0..4) {
            0 => drop(held.extend(span).blocking()),
            1 => drop(held.extend_by(ms(rng.u64(10..200))).blocking()),
            2 => proxy.cut_after_apply(1, "id="),
            _ => std::thread::sleep(ms(rng.u64(0..120))),
        }
        // Whatever time passes between the two questions, it was believed before and kept after.
        let believed = Instant::now() + held.remaining();
        let left = pttl(&server, "a");
        let kept = Instant::now() + u64::try_from(left).map_or(Duration::ZERO, |left| ms(left + 1));
        assert!(believed <= kept, "believed until {:?} after it is kept", believed - kept);
    }
}

#[test]
fn an_extension_never_shortens() {
    let server = RealServer::start();
    let held = open(&server.url()).lock("a").ttl(TTL).acquire_blocking().unwrap();
    held.extend(ms(60_000)).blocking().unwrap();
    held.extend(ms(500)).blocking().unwrap();
    std::thread::sleep(ms(700));
    assert!(held.remaining() > ms(57_000), "{:?}", held.remaining());
    assert!(pttl(&server, "a") > 57_000);
    let before = held.remaining();
    held.extend_by(ms(5_000)).blocking().unwrap();
    assert!(held.remaining() > before + ms(4_000));
}

#[test]
fn f08_max_hold_ends_a_hold_whatever_renews_or_extends_it() {
    let server = RealServer::start();
    let client = open(&server.url());
    // After the first renewal.
    let span = TTL * 2 / 3;
    let start = Instant::now();
    let held = client.lock("a").ttl(TTL).max_hold(span).acquire_blocking().unwrap();
    held.extend(ms(60_000)).blocking().unwrap();
    assert!(held.remaining() <= span);
    let loss = held.lost().blocking().unwrap();
    assert_eq!(loss.reason, LossReason::MaxHold);
    assert!(start.elapsed() >= span && start.elapsed() < span + ms(300), "{:?}", start.elapsed());
    client.lock("a").wait(ms(2_000)).acquire_blocking().expect("the key is left to expire");
}

#[test]
fn f09_a_server_that_dies_is_a_loss_and_nothing_worse() {
    let mut server = RealServer::start();
    let (client, events) = watched(&server.url());
    let held: Vec<_> = (0..20).map(|n| client.lock(format!("{n}")).ttl(ms(1_500)).acquire_blocking().unwrap()).collect();
    server.kill();
    for held in &held {
        assert_eq!(held.lost().blocking().unwrap().reason, LossReason::Expired);
    }
    assert_eq!(events.count(EventKind::Lost), 20);
    drop(held);
    server.restart();
    client.lock("0").wait(ms(5_000)).acquire_blocking().expect("the client works again");
}

#[test]
fn f12_no_key_is_left_without_expiry() {
    let server = RealServer::start();
    let client = open(&server.url());
    let held = client.lock("a").acquire_blocking().unwrap();
    held.extend(ms(20_000)).blocking().unwrap();
    let ttls = |server: &RealServer| -> Vec<i64> {
        let keys = ["a", "{a}:~lt:queue", "{a}:~lt:marker"];
        keys.iter().map(|key| pttl(server, key)).filter(|left| *left != -2).collect()
    };
    assert!(ttls(&server).iter().all(|left| *left > 0), "{:?}", ttls(&server));
    held.release().blocking().unwrap();
    assert!(ttls(&server).iter().all(|left| *left > 0), "{:?}", ttls(&server));
    eventually("the extension is noted", ms(5_000), || server.command(&["XLEN", "{~lt}:log"]).int() == 1);
    assert_eq!(server.command(&["DBSIZE"]).int(), 2, "only the clock and the history are kept");
}

#[test]
fn f29_scripts_may_be_flushed_before_any_operation() {
    for binary in locktender_tests::Binary::all() {
        let server = ServerOptions::new().binary(&binary).start();
        let (client, events) = watched(&server.url());
        server.command(&["SCRIPT", "FLUSH"]);
        let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
        server.command(&["SCRIPT", "FLUSH"]);
        held.renew_now().blocking().unwrap();
        server.command(&["SCRIPT", "FLUSH"]);
        events.more(EventKind::Renewed, 1);
        assert!(held.is_valid(), "{:?}", held.check());
        server.command(&["SCRIPT", "FLUSH"]);
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
        server.command(&["SCRIPT", "FLUSH"]);
        assert!(client.lock("a").inspect_blocking().unwrap().is_none());
    }
}

#[test]
fn a_hold_without_renewal_ends_with_its_ttl_unless_extended() {
    let server = RealServer::start();
    let client = open(&server.url());
    let held = client.lock("a").ttl(TTL).renew(false).acquire_blocking().unwrap();
    std::thread::sleep(TTL / 3);
    let extended = Instant::now();
    held.renew_now().blocking().unwrap();
    let loss = held.lost().wait_for(TTL).expect("nobody extends it again").unwrap();
    assert_eq!(loss.reason, LossReason::Expired);
    assert!(extended.elapsed() > TTL - TTL / 10, "{:?}", extended.elapsed());
    eventually("the key expires after the loss was reported", ms(500), || pttl(&server, "a") == -2);
}

#[test]
fn f04_a_slow_link_whose_every_answer_comes_in_time_loses_no_hold() {
    let server = RealServer::start();
    let ttl = ms(2_400);
    let holds: Vec<_> = [25, 33, 40]
        .into_iter()
        .map(|share| {
            let proxy = Proxy::to(server.port());
            // A round trip of that share of the ttl, from the first connection on.
            proxy.latency(Duration::ZERO, ttl * share / 100);
            let client = open(&proxy.url());
            let held = client.lock(format!("{share}")).ttl(ttl).acquire_blocking().unwrap();
            (share, proxy, client, held)
        })
        .collect();
    std::thread::sleep(3 * ttl);
    for (share, _proxy, _client, held) in &holds {
        assert!(held.is_valid(), "{share} %: {:?}", held.check());
    }
}
