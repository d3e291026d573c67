//! Lost notifications: each costs a second at most.

use std::time::Instant;

use locktender::EventKind;
use locktender_tests::{PATIENCE, RealServer, ServerOptions, eventually};

use crate::{Watched, acquire, ms};

/// A second for the next look, and what a busy machine adds.
const A_SECOND_OR_SO: std::time::Duration = ms(1_500);

#[test]
fn a_flushed_server_is_found_free_within_a_second() {
    let server = RealServer::start();
    let (one, two) = (Watched::open(&server.url()), Watched::open(&server.url()));
    let _held = one.client.lock("a").ttl(ms(60_000)).renew(false).acquire_blocking().unwrap();
    let waiter = acquire(two.client.lock("a"));
    two.queued(1);
    let start = Instant::now();
    server.command(&["FLUSHALL"]);
    waiter.join().unwrap();
    assert!(start.elapsed() < A_SECOND_OR_SO, "{:?}", start.elapsed());
}

#[test]
fn a_waiter_whose_connections_are_killed_with_the_release_still_gets_the_lock() {
    let server = RealServer::start();
    let (one, two) = (Watched::open(&server.url()), Watched::open(&server.url()));
    for n in 0..5 {
        let held = one.client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
        let waiter = acquire(two.client.lock("a"));
        two.queued(n + 1);
        let start = Instant::now();
        // Together: the release is published to nobody.
        server.command(&["EVAL", "redis.call('DEL', 'a') redis.call('DEL', '{a}:~lt:queue')", "0"]);
        server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes"]);
        waiter.join().unwrap().release().blocking().unwrap();
        assert!(start.elapsed() < A_SECOND_OR_SO, "{:?}", start.elapsed());
        drop(held);
    }
}

#[test]
fn a_user_that_may_not_publish_delays_the_next_one_by_a_second_at_most() {
    let server = ServerOptions::new().user("mute", "secret", "~* +@all -publish -spublish").start();
    let muted = format!("redis://mute:secret@127.0.0.1:{}", server.port());
    let (one, two) = (Watched::open(&muted), Watched::open(&muted));
    let held = one.client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    let waiter = acquire(two.client.lock("a"));
    two.queued(1);
    let start = Instant::now();
    held.release().blocking().unwrap();
    waiter.join().unwrap();
    assert!(start.elapsed() < A_SECOND_OR_SO, "{:?}", start.elapsed());
    eventually("the releaser got the reason why nobody is notified", PATIENCE, || one.count(EventKind::Warning) > 0);
}

#[test]
fn a_user_that_may_not_subscribe_polls_and_is_warned() {
    let server = ServerOptions::new().user("mute", "secret", "~* resetchannels +@all").start();
    let mute = format!("redis://mute:secret@127.0.0.1:{}", server.port());
    let (one, two) = (Watched::open(&server.url()), Watched::open(&mute));
    let held = one.client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    let waiter = acquire(two.client.lock("a"));
    eventually("the waiter was warned that it polls", PATIENCE, || two.count(EventKind::Warning) > 0);
    // Looks would take a quarter of a minute.
    let before = two.count(EventKind::Round);
    eventually("it polls", ms(12_000), || two.count(EventKind::Round) >= before + 20);
    let start = Instant::now();
    held.release().blocking().unwrap();
    waiter.join().unwrap();
    assert!(start.elapsed() < ms(700), "{:?}", start.elapsed());
}
