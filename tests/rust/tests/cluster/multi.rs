//! Several locks that are acquired at once: in one slot of a cluster.

use std::thread;

use locktender::{Client, Code, EventKind};
use locktender_tests::{Cluster, Events, PATIENCE, ServerOptions, TTL, eventually};

use crate::woken::listens;

#[test]
fn several_locks_of_one_slot_are_acquired_at_once_and_their_waiter_is_notified() {
    let cluster = Cluster::start();
    let client = Client::builder().url(cluster.url()).ttl(TTL).build().unwrap();
    let (waiter, events) = Events::of(Client::builder().url(cluster.url()).ttl(TTL));
    let error = client.multi_lock(["{a}1", "{b}1"]).acquire_blocking().unwrap_err();
    assert_eq!((error.code(), error.argument()), (Code::InvalidArgument, Some("names")), "{error}");
    let names = ["{tag}1", "{tag}2"];
    for name in names {
        let held = client.lock(name).acquire_blocking().unwrap();
        let waits = thread::spawn({
            let lock = waiter.multi_lock(names).wait(PATIENCE);
            move || lock.acquire_blocking().unwrap()
        });
        // It looks once more when it listens to each of the channels. A look during the release might find the lock free before the message.
        eventually("it listens", PATIENCE, || names.iter().all(|name| listens(&cluster, name)));
        let looks = events.count(EventKind::Busy);
        events.at_least(EventKind::Busy, looks + 2);
        held.release_blocking().unwrap();
        let hold = waits.join().unwrap();
        assert_eq!(hold.names(), names);
        assert!(client.lock("{tag}2").try_acquire_blocking().unwrap().is_none());
        hold.release().blocking().unwrap();
    }
    assert_eq!(events.count(EventKind::Notified), 2);
}

#[test]
fn while_their_slot_moves_they_are_renewed_and_released_and_new_ones_wait() {
    let cluster = Cluster::start();
    let client = Client::builder().url(cluster.url()).ttl(TTL).build().unwrap();
    let names: Vec<String> = (0..6).map(|number| format!("{{tag}}{number}")).collect();
    let slot = cluster.slot(&names[0]);
    let to = (cluster.primary(slot) + 1) % 3;
    let hold = client.multi_lock(&names).acquire_blocking().unwrap();
    cluster.begin_move(slot, to);
    cluster.move_keys(slot, to, 3);
    hold.extend(TTL).blocking().unwrap();
    let waits = thread::spawn({
        let lock = client.multi_lock(&names).wait(PATIENCE);
        move || lock.acquire_blocking().unwrap()
    });
    hold.release().blocking().unwrap();
    while cluster.move_keys(slot, to, 100) > 0 {}
    cluster.finish_move(slot, to);
    let next = waits.join().unwrap();
    assert!(next.fences().iter().zip(hold.fences()).all(|(next, before)| next.1 > before.1));
    next.release().blocking().unwrap();
}

#[test]
fn locks_of_several_slots_are_refused_also_by_the_only_node_of_a_cluster() {
    let node = ServerOptions::new().config("cluster-enabled yes").start();
    node.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    eventually("it serves", PATIENCE, || node.command(&["CLUSTER", "INFO"]).text().unwrap().contains("cluster_state:ok"));
    // As a plain server, and so without a map.
    let client = Client::builder().url(node.url()).ttl(TTL).build().unwrap();
    client.multi_lock(["{tag}1", "{tag}2"]).acquire_blocking().unwrap().release().blocking().unwrap();
    let error = client.multi_lock(["{tag}1", "{other}1"]).acquire_blocking().unwrap_err();
    assert_eq!((error.code(), error.argument()), (Code::InvalidArgument, Some("names")), "{error}");
}
