//! A waiter that gives up.

use std::time::Duration;

use locktender::Code;
use locktender_tests::{PATIENCE, Proxy, RealServer, eventually};

use crate::{Watched, acquire, entries, ms, queue_length};

/// A waiter that left is out of the queue after this at the latest.
const PROMPTLY: Duration = ms(1_500);

#[test]
fn who_gives_up_leaves_no_entry_and_no_key() {
    let server = RealServer::start();
    let (one, two) = (Watched::open(&server.url()), Watched::open(&server.url()));
    let held = one.client.lock("a").acquire_blocking().unwrap();
    for fair in [false, true] {
        let error = two.client.lock("a").fair(fair).wait(ms(30)).acquire_blocking().unwrap_err();
        assert_eq!(error.code(), Code::AcquireTimeout);
        // Nobody but itself takes it out for a minute.
        eventually("the entry is gone", PROMPTLY, || entries(&server, "a") == 0);
    }
    held.release().blocking().unwrap();
    assert_eq!(server.command(&["EXISTS", "a"]).int(), 0);
}

#[test]
fn f24_a_wait_dropped_at_any_moment_leaves_no_entry_and_passes_its_turn_on() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    proxy.latency(ms(2), ms(2));
    let (one, two) = (Watched::open(&server.url()), Watched::open(&proxy.url()));
    let third = Watched::open(&server.url());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut rng = fastrand::Rng::with_seed(24);
    runtime.block_on(async {
        for n in 0..60 {
            let name = format!("drop:{n}");
            let fair = n % 2 == 0;
            let held = one.client.lock(&name).ttl(ms(60_000)).acquire().await.unwrap();
            let lock = two.client.lock(&name).fair(fair).ttl(ms(60_000));
            let patience = Duration::from_micros(rng.u64(0..25_000));
            let quitter = async {
                if let Ok(held) = tokio::time::timeout(patience, lock.acquire()).await {
                    held.unwrap().release().await.unwrap();
                }
            };
            let waiter = third.client.lock(&name).fair(fair).ttl(ms(60_000));
            let release = async {
                tokio::time::sleep(Duration::from_micros(rng.u64(0..15_000))).await;
                held.release().await.unwrap();
            };
            let patient = async { waiter.acquire().await.unwrap().release().await.unwrap() };
            let patient = tokio::time::timeout(PATIENCE, patient);
            let ((), (), waited) = tokio::join!(quitter, release, patient);
            waited.unwrap();
        }
    });
    let left = || {
        let waits = |n: &usize| queue_length(&server, &format!("drop:{n}")) > 0;
        let kept = |n: &usize| server.command(&["EXISTS", &format!("drop:{n}")]).int() > 0;
        (0..60).filter(|n| waits(n) || kept(n)).count()
    };
    eventually("every entry and every key is gone", PROMPTLY, || left() == 0);
}

#[test]
fn f28_close_takes_the_waiters_out() {
    let server = RealServer::start();
    let (one, two) = (Watched::open(&server.url()), Watched::open(&server.url()));
    let _held = one.client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    let waiters: Vec<_> = (0..5)
        .map(|n| {
            let lock = two.client.lock("a").fair(n % 2 == 0);
            std::thread::spawn(move || lock.acquire_blocking().unwrap_err().code())
        })
        .collect();
    two.queued(4);
    two.client.close_blocking().unwrap();
    for waiter in waiters {
        assert_eq!(waiter.join().unwrap(), Code::Closed);
    }
    eventually("nobody waits", PROMPTLY, || entries(&server, "a") == 0);
}

#[test]
fn a_front_that_leaves_gives_its_role_to_the_next_of_its_process() {
    let server = RealServer::start();
    let (one, two) = (Watched::open(&server.url()), Watched::open(&server.url()));
    let held = one.client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    let short = {
        let lock = two.client.lock("a").wait(ms(200));
        std::thread::spawn(move || lock.acquire_blocking().unwrap_err().code())
    };
    two.queued(1);
    let waiter = acquire(two.client.lock("a"));
    assert_eq!(short.join().unwrap(), Code::AcquireTimeout);
    two.queued(2);
    held.release().blocking().unwrap();
    waiter.join().unwrap();
}
