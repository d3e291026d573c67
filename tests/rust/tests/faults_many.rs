//! A thousand holds at once. They have their own process, because their cost would change the times of every other test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use locktender::Client;
use locktender_tests::{Proxy, RealServer};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
#[ignore = "long: a thousand holds on a slow link depend on the load"]
fn f05_a_thousand_holds_on_a_slow_link_that_dies_are_each_lost_before_the_server_expires_them() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let client = Client::open(proxy.url()).unwrap();
    let ttl = ms(6_000);
    let (sender, received) = channel();
    let pending: Vec<_> = (0..1_000).map(|n| client.lock(format!("hold:{n}")).ttl(ttl).acquire()).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let held = runtime.block_on(async {
        let mut held = Vec::new();
        for call in pending {
            held.push(call.await.unwrap());
        }
        held
    });
    for (n, held) in held.iter().enumerate() {
        let sender = sender.clone();
        held.on_lost(move |_| sender.send((n, Instant::now())).unwrap());
    }
    proxy.latency(ms(100), ms(100));
    std::thread::sleep(2 * ttl);
    assert!(held.iter().all(locktender::Hold::is_valid), "renewed in time over 200 ms");
    proxy.black_hole();
    let mut connection = server.connection().unwrap();
    let kept: Vec<Instant> = (0..1_000)
        .map(|n| {
            let believed = Instant::now() + held[n].remaining();
            let left = connection.command(&["PTTL", &format!("hold:{n}")]).unwrap().int();
            let kept = Instant::now() + u64::try_from(left).map_or(Duration::ZERO, |left| ms(left + 1));
            assert!(believed <= kept, "hold {n} is believed in {:?} after the server expired it", believed - kept);
            kept
        })
        .collect();
    for _ in 0..1_000 {
        let (n, at) = received.recv_timeout(ms(10_000)).expect("every loss is reported");
        assert!(at <= kept[n], "the loss of hold {n} was reported {:?} after the server expired it", at - kept[n]);
    }
}

/// How many holds stand behind the server that stands still.
const NUMBER: &str = "LOCKTENDER_HOLDS";

#[test]
#[ignore = "long: a thousand holds behind a stopped server depend on the load"]
fn f04_holds_behind_a_server_that_stands_still_are_kept_where_enough_was_left() {
    let number = std::env::var(NUMBER).map_or(1_000, |number| number.parse().expect(NUMBER));
    let server = RealServer::start();
    let client = Client::open(server.url()).unwrap();
    let ttl = ms(9_000);
    let mut held = Vec::new();
    let (granted, grants) = channel();
    while held.len() < number {
        for n in 0..500 {
            let granted = granted.clone();
            let lock = client.lock(format!("hold:{}", held.len() + n)).ttl(ttl);
            let _ = lock.acquire().then(move |held| granted.send(held.ok()).unwrap());
        }
        held.extend(grants.iter().take(500).map(|held| held.expect("the lock is free")));
    }
    // All are renewed by now, or about to be: their renewals fall into the time in which the server stands still.
    let least = || held.iter().map(locktender::Hold::remaining).min().unwrap();
    std::thread::sleep(least().saturating_sub(ttl * 2 / 3));
    server.pause();
    std::thread::sleep(ms(3_000));
    let left = least();
    assert!(left > ms(1_500), "enough is left: {left:?}");
    server.resume();
    std::thread::sleep(left);
    let lost = held.iter().filter(|held| !held.is_valid()).count();
    assert_eq!(lost, 0, "of {number}, with {left:?} left");
}
