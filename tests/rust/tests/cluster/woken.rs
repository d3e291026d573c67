//! Waiters that are notified of a release, before, while and after the slot of their lock moves.

use std::sync::mpsc::channel;
use std::thread;

use locktender::{Client, EventKind};
use locktender_tests::{Binary, Cluster, ClusterOptions, Events, PATIENCE, ServerOptions, TTL, eventually};

/// A waiter gets the lock of a holder that releases it, and was notified by the server.
fn handed_over(cluster: &Cluster, name: &str) {
    let holder = Client::builder().url(cluster.url()).ttl(TTL).build().unwrap();
    let (waiter, events) = Events::of(Client::builder().url(cluster.url()).ttl(TTL));
    let held = holder.lock(name).acquire_blocking().unwrap();
    let (sender, received) = channel();
    let waits = thread::spawn({
        let lock = waiter.lock(name).wait(PATIENCE);
        move || sender.send(lock.acquire_blocking().unwrap().release_blocking()).unwrap()
    });
    // The subscription comes after the first look, and causes another one.
    eventually("it listens", PATIENCE, || listens(cluster, name));
    events.at_least(EventKind::Round, 2);
    eventually("all looks are over", PATIENCE, || events.count(EventKind::Busy) == events.count(EventKind::Round));
    held.release_blocking().unwrap();
    received.recv_timeout(PATIENCE).unwrap().unwrap();
    waits.join().unwrap();
    assert_eq!(events.count(EventKind::Notified), 1, "{name}");
}

/// Whether anybody listens to the channel of this lock, at any node.
pub(crate) fn listens(cluster: &Cluster, name: &str) -> bool {
    (0..cluster.nodes.len()).any(|node| is_subscribed_at(cluster, name, node))
}

/// The same at one node. Before version 7 a subscription is good at any node.
fn is_subscribed_at(cluster: &Cluster, name: &str, node: usize) -> bool {
    let node = &cluster.nodes[node];
    let kind = if node.binary().version.starts_with("6.") { "CHANNELS" } else { "SHARDCHANNELS" };
    format!("{:?}", node.command(&["PUBSUB", kind, "*:~lt:*wake:@*"])).contains(name)
}

#[test]
fn a_waiter_is_notified_at_the_node_of_its_lock() {
    for binary in Binary::ends() {
        let cluster = ClusterOptions::new().node(ServerOptions::new().binary(&binary)).start();
        for name in crate::everyday::names(&cluster, 1) {
            handed_over(&cluster, &name);
        }
    }
}

#[test]
fn a_waiter_is_notified_at_the_new_node_of_a_slot_that_has_moved_meanwhile() {
    for binary in Binary::ends() {
        let cluster = ClusterOptions::new().node(ServerOptions::new().binary(&binary)).start();
        let name = "{tag}a";
        let slot = cluster.slot(name);
        let holder = Client::builder().url(cluster.url()).ttl(TTL).build().unwrap();
        let (waiter, events) = Events::of(Client::builder().url(cluster.url()).ttl(TTL));
        for _ in 0..2 {
            let held = holder.lock(name).acquire_blocking().unwrap();
            let (sender, received) = channel();
            let before = events.count(EventKind::Notified);
            let waits = thread::spawn({
                let lock = waiter.lock(name).wait(PATIENCE);
                move || sender.send(lock.acquire_blocking().unwrap().release_blocking()).unwrap()
            });
            eventually("it listens", PATIENCE, || listens(&cluster, name));
            cluster.move_slot(slot, (cluster.primary(slot) + 1) % 3);
            let at = cluster.primary(slot);
            eventually("it listens there", PATIENCE, || is_subscribed_at(&cluster, name, at));
            let looks = events.count(EventKind::Busy);
            events.at_least(EventKind::Busy, looks + 1);
            held.release_blocking().unwrap();
            received.recv_timeout(PATIENCE).unwrap().unwrap();
            waits.join().unwrap();
            assert_eq!(events.count(EventKind::Notified), before + 1, "{}", binary.name);
        }
    }
}

#[test]
fn a_waiter_finds_out_by_itself_while_the_slot_moves() {
    let cluster = Cluster::start();
    let name = "{tag}a";
    let slot = cluster.slot(name);
    let holder = Client::builder().url(cluster.url()).ttl(TTL).build().unwrap();
    let (waiter, events) = Events::of(Client::builder().url(cluster.url()).ttl(TTL));
    cluster.begin_move(slot, (cluster.primary(slot) + 1) % 3);
    let held = holder.lock(name).acquire_blocking().unwrap();
    let (sender, received) = channel();
    let waits = thread::spawn({
        let lock = waiter.lock(name).wait(PATIENCE);
        move || sender.send(lock.acquire_blocking().unwrap().release_blocking()).unwrap()
    });
    events.at_least(EventKind::Busy, 2);
    held.release_blocking().unwrap();
    received.recv_timeout(PATIENCE).unwrap().unwrap();
    waits.join().unwrap();
}
