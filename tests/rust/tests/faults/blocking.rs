//! Threads that do their own I/O: one thread drives for all, and may stop, end or fail at any moment.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use locktender::{Client, ClientOptions, Code, EventKind, Hold, Outcome};
use locktender_tests::{Events, PATIENCE, Proxy, RealServer, ServerOptions, certificate, eventually};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn open(url: &str) -> Client {
    Client::open(url).unwrap()
}

fn patient(url: &str, change: impl FnOnce(&mut ClientOptions)) -> Client {
    Client::builder().url(url).configure(change).build().unwrap()
}

fn pairs(client: &Client, name: &str, count: usize) {
    for _ in 0..count {
        pair(client, name);
    }
}

fn pair(client: &Client, name: &str) -> u64 {
    let held = client.lock(name).acquire_blocking().unwrap();
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    held.fence()
}

#[test]
fn threads_share_one_connection_and_leave_the_background_alone() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    // A machine that stalls would cause another connection.
    let client = patient(&proxy.url(), |options| options.response_timeout = Some(PATIENCE));
    let begun = Instant::now();
    thread::scope(|scope| {
        for n in 0..8 {
            let client = &client;
            scope.spawn(move || pairs(client, &format!("own:{n}"), 20));
        }
    });
    // Read first: what is held 200 ms after the first grant has the background connect, for renewals.
    let connections = proxy.connections();
    let took = begun.elapsed();
    let of_background = usize::from(took >= ms(200));
    assert!((1..=1 + of_background).contains(&connections), "{connections} after {took:?}");
}

#[test]
fn blocking_calls_work_over_tls_and_unix_sockets() {
    let server = RealServer::start();
    pair(&open(&server.unix_url()), "a");
    let tls = ServerOptions::new().tls("server").start();
    let ca = certificate("ca.pem").display().to_string();
    let client = patient(&tls.url(), |options| options.tls_ca = Some(ca));
    // Long names make answers of several records.
    let name = "x".repeat(1_000);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| pairs(&client, &name, 10));
        }
    });
}

#[test]
fn a_driver_that_gives_up_hands_over_to_those_that_still_wait() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let slow = |options: &mut ClientOptions| options.response_timeout = Some(PATIENCE);
    let (client, events) = Events::of(Client::builder().url(proxy.url()).configure(slow));
    pair(&client, "warm");
    proxy.hold_answers();
    thread::scope(|scope| {
        for n in 0..30 {
            let client = &client;
            scope.spawn(move || client.lock(format!("b:{n}")).acquire_blocking().unwrap());
            // Drivers come and go while the others wait.
            let mut call = client.lock("given-up").acquire();
            assert!(call.wait_for(ms(3)).is_none(), "its answer is held back");
        }
        let asked = || (0..30).all(|n| server.command(&["EXISTS", &format!("b:{n}")]).int() == 1);
        eventually("everybody has asked", PATIENCE, asked);
        proxy.let_answers_go();
    });
    // An answer that nobody reads is asked for again.
    assert_eq!(events.count(EventKind::Round), 1 + 30 + 30);
    eventually("cancelled", ms(3_000), || server.command(&["EXISTS", "given-up"]).int() == 0);
}

#[test]
fn an_answer_that_nobody_waits_for_any_more_is_still_seen_to() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let client = open(&proxy.url());
    pair(&client, "warm");
    proxy.hold_answers();
    let mut call = client.lock("a").acquire();
    assert!(call.wait_for(Duration::ZERO).is_none());
    drop(call);
    eventually("tried", ms(3_000), || server.command(&["EXISTS", "{20200}:~lt:clock"]).int() == 1);
    proxy.let_answers_go();
    eventually("undone", ms(3_000), || server.command(&["EXISTS", "a"]).int() == 0);
}

#[test]
fn a_call_begun_by_a_thread_can_be_ended_by_a_task() {
    let server = RealServer::start();
    let client = open(&server.url());
    let mut call = client.lock("a").acquire();
    let held: Hold = match call.wait_for(Duration::ZERO) {
        Some(held) => held.unwrap(),
        None => tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(call).unwrap(),
    };
    assert!(held.is_valid());
}

#[test]
fn f18_threads_waiting_at_a_server_that_stops_return_by_their_deadlines() {
    let server = RealServer::start();
    let client = patient(&server.url(), |options| {
        options.response_timeout = Some(ms(300));
        options.unavailable_after = ms(1_000);
    });
    let held = client.lock("busy").acquire_blocking().unwrap();
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..16)
            .map(|n| {
                let client = &client;
                scope.spawn(move || {
                    let lock = client.lock(if n % 2 == 0 { "busy".to_owned() } else { format!("free:{n}") }).wait(ms(500));
                    let began = Instant::now();
                    loop {
                        match lock.acquire_blocking() {
                            Ok(held) => drop(held.release().blocking()),
                            Err(error) => return (error.code(), began.elapsed()),
                        }
                    }
                })
            })
            .collect();
        server.pause();
        for waiting in waiting {
            let (code, took) = waiting.join().unwrap();
            assert!(matches!(code, Code::Unavailable | Code::AcquireTimeout), "{code:?}");
            // A wait and an answer, and before that a release whose outcome stays unknown.
            assert!(took < ms(2_500), "{took:?}");
        }
        server.resume();
    });
    drop(held);
    pair(&client, "after");
}

#[test]
fn f28_close_unblocks_the_driver_and_those_behind_it() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let client = open(&proxy.url());
    let holder = open(&server.url());
    let held = holder.lock("busy").acquire_blocking().unwrap();
    pair(&client, "warm");
    thread::scope(|scope| {
        let wait = |name: &'static str| {
            let client = &client;
            scope.spawn(move || client.lock(name).acquire_blocking().unwrap_err().code())
        };
        proxy.hold_answers();
        let seen = proxy.client_bytes();
        let silent = [wait("busy"), wait("free"), wait("free")];
        // A request has about 270 bytes.
        eventually("asked", ms(3_000), || proxy.client_bytes() > seen + 3 * 200);
        let began = Instant::now();
        client.close_blocking().unwrap();
        for waiting in silent {
            assert_eq!(waiting.join().unwrap(), Code::Closed);
        }
        assert!(began.elapsed() < ms(2_500), "{:?}", began.elapsed());
    });
    assert!(held.is_valid());
}

#[test]
fn a_connection_that_ended_while_nobody_drove_it_is_replaced_before_it_is_used() {
    let mut server = RealServer::start();
    let client = open(&server.url());
    let held = client.lock("a").renew(false).acquire_blocking().unwrap();
    server.restart_empty();
    // Sent on the dead connection it would count as repeated, and its outcome as our own doing.
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Expired);
}

#[test]
fn two_hundred_and_fifty_six_threads_on_as_many_locks_and_on_one() {
    let server = RealServer::start();
    let client = open(&server.url());
    let start = Barrier::new(256);
    thread::scope(|scope| {
        for n in 0..256 {
            let (client, start) = (&client, &start);
            scope.spawn(move || {
                start.wait();
                pairs(client, &format!("own:{n}"), 10);
            });
        }
    });
    let fences = thread::scope(|scope| {
        let callers: Vec<_> = (0..256).map(|_| scope.spawn(|| pair(&client, "one"))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect::<std::collections::HashSet<_>>()
    });
    assert_eq!(fences.len(), 256, "every hold has a fence of its own");
}
