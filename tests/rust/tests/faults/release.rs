//! Release: its outcomes, and which handle may release.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use locktender::{Client, ClientOptions, Code, Error, Hold, LossReason, Outcome};
use locktender_tests::{PROMPTLY, Proxy, RealServer, TTL, eventually};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn open(url: &str) -> Client {
    Client::open(url).unwrap()
}

fn value(server: &RealServer, key: &str) -> Option<String> {
    server.holder(key)
}

#[test]
fn f22_an_expired_handle_never_deletes_the_next_holders_key() {
    let server = RealServer::start();
    let client = open(&server.url());
    let late = client.lock("a").ttl(ms(100)).renew(false).acquire_blocking().unwrap();
    let next = client.lock("a").acquire_blocking().unwrap();
    assert!(!late.is_valid() && next.is_valid());
    let release = std::thread::spawn(move || late.release().blocking()).join().unwrap().unwrap();
    assert_eq!((release.outcome, release.next_owner.as_deref()), (Outcome::Taken, Some(next.owner())));
    assert_eq!(value(&server, "a").as_deref(), Some(next.owner()));
    assert_eq!(next.release().blocking().unwrap().outcome, Outcome::Released);
}

#[test]
fn a_second_release_is_an_error_and_leaving_after_a_release_does_nothing() {
    let server = RealServer::start();
    let client = open(&server.url());
    let held = client.lock("a").acquire_blocking().unwrap();
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    assert_eq!(held.release().blocking().unwrap_err().code(), Code::NotHeld);
    assert_eq!(held.extend(ms(100)).blocking().unwrap_err().code(), Code::NotHeld);
    assert_eq!(held.check().unwrap_err().code(), Code::NotHeld);
    held.leave().blocking().unwrap();
    let next = client.lock("a").acquire_blocking().unwrap();
    drop(held);
    assert_eq!(value(&server, "a").as_deref(), Some(next.owner()));
}

#[test]
fn a_release_whose_reply_is_lost_is_retried_and_counts_as_released() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let client = open(&proxy.url());
    // From here on the server knows the script: what is cut has deleted the key.
    client.lock("warm").acquire_blocking().unwrap().release().blocking().unwrap();
    let held = client.lock("a").acquire_blocking().unwrap();
    proxy.cut_after_apply(1, "$1\r\na\r\n");
    let release = held.release().blocking().unwrap();
    assert_eq!((release.outcome, proxy.faults_left()), (Outcome::Released, 0));
    assert_eq!(value(&server, "a"), None);
}

#[test]
fn a_release_nobody_answers_is_unavailable_and_can_be_retried_with_the_same_handle() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let client = Client::builder()
        .url(proxy.url())
        .configure(|options| {
            options.unavailable_after = ms(3_000);
            options.response_timeout = Some(ms(1_000));
        })
        .build()
        .unwrap();
    let held = client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    proxy.black_hole();
    let start = Instant::now();
    assert_eq!(held.release().blocking().unwrap_err().code(), Code::Unavailable);
    assert!(start.elapsed() >= ms(3_000) && start.elapsed() < ms(3_000) + ms(400), "{:?}", start.elapsed());
    assert!(!held.is_valid());
    proxy.restore();
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    assert_eq!(value(&server, "a"), None);
}

#[test]
fn leaving_a_body_with_an_unknown_outcome_is_no_error_and_continues_in_the_background() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    // Leaving waits for an answer, and not for as long as a release does.
    let patient = |options: &mut ClientOptions| {
        options.response_timeout = Some(ms(1_000));
        options.unavailable_after = ms(60_000);
    };
    let client = Client::builder().url(proxy.url()).configure(patient).build().unwrap();
    let lock = client.lock("a").ttl(ms(60_000));
    let start = Instant::now();
    let result = lock.with_blocking(|_| {
        proxy.black_hole();
        Ok::<_, Error>(7)
    });
    assert_eq!(result.unwrap(), 7);
    assert!(start.elapsed() < ms(1_000) + ms(300), "{:?}", start.elapsed());
    proxy.restore();
    eventually("released in the background", ms(2_000), || value(&server, "a").is_none());
}

#[test]
fn leaving_a_body_after_a_loss_is_an_error() {
    let server = RealServer::start();
    let client = open(&server.url());
    let failed = client.lock("a").ttl(TTL).with_blocking(|held: &Hold| {
        server.command(&["SET", "a", "rival", "PX", "60000"]);
        assert_eq!(held.lost().blocking().unwrap().reason, LossReason::Taken);
        Ok::<_, Error>(7)
    });
    let error = Error::from(failed.unwrap_err());
    assert_eq!(error.code(), Code::LockLost);
    assert_eq!(error.loss().unwrap().next_owner.as_deref(), Some("rival"));
    assert_eq!(value(&server, "a").as_deref(), Some("rival"));
}

#[test]
fn f24_a_body_that_is_dropped_or_panics_releases() {
    let server = RealServer::start();
    let client = open(&server.url());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let lock = client.lock("a");
        let entered = tokio::sync::Notify::new();
        let body = lock.with(async |_| {
            entered.notify_one();
            std::future::pending::<Result<(), Error>>().await
        });
        tokio::select! {
            _ = body => panic!("it has no end"),
            () = entered.notified() => (),
        }
    });
    eventually("released after the drop", PROMPTLY, || value(&server, "a").is_none());
    let lock = client.lock("b");
    let panicked = std::thread::spawn(move || lock.with_blocking(|_| -> Result<(), Error> { panic!("the body fails") }));
    assert!(panicked.join().is_err());
    eventually("released after the panic", PROMPTLY, || value(&server, "b").is_none());
}

#[test]
fn f28_closing_ends_everything_in_order_and_in_time() {
    let server = RealServer::start();
    let client = open(&server.url());
    let rival = open(&server.url());
    let taken = rival.lock("taken").acquire_blocking().unwrap();
    let held = client.lock("held").acquire_blocking().unwrap();
    let waiting = {
        let client = client.clone();
        std::thread::spawn(move || client.lock("taken").acquire_blocking().map(|_| ()))
    };
    eventually("the waiter is at it", PROMPTLY, || !waiting.is_finished());
    let start = Instant::now();
    client.close_blocking().unwrap();
    assert!(start.elapsed() < ms(1_500), "{:?}", start.elapsed());
    assert_eq!(waiting.join().unwrap().unwrap_err().code(), Code::Closed);
    assert!(!held.is_valid());
    assert_eq!(held.lost().blocking().unwrap().reason, LossReason::Closed);
    assert_eq!(held.leave().blocking().unwrap_err().code(), Code::LockLost);
    assert_eq!(value(&server, "held"), None);
    assert_eq!(value(&server, "taken").as_deref(), Some(taken.owner()), "no foreign key is touched");
    assert_eq!(client.lock("x").acquire_blocking().unwrap_err().code(), Code::Closed);
    client.close_blocking().unwrap();
}

#[test]
fn f28_closing_with_a_dead_server_is_bounded() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let client = open(&proxy.url());
    let _held = client.lock("a").acquire_blocking().unwrap();
    proxy.black_hole();
    let start = Instant::now();
    client.close_blocking().unwrap();
    assert!(start.elapsed() < ms(1_500), "{:?}", start.elapsed());
}

#[test]
fn a_hold_is_handed_over_once_and_keeps_its_name_taken_in_between() {
    let server = RealServer::start();
    let (ours, theirs) = (open(&server.url()), open(&server.url()));
    let held = ours.lock("a").acquire_blocking().unwrap();
    let ticket = held.hand_over().unwrap();
    assert!(!held.is_valid());
    assert_eq!(held.release().blocking().unwrap_err().code(), Code::NotHeld);
    assert!(theirs.lock("a").try_acquire_blocking().unwrap().is_none());
    let adopted = theirs.adopt(&ticket).blocking().unwrap();
    assert!(adopted.is_valid() && adopted.fence() > held.fence() && adopted.owner() != held.owner());
    assert_eq!(value(&server, "a").as_deref(), Some(adopted.owner()));
    let again = ours.adoption(&ticket).unwrap().try_acquire_blocking().unwrap_err();
    assert_eq!(again.code(), Code::LockLost, "a string adopts once");
    assert_eq!(theirs.adopt("nonsense").blocking().unwrap_err().code(), Code::InvalidArgument);
}
