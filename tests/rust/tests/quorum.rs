//! A quorum of real servers, some of which fail.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use locktender::{Client, ClientBuilder, Code, FailureKind, Outcome};
use locktender_tests::{Proxy, RealServer, ServerOptions, eventually};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn start(count: usize) -> Vec<RealServer> {
    (0..count).map(|_| RealServer::start()).collect()
}

fn builder(urls: impl IntoIterator<Item = String>) -> ClientBuilder {
    urls.into_iter().fold(Client::builder(), ClientBuilder::url)
}

/// A client of `servers`, which vote at once.
fn trusted(servers: &[RealServer]) -> Client {
    let client = builder(servers.iter().map(RealServer::url)).build().unwrap();
    client.initialize_quorum().wait().unwrap();
    client
}

fn value(server: &RealServer, key: &str) -> Option<String> {
    server.command(&["GET", key]).text()
}

#[test]
fn a_quorum_holds_extends_and_releases_on_every_server() {
    let servers = start(3);
    let client = trusted(&servers);
    let held = client.lock("a").ttl(ms(5_000)).acquire_blocking().unwrap();
    eventually("every server has it", ms(1_000), || servers.iter().all(|server| value(server, "a").as_deref() == Some(held.owner())));
    held.extend(ms(20_000)).wait().unwrap();
    assert!(held.remaining() > ms(19_000));
    assert!(client.lock("a").try_acquire_blocking().unwrap().is_none());
    assert_eq!(client.lock("a").inspect_blocking().unwrap().unwrap().owner, held.owner());
    assert_eq!(held.release().wait().unwrap().outcome, Outcome::Released);
    eventually("no server has it", ms(1_000), || servers.iter().all(|server| value(server, "a").is_none()));
    let next = client.lock("a").acquire_blocking().unwrap();
    assert!(next.fence() > held.fence());
}

#[test]
fn f17_five_servers_with_one_refused_and_one_black_holed_answer_as_fast_as_the_third() {
    let mut servers = start(5);
    let hole = Proxy::to(servers[4].port());
    let urls: Vec<String> = servers[..4].iter().map(RealServer::url).chain([hole.url()]).collect();
    let client = builder(urls).build().unwrap();
    client.initialize_quorum().wait().unwrap();
    client.lock("warm").acquire_blocking().unwrap();
    servers[3].kill();
    hole.black_hole();
    for n in 0..20 {
        let start = Instant::now();
        let held = client.lock(format!("a{n}")).acquire_blocking().unwrap();
        let granted = start.elapsed();
        assert_eq!(held.release().wait().unwrap().outcome, Outcome::Released);
        assert!(granted < ms(100) && start.elapsed() < ms(200), "{granted:?} {:?}", start.elapsed());
    }
}

#[test]
fn a_minority_that_is_down_loses_nothing_and_a_majority_that_is_down_is_unavailable() {
    let mut servers = start(3);
    let client = builder(servers.iter().map(RealServer::url))
        .configure(|options| options.unavailable_after = ms(600))
        .build()
        .unwrap();
    client.initialize_quorum().wait().unwrap();
    let held = client.lock("a").ttl(ms(900)).acquire_blocking().unwrap();
    servers[0].kill();
    std::thread::sleep(ms(1_800));
    assert!(held.is_valid(), "{:?}", held.check());
    servers[1].kill();
    let error = client.lock("b").acquire_blocking().unwrap_err();
    assert_eq!((error.code(), error.servers().len()), (Code::Unavailable, 2), "{error}");
    held.lost().wait().unwrap();
}

#[test]
fn f11_a_server_that_restarts_empty_is_repaired_one_beat_later_and_does_not_vote() {
    let mut servers = start(3);
    let client = trusted(&servers);
    let held = client.lock("a").ttl(ms(1_200)).acquire_blocking().unwrap();
    servers[0].restart_empty();
    eventually("healed", ms(3_000), || value(&servers[0], "a").as_deref() == Some(held.owner()));
    servers[1].restart_empty();
    eventually("healed too", ms(3_000), || value(&servers[1], "a").as_deref() == Some(held.owner()));
    assert!(held.is_valid());
    assert!(client.lock("a").try_acquire_blocking().unwrap_err().code() == Code::Unavailable, "nobody else is granted it");
    // Two of three forgot their markers: they don't vote, also for locks nobody holds.
    let error = client.lock("b").try_acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.servers().iter().any(|server| server.kind == FailureKind::Quarantine), "{error}");
    assert!(error.to_string().contains("votes in"), "{error}");
    assert_eq!(held.release().wait().unwrap().outcome, Outcome::Released);
}

#[test]
fn new_servers_vote_after_max_ttl_and_a_waiting_acquire_waits_for_that() {
    let servers = start(3);
    let client = builder(servers.iter().map(RealServer::url))
        .configure(|options| {
            options.max_ttl = ms(1_500);
            options.lock.ttl = ms(1_000);
        })
        .build()
        .unwrap();
    let start = Instant::now();
    let held = client.lock("a").acquire_blocking().unwrap();
    assert!(start.elapsed() >= ms(1_500) && start.elapsed() < ms(2_500), "{:?}", start.elapsed());
    assert!(held.is_valid());
}

#[test]
fn clients_of_another_quorum_are_refused() {
    let servers = start(3);
    drop(trusted(&servers));
    let urls = || servers.iter().map(RealServer::url);
    let other_ttl = builder(urls()).configure(|options| options.max_ttl = ms(30_000)).build().unwrap();
    let two = builder(urls().take(2)).build().unwrap();
    let one = builder(urls().take(1)).build().unwrap();
    for client in [other_ttl, two, one] {
        let error = client.lock("a").acquire_blocking().unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.to_string().contains("n=3 max_ttl=60000"), "{error}");
    }
}

#[test]
fn the_same_server_listed_twice_is_refused() {
    let servers = start(2);
    let again = format!("redis://localhost:{}", servers[0].port());
    let urls = [servers[0].url(), again, servers[1].url()];
    let client = builder(urls).build().unwrap();
    client.initialize_quorum().wait().unwrap();
    let error = client.lock("a").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    eventually("nothing is left", ms(1_000), || servers.iter().all(|server| value(server, "a").is_none()));
}

#[test]
fn a_check_reports_what_each_server_guarantees() {
    let evicting = ServerOptions::new().config("maxmemory-policy allkeys-lru").start();
    let durable = ServerOptions::new().persistent().start();
    let client = builder([evicting.url(), durable.url(), "redis://127.0.0.1:1".to_owned()]).build().unwrap();
    let reports = client.check().wait().unwrap();
    assert_eq!(reports[0].eviction.as_deref(), Some("allkeys-lru"));
    assert!(reports[0].warnings.iter().any(|warning| warning.contains("noeviction")), "{reports:?}");
    assert_eq!(reports[1].role.as_deref(), Some("master"));
    assert!(reports[1].clock_offset_ms.is_some_and(|offset| offset.abs() < 1_000), "{reports:?}");
    assert!(reports[2].error.is_some());
}
