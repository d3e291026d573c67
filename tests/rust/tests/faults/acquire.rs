//! Acquires while the network, the server and the caller fail.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::net::TcpListener;
use std::time::{Duration, Instant};

use locktender::{Client, ClientOptions, Code, EventKind, FailureKind, Outcome, Remaining};
use locktender_tests::{Events, PROMPTLY, Proxy, RealServer, ServerOptions, TOLERANCE, TTL, eventually};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn open(url: &str) -> Client {
    Client::open(url).unwrap()
}

/// A client that gives up long after a test would.
fn patient(url: &str, change: impl FnOnce(&mut ClientOptions)) -> (Client, Events) {
    let patient = |options: &mut ClientOptions| {
        options.connect_timeout = ms(60_000);
        options.unavailable_after = ms(60_000);
    };
    Events::of(Client::builder().url(url).configure(patient).configure(change))
}

fn exists(server: &RealServer, key: &str) -> bool {
    server.command(&["EXISTS", key]).int() == 1
}

#[test]
fn f12_a_foreign_key_is_respected_and_survives() {
    let server = RealServer::start();
    let client = open(&server.url());
    server.command(&["RPUSH", "list", "x"]);
    let error = client.lock("list").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::KeyConflict, "{error}");
    assert_eq!(server.command(&["LLEN", "list"]).int(), 1);

    server.command(&["SET", "eternal", "someone"]);
    let error = client.lock("eternal").wait(ms(50)).acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::AcquireTimeout, "{error}");
    let holder = error.holder().unwrap();
    assert_eq!((holder.owner.as_str(), holder.remaining), ("someone", Remaining::Forever));
    assert_eq!(server.holder("eternal").as_deref(), Some("someone"));
}

#[test]
fn f13_a_link_cut_after_the_server_applied_the_acquire_leaves_no_key() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let client = open(&proxy.url());
    client.lock("warm").acquire_blocking().unwrap();
    proxy.cut_after_apply(1, "\r\nnx\r\n");
    let start = Instant::now();
    let error = client.lock("a").ttl(ms(60_000)).try_acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    eventually("the undo reached the server", PROMPTLY, || !exists(&server, "a"));
    // Waiting, the same is only a delay.
    proxy.cut_after_apply(1, "\r\nnx\r\n");
    let held = client.lock("a").ttl(ms(60_000)).wait(ms(5_000)).acquire_blocking().unwrap();
    assert!(held.is_valid() && start.elapsed() < ms(3_000), "{:?}", start.elapsed());
}

#[test]
fn f13_an_acquire_dropped_at_any_moment_leaves_no_key() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    proxy.latency(ms(3), ms(3));
    let client = open(&proxy.url());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut rng = fastrand::Rng::with_seed(13);
    let mut granted = 0;
    runtime.block_on(async {
        // One that connects, and one that shows how long an acquire takes on this machine.
        drop(client.lock("first").acquire().await.unwrap());
        let start = Instant::now();
        drop(client.lock("second").acquire().await.unwrap());
        let usual = start.elapsed();
        for n in 0..200 {
            let lock = client.lock(format!("drop:{n}")).ttl(ms(60_000));
            let patience = usual.mul_f64(2.0 * rng.f64());
            if tokio::time::timeout(patience, lock.acquire()).await.is_ok() {
                granted += 1;
            }
        }
    });
    assert!(granted > 0 && granted < 200, "{granted}: both must happen");
    let left = || (0..200).filter(|n| exists(&server, &format!("drop:{n}"))).count();
    eventually("every key is gone", PROMPTLY, || left() == 0);
    client.lock("usable").acquire().blocking().unwrap();
}

#[test]
fn f14_the_undo_of_a_round_never_touches_a_later_one() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let client = open(&proxy.url());
    for n in 0..30 {
        let name = format!("undo:{n}");
        proxy.cut_after_apply(1, "~lt:queue");
        let held = client.lock(&name).ttl(ms(30_000)).wait(ms(10_000)).acquire_blocking().unwrap();
        // Undos of the failed rounds go on for half a second after the cut.
        if n % 10 == 0 {
            std::thread::sleep(ms(700));
        }
        assert_eq!(server.holder(&name).as_deref(), Some(held.owner()));
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    }
}

#[test]
fn f15_an_acquire_that_waited_longer_than_its_ttl_has_full_validity() {
    let server = RealServer::start();
    let client = open(&server.url());
    let first = client.lock("a").acquire_blocking().unwrap();
    let waiter = {
        let client = client.clone();
        std::thread::spawn(move || client.lock("a").ttl(TTL).acquire_blocking().unwrap().remaining())
    };
    std::thread::sleep(TTL + ms(100));
    first.release().blocking().unwrap();
    let remaining = waiter.join().unwrap();
    assert!(remaining > TTL / 3, "{remaining:?}");
}

#[test]
fn f15_a_reply_slower_than_the_ttl_is_no_success_and_is_undone() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let client = open(&proxy.url());
    client.lock("warm").acquire_blocking().unwrap();
    proxy.latency(ms(0), ms(300));
    let error = client.lock("a").ttl(ms(200)).wait(ms(0)).acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    proxy.latency(ms(0), ms(0));
    eventually("undone", PROMPTLY, || !exists(&server, "a"));
}

#[test]
fn f16_a_ttl_too_small_to_be_kept_is_refused() {
    let error = open("memory://f16").lock("a").ttl(ms(5)).acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
}

#[test]
fn f18_an_unreachable_server_takes_no_longer_than_the_wait_and_a_response_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_url = format!("redis://{}", silent.local_addr().unwrap());
    let refused_url = {
        let gone = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("redis://{}", gone.local_addr().unwrap())
    };
    for url in [&silent_url, &refused_url, &silent_url.replace("redis:", "rediss:")] {
        let (client, _) = patient(url, |options| options.response_timeout = Some(ms(300)));
        // The first connection over TLS reads the machine's certificates, which takes its time without optimisation.
        client.lock("a").try_acquire_blocking().unwrap_err();
        for wait in [0, 400] {
            let start = Instant::now();
            let error = client.lock("a").wait(ms(wait)).acquire_blocking().unwrap_err();
            assert_eq!(error.code(), Code::Unavailable, "{url}: {error}");
            assert_eq!(error.servers().len(), 1, "{url}");
            assert!(start.elapsed() < ms(wait + 300) + TOLERANCE, "{url}: {:?}", start.elapsed());
        }
        let start = Instant::now();
        let error = client.lock("a").try_acquire_blocking().unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{error}");
        assert!(start.elapsed() < ms(300) + TOLERANCE, "{url}: {:?}", start.elapsed());
    }
}

#[test]
fn f18_waiting_without_end_ends_when_the_server_stays_away() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", gone.local_addr().unwrap());
    drop(gone);
    let client = Client::builder().url(url).configure(|options| options.unavailable_after = ms(500)).build().unwrap();
    let start = Instant::now();
    let error = client.lock("a").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    assert_eq!(error.servers()[0].kind, FailureKind::Refused, "{error}");
    assert!(start.elapsed() >= ms(500) && start.elapsed() < ms(1_500) + TOLERANCE, "{:?}", start.elapsed());
}

#[test]
fn a_wrong_password_is_denied_at_once_and_never_shown() {
    let server = ServerOptions::new().password("right").start();
    let (client, events) = patient(&format!("redis://:wr0ng@127.0.0.1:{}", server.port()), |_| ());
    let start = Instant::now();
    let error = client.lock("a").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::Denied, "{error}");
    assert!(start.elapsed() < ms(900), "{:?}", start.elapsed());
    assert_eq!(events.count(EventKind::Round), 1, "it is not tried again");
    assert!(!format!("{error} {error:?} {client:?}").contains("wr0ng"));
    open(&server.url()).lock("a").acquire_blocking().unwrap();
}

#[test]
fn a_busy_lock_shows_who_holds_it_and_is_taken_when_it_is_free() {
    let server = RealServer::start();
    let (ours, theirs) = (open(&server.url()), open(&server.url()));
    let held = ours.lock("a").acquire_blocking().unwrap();
    assert!(theirs.lock("a").try_acquire_blocking().unwrap().is_none());
    let error = theirs.lock("a").wait(ms(60)).acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::AcquireTimeout);
    assert_eq!(error.holder().unwrap().owner, held.owner());
    held.extend(TTL).blocking().unwrap();
    let info = theirs.lock("a").inspect_blocking().unwrap().unwrap();
    assert_eq!((info.owner.as_str(), info.fence), (held.owner(), Some(held.fence())));
    drop(held);
    let next = theirs.lock("a").wait(ms(2_000)).acquire_blocking().unwrap();
    assert!(Some(next.fence()) > info.fence);
}

#[test]
fn a_holder_that_dies_frees_the_lock_within_its_ttl() {
    let server = RealServer::start();
    let client = open(&server.url());
    server.command(&["SET", "a", "dead", "PX", "700"]);
    let start = Instant::now();
    client.lock("a").acquire_blocking().unwrap();
    assert!(start.elapsed() >= ms(650) && start.elapsed() < ms(760), "{:?}", start.elapsed());
}
