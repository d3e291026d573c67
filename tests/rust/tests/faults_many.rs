//! A thousand holds at once: in a process of its own, because what they cost would be seen in every other test's times.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use locktender::Client;
use locktender_tests::{Proxy, RealServer};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn f05_a_thousand_holds_on_a_slow_link_that_dies_are_each_told_before_the_server_expires_them() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let client = Client::open(&proxy.url()).unwrap();
    let (tell, told) = channel();
    let lock = |n: usize| client.lock(format!("hold:{n}")).ttl(ms(6_000));
    let pending: Vec<_> = (0..1_000).map(|n| lock(n).acquire()).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let held = runtime.block_on(async {
        let mut held = Vec::new();
        for call in pending {
            held.push(call.await.unwrap());
        }
        held
    });
    for (n, held) in held.iter().enumerate() {
        let tell = tell.clone();
        held.on_lost(move |_| tell.send((n, SystemTime::now().duration_since(UNIX_EPOCH).unwrap())).unwrap());
    }
    proxy.latency(ms(100), ms(100));
    std::thread::sleep(ms(12_000));
    assert!(held.iter().all(locktender::Held::is_valid), "renewed in time over 200 ms");
    proxy.black_hole();
    // Asked before the keys are gone: when each expires by the server's clock, which is this machine's.
    std::thread::sleep(ms(500));
    let mut connection = server.connection().unwrap();
    let now = || i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let expiries: Vec<i64> =
        (0..1_000).map(|n| connection.command(&["PTTL", &format!("hold:{n}")]).unwrap().int() + now()).collect();
    for _ in 0..1_000 {
        let (n, at) = told.recv_timeout(ms(60_000)).expect("every hold is told");
        let at = i64::try_from(at.as_millis()).unwrap();
        assert!(at <= expiries[n], "hold {n} was told {} ms after the server expired it", at - expiries[n]);
    }
}
