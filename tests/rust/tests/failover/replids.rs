//! Replication ids: a new primary is noticed, reported, and asked for every hold at once; the client doesn't return to an old one.

use std::time::Instant;

use locktender::{Client, EventKind, Hold, LossReason};
use locktender_tests::{Events, PATIENCE, RealServer, Reply, ServerOptions, eventually};

use crate::pair::{Pair, ms};

const COUNT: usize = 20;

/// A ttl whose first renewal comes later than these tests look.
const LONG: std::time::Duration = ms(60_000);

fn names() -> Vec<String> {
    (0..COUNT).map(|number| format!("a{number}")).collect()
}

/// Holds of a client whose connection for renewals is there.
fn holds(client: &Client, pair: &Pair) -> Vec<Hold> {
    let held = names().into_iter().map(|name| client.lock(name).ttl(LONG).acquire_blocking().unwrap()).collect();
    eventually("the connection for renewals is there", PATIENCE, || connections(&pair.primary).len() == 2);
    held
}

fn exist(server: &RealServer) -> i64 {
    let names = names();
    let words: Vec<&str> = ["EXISTS"].into_iter().chain(names.iter().map(String::as_str)).collect();
    server.command(&words).int()
}

fn replid(server: &RealServer) -> String {
    let info = server.command(&["INFO", "replication"]).text().unwrap();
    info.lines().find_map(|line| line.strip_prefix("master_replid:")).unwrap().to_owned()
}

#[test]
fn after_a_failover_every_hold_is_confirmed_at_once() {
    let mut pair = Pair::start();
    let (client, events) = Events::of(pair.builder());
    let held = holds(&client, &pair);
    eventually("all is replicated", PATIENCE, || exist(&pair.replica) == COUNT as i64);
    let old_replid = replid(&pair.primary);
    let begun = Instant::now();
    pair.fail_over();
    events.at_least(EventKind::FailedOver, 1);
    events.at_least(EventKind::Renewed, COUNT);
    assert!(begun.elapsed() < ms(10_000), "the first renewals would come after 20 s: {:?}", begun.elapsed());
    assert!(held.iter().all(Hold::is_valid));
    let event = events.last(EventKind::FailedOver).unwrap();
    assert_eq!((event.old_replication_id, event.new_replication_id), (Some(old_replid), Some(replid(&pair.replica))));
    assert_eq!(event.address, Some(format!("127.0.0.1:{}", pair.address.port())));
    assert_eq!((event.server, events.count(EventKind::FailedOver)), (Some(pair.address.url()), 1));
}

#[test]
fn a_hold_that_the_new_primary_never_got_is_lost_long_before_its_renewal() {
    let mut pair = Pair::start();
    pair.cut_link();
    let (client, events) = Events::of(pair.builder());
    let held = holds(&client, &pair);
    let idle = client.lock("b").ttl(LONG).renew(false).acquire_blocking().unwrap();
    let begun = Instant::now();
    pair.fail_over();
    events.at_least(EventKind::Lost, COUNT + 1);
    assert!(begun.elapsed() < ms(10_000), "the first renewals would come after 20 s: {:?}", begun.elapsed());
    for held in held.iter().chain([&idle]) {
        let loss = held.lost().blocking().unwrap();
        assert_eq!(loss.reason, LossReason::Missing);
    }
}

#[test]
fn a_hold_that_is_not_renewed_is_confirmed_and_not_made_longer() {
    let mut server = ServerOptions::new().persistent().start();
    let (client, events) = Events::of(Client::builder().url(server.url()));
    let held = client.lock("a").ttl(LONG).renew(false).acquire_blocking().unwrap();
    let before = held.remaining();
    server.restart();
    client.lock("b").acquire_blocking().unwrap();
    events.at_least(EventKind::FailedOver, 1);
    events.at_least(EventKind::Renewed, 1);
    assert!(held.is_valid() && held.remaining() <= before, "{:?}", held.check());
    assert!(server.command(&["PTTL", "a"]).int() <= 60_000);
}

fn a_failover_is_noticed_without_a_call(acquire: impl Fn(&Client, bool) -> Hold) {
    for renew in [true, false] {
        let mut pair = Pair::start();
        pair.cut_link();
        let (client, events) = Events::of(pair.builder());
        let held = acquire(&client, renew);
        pair.fail_over();
        events.at_least(EventKind::FailedOver, 1);
        assert_eq!(held.lost().blocking().unwrap().reason, LossReason::Missing, "renew: {renew}");
    }
}

/// A ttl whose first renewal, and every look at the server's name, come later than a test waits.
const LONGEST: std::time::Duration = ms(600_000);

#[test]
fn a_failover_is_noticed_though_the_thread_that_acquired_makes_no_further_call() {
    a_failover_is_noticed_without_a_call(|client, renew| client.lock("a").ttl(LONGEST).renew(renew).acquire_blocking().unwrap());
}

#[test]
fn a_failover_is_noticed_though_the_runtime_that_acquired_runs_no_further_task() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    a_failover_is_noticed_without_a_call(|client, renew| {
        runtime.block_on(async { client.lock("a").ttl(LONGEST).renew(renew).acquire().await }).unwrap()
    });
}

/// The client's connections to a server, the oldest first.
fn connections(server: &RealServer) -> Vec<u64> {
    let list = server.command(&["CLIENT", "LIST"]).text().unwrap();
    let ours = list.lines().filter(|line| line.contains("name=locktender"));
    let mut ids: Vec<u64> =
        ours.map(|line| line.strip_prefix("id=").unwrap().split(' ').next().unwrap().parse().unwrap()).collect();
    ids.sort_unstable();
    ids
}

/// Closes one connection of the client, and leaves the others as they are.
fn close_one(server: &RealServer, which: usize) {
    let id = connections(server)[which].to_string();
    assert_eq!(server.command(&["CLIENT", "KILL", "ID", &id]), Reply::Int(1));
}

#[test]
fn all_connections_change_together_though_the_old_primary_still_answers() {
    let mut pair = Pair::start();
    let (client, events) = Events::of(pair.builder());
    let held = holds(&client, &pair);
    pair.replica.command(&["REPLICAOF", "NO", "ONE"]);
    pair.address.lead_to(pair.replica.port());
    // The connection for renewals is the second. The one of the blocking calls stays open.
    close_one(&pair.primary, 1);
    events.at_least(EventKind::FailedOver, 1);
    let there = client.lock("b").acquire_blocking().unwrap();
    assert_eq!((pair.primary.command(&["EXISTS", "b"]).int(), pair.replica.command(&["EXISTS", "b"]).int()), (0, 1));
    drop((there, held));
}

#[test]
fn an_old_primary_is_not_gone_back_to_while_the_new_one_is_there() {
    let mut pair = Pair::start();
    let (client, events) = Events::of(pair.builder());
    let held = holds(&client, &pair);
    eventually("all is replicated", PATIENCE, || exist(&pair.replica) == COUNT as i64);
    pair.fail_over();
    events.at_least(EventKind::Renewed, COUNT);
    client.lock("b").acquire_blocking().unwrap().release().blocking().unwrap();
    // The address leads back to the old primary, which doesn't know that it is none any more.
    pair.address.lead_to(pair.primary.port());
    let before = pair.address.connections();
    close_one(&pair.replica, 0);
    eventually("the old primary is connected", PATIENCE, || pair.address.connections() > before);
    let again = client.lock("c").acquire_blocking();
    let old = || pair.primary.command(&["EXISTS", "c"]).int();
    assert_eq!(old(), 0, "{again:?}");
    pair.address.lead_to(pair.replica.port());
    client.lock("d").acquire_blocking().unwrap();
    assert_eq!((old(), events.count(EventKind::FailedOver)), (0, 1));
    assert!(held.iter().all(Hold::is_valid));
}

#[test]
fn a_frozen_primary_is_left_when_its_answers_are_late_and_not_returned_to_when_it_continues() {
    let mut pair = Pair::start();
    let (client, events) = Events::of(pair.builder());
    let held = holds(&client, &pair);
    eventually("all is replicated", PATIENCE, || exist(&pair.replica) == COUNT as i64);
    pair.primary.pause();
    pair.replica.command(&["REPLICAOF", "NO", "ONE"]);
    // Nobody cuts the connections: they are as silent as the primary.
    pair.address.lead_to(pair.replica.port());
    let there = client.lock("b").acquire_blocking().unwrap();
    events.at_least(EventKind::Renewed, COUNT);
    pair.primary.resume();
    client.lock("c").acquire_blocking().unwrap();
    assert_eq!((pair.primary.command(&["EXISTS", "c"]).int(), events.count(EventKind::FailedOver)), (0, 1));
    assert!(there.is_valid() && held.iter().all(Hold::is_valid));
}
