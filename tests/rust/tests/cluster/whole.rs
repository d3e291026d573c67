//! What concerns all nodes: lists, reports, elections that anybody may observe, and the end of a client.

use std::collections::HashSet;
use std::sync::mpsc::channel;
use std::thread;

use locktender::{Client, Code, Error};
use locktender_tests::{Binary, Cluster, ClusterOptions, PATIENCE, SLOTS, ServerOptions, TTL, eventually};

use crate::everyday::names;
use crate::tokens::connections;

fn client(cluster: &Cluster) -> Client {
    Client::builder().url(cluster.url()).ttl(TTL).build().unwrap()
}

#[test]
fn locks_of_all_nodes_are_listed() {
    let cluster = Cluster::start();
    let (client, other) = (client(&cluster), client(&cluster));
    let names = names(&cluster, 40);
    let held: Vec<_> = names.iter().map(|name| client.lock(name).acquire_blocking().unwrap()).collect();
    held.iter().for_each(|held| held.extend(TTL).blocking().unwrap());
    let elsewhere = client.lock("other").acquire_blocking().unwrap();
    // Each part of a scan looks at some keys only.
    cluster.nodes.iter().zip(["a", "b", "c"]).for_each(|(_, tag)| cluster.fill(tag, 2_000));
    let listed = other.locks_blocking("orders:*", None).unwrap();
    let all: HashSet<_> = held.iter().map(|held| (held.name().to_owned(), held.owner().to_owned(), Some(held.fence()))).collect();
    assert_eq!(listed.len(), all.len());
    assert_eq!(listed.into_iter().map(|lock| (lock.name, lock.owner, lock.fence)).collect::<HashSet<_>>(), all);
    assert_eq!(other.locks_blocking("orders:*", 5).unwrap().len(), 5);
    held.into_iter().chain([elsewhere]).for_each(|held| drop(held.release_blocking().unwrap()));
    assert_eq!(other.locks_blocking("*", None).unwrap().len(), 0);
}

#[test]
fn a_list_is_whole_though_the_map_of_its_client_is_old() {
    let cluster = ClusterOptions::new().replicas(1).start();
    let (client, other) = (client(&cluster), client(&cluster));
    let names = names(&cluster, 4);
    let held: Vec<_> = names.iter().map(|name| client.lock(name).acquire_blocking().unwrap()).collect();
    assert_eq!(other.locks_blocking("orders:*", None).unwrap().len(), held.len());
    let slot = cluster.slot(names.iter().find(|name| cluster.primary(cluster.slot(name)) == 0).unwrap());
    cluster.hand_over(slot, 3);
    // The old primary has the keys of another shard now, and lists them on the connection that the client has.
    cluster.follow(0, 1);
    assert_eq!(other.locks_blocking("orders:*", None).unwrap().len(), held.len());
    assert!(held.iter().all(|held| held.is_valid()));
}

#[test]
fn a_list_of_slots_without_a_node_is_an_error() {
    let cluster = Cluster::start();
    let first = client(&cluster);
    let held: Vec<_> = names(&cluster, 1).iter().map(|name| first.lock(name).acquire_blocking().unwrap()).collect();
    let slots: Vec<_> = (0..SLOTS).filter(|slot| cluster.primary(*slot) == 0).map(|slot| slot.to_string()).collect();
    let words: Vec<_> = ["CLUSTER", "DELSLOTS"].into_iter().chain(slots.iter().map(String::as_str)).collect();
    cluster.nodes.iter().for_each(|node| drop(node.command(&words)));
    let error = client(&cluster).locks_blocking("orders:*", None).unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.to_string().contains("no node of the cluster serves some of the slots"), "{error}");
    drop(held);
}

#[test]
fn a_report_warns_of_any_node() {
    let mut cluster = ClusterOptions::new().replicas(1).start();
    let client = client(&cluster);
    let report = |client: &Client| client.check_servers_blocking().unwrap().remove(0);
    let warns = |word: &str| report(&client).warnings.iter().any(|warning| warning.contains(word));
    assert_eq!((report(&client).failure, report(&client).role.as_deref()), (None, Some("master")));
    assert!(!warns("evict"), "{:?}", report(&client).warnings);
    cluster.nodes[2].command(&["CONFIG", "SET", "maxmemory", "1gb"]);
    cluster.nodes[2].command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    assert!(warns("evict"), "{:?}", report(&client).warnings);
    assert_eq!(report(&client).eviction.as_deref(), Some("allkeys-lru"));
    cluster.fail_over(2);
    // All nodes name the successor, so that the first report asks it.
    let last = report(&client);
    assert!(last.failure.is_none() && last.eviction.as_deref() == Some("noeviction"), "{last:?}");
}

#[test]
fn a_report_warns_of_slots_without_a_node() {
    let cluster = Cluster::start();
    let client = client(&cluster);
    assert!(client.check_servers_blocking().unwrap().remove(0).warnings.iter().all(|warning| !warning.contains("slots")));
    for node in &cluster.nodes {
        node.command(&["CLUSTER", "DELSLOTS", "77"]);
    }
    let report = client.check_servers_blocking().unwrap().remove(0);
    let words = "1 of 16384 slots are served by no node";
    assert!(report.warnings.iter().any(|warning| warning.starts_with(words)), "{report:?}");
}

#[test]
fn an_observer_is_notified_of_leaders_on_every_node() {
    for binary in Binary::ends() {
        let cluster = ClusterOptions::new().node(ServerOptions::new().binary(&binary)).start();
        // An observer that isn't notified would look when the term ends.
        let leading = Client::builder().url(cluster.url()).ttl(PATIENCE * 10).build().unwrap();
        let watching = client(&cluster);
        for name in names(&cluster, 2) {
            let (sender, received) = channel();
            let mut observer = watching.election(&name).observe();
            let watches = thread::spawn(move || -> Result<(), Error> {
                while sender.send(observer.next_blocking()?.leader.map(|leader| leader.term)).is_ok() {}
                Ok(())
            });
            assert_eq!(received.recv_timeout(PATIENCE), Ok(None), "{name}");
            for _ in 0..3 {
                let leadership = leading.election(&name).campaign_blocking().unwrap();
                assert_eq!(received.recv_timeout(PATIENCE), Ok(Some(leadership.term())), "{}: {name}", binary.name);
                leadership.resign_blocking().unwrap();
                assert_eq!(received.recv_timeout(PATIENCE), Ok(None), "{}: {name}", binary.name);
            }
            drop(received);
            // The next leader that it learns of ends it.
            let leadership = leading.election(&name).campaign_blocking().unwrap();
            watches.join().unwrap().unwrap();
            leadership.resign_blocking().unwrap();
        }
    }
}

#[test]
fn a_closed_client_has_no_connection_to_any_node() {
    let cluster = Cluster::start();
    let client = client(&cluster);
    let holder = self::client(&cluster);
    let names = names(&cluster, 1);
    let held: Vec<_> = names.iter().map(|name| holder.lock(name).acquire_blocking().unwrap()).collect();
    let ours = || cluster.nodes.iter().map(|node| connections(node).len()).sum::<usize>();
    eventually("the holder's connections are there", PATIENCE, || ours() >= 3);
    thread::scope(|scope| {
        let waiters: Vec<_> =
            names.iter().map(|name| scope.spawn(|| client.lock(name.as_str()).wait(PATIENCE).acquire_blocking())).collect();
        let is_queued = |name: &str| holder.lock(name).inspect_blocking().unwrap().unwrap().waiters == 1;
        eventually("all wait", PATIENCE, || names.iter().all(|name| is_queued(name)));
        let mut observer = client.election("scheduler").observe();
        observer.next_blocking().unwrap();
        client.close_blocking().unwrap();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap().unwrap_err().code(), locktender::Code::Closed);
        }
    });
    for held in &held {
        assert!(held.is_valid());
        eventually("nobody waits any more", PATIENCE, || {
            holder.lock(held.name()).inspect_blocking().unwrap().unwrap().waiters == 0
        });
    }
    held.into_iter().for_each(|held| drop(held.release_blocking().unwrap()));
    holder.close_blocking().unwrap();
    eventually("no connection is left", PATIENCE, || ours() == 0);
}
