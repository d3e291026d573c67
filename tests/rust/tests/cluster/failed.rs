//! Primaries that fail.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use locktender::{Client, Code, EventKind};
use locktender_tests::{ClusterOptions, Events, PATIENCE, Proxy, TTL, eventually};

use crate::everyday::names;

/// What locks protect: it refuses a fence that is not above all before.
#[derive(Default)]
struct Resource {
    last: Mutex<HashMap<String, u64>>,
    writes: AtomicUsize,
}

impl Resource {
    fn write(&self, name: &str, fence: u64) {
        let mut last = self.last.lock().unwrap();
        let before = last.insert(name.to_owned(), fence).unwrap_or_default();
        assert!(fence > before, "{name}: the fence {fence} came after {before}");
        self.writes.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_primary_is_killed_under_load_and_its_replica_continues() {
    let mut cluster = ClusterOptions::new().replicas(1).start();
    let (resource, stop) = (Arc::new(Resource::default()), Arc::new(AtomicBool::new(false)));
    let all = names(&cluster, 2);
    let (client, events) = Events::of(Client::builder().url(cluster.url()).ttl(TTL));
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (client, all) = (client.clone(), all.clone());
            let (resource, stop) = (Arc::clone(&resource), Arc::clone(&stop));
            thread::spawn(move || {
                for name in all.iter().cycle().take_while(|_| !stop.load(Ordering::SeqCst)) {
                    match client.lock(name).ttl(Duration::from_secs(1)).wait(Duration::from_millis(200)).acquire_blocking() {
                        Ok(held) => {
                            resource.write(name, held.fence());
                            // The primary may be gone by now: then the lease ends by itself.
                            let _ = held.release_blocking();
                        }
                        Err(error) => assert!([Code::Unavailable, Code::AcquireTimeout].contains(&error.code()), "{error}"),
                    }
                }
            })
        })
        .collect();
    eventually("all are used", PATIENCE, || resource.writes.load(Ordering::SeqCst) > 100);
    // A hold of another shard isn't concerned.
    let elsewhere = all.iter().find(|name| cluster.primary(cluster.slot(name)) != 0).unwrap();
    let other = Client::builder().url(cluster.url()).ttl(TTL).build().unwrap();
    let held = other.lock(format!("{{{elsewhere}}}:held")).acquire_blocking().unwrap();
    cluster.fail_over(0);
    held.renew_now_blocking().unwrap();
    let written = resource.writes.load(Ordering::SeqCst);
    eventually("all go on", PATIENCE, || resource.writes.load(Ordering::SeqCst) > written + 100);
    stop.store(true, Ordering::SeqCst);
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    for name in &all {
        client.lock(name).wait(PATIENCE).acquire_blocking().unwrap().release_blocking().unwrap();
    }
    events.at_least(EventKind::FailedOver, 1);
    assert_eq!(events.count(EventKind::FailedOver), 1, "{:?}", events.last(EventKind::FailedOver));
    held.release_blocking().unwrap();
}

#[test]
fn a_failover_is_noticed_and_its_holds_are_confirmed_though_their_client_asks_for_nothing() {
    let mut cluster = ClusterOptions::new().replicas(1).start();
    let name = names(&cluster, 1).into_iter().find(|name| cluster.primary(cluster.slot(name)) == 0).unwrap();
    let (client, events) = Events::of(Client::builder().url(cluster.url()).ttl(PATIENCE * 3));
    // The replication id of the primary is known, and nothing renews the hold, which the replica never gets.
    client.lock(format!("{{{name}}}:before")).acquire_blocking().unwrap().release_blocking().unwrap();
    cluster.nodes[3].pause();
    cluster.nodes[0].command(&["CLIENT", "KILL", "TYPE", "replica"]);
    let held = client.lock(&name).renew(false).acquire_blocking().unwrap();
    cluster.nodes[0].kill();
    cluster.nodes[3].resume();
    eventually("the failover is reported", PATIENCE, || events.count(EventKind::FailedOver) == 1);
    eventually("the hold that is gone is lost", PATIENCE, || !held.is_valid());
    assert_eq!(events.count(EventKind::Lost), 1);
}

#[test]
fn a_primary_that_is_started_again_elsewhere_without_its_data_has_its_holds_confirmed() {
    let mut cluster = ClusterOptions::new().start();
    let mut before = Proxy::to(cluster.nodes[0].port());
    cluster.announce(0, before.port());
    let name = names(&cluster, 1).into_iter().find(|name| cluster.primary(cluster.slot(name)) == 0).unwrap();
    let (client, events) = Events::of(Client::builder().url(cluster.url()).ttl(PATIENCE * 3));
    let held = client.lock(&name).renew(false).acquire_blocking().unwrap();
    // Somebody else of the process goes to the new address as soon as that is known.
    let stop = Arc::new(AtomicBool::new(false));
    let busy = thread::spawn({
        let (client, stop, lock) = (client.clone(), Arc::clone(&stop), format!("{{{name}}}:other"));
        move || {
            while !stop.load(Ordering::SeqCst) {
                let _ = client.lock(&lock).inspect_blocking();
            }
        }
    });
    before.refuse();
    // It announces its own port now.
    cluster.nodes[0].restart();
    eventually("it is reported", PATIENCE, || events.count(EventKind::FailedOver) == 1);
    eventually("the hold that is gone is lost", PATIENCE, || !held.is_valid());
    stop.store(true, Ordering::SeqCst);
    busy.join().unwrap();
    assert_eq!(events.count(EventKind::Lost), 1);
}

#[test]
fn a_shard_without_a_primary_concerns_its_own_locks_only() {
    let mut cluster = ClusterOptions::new().start();
    let all = names(&cluster, 1);
    let client = Client::builder().url(cluster.url()).ttl(TTL).build().unwrap();
    let held: Vec<_> = all.iter().map(|name| client.lock(name).acquire_blocking().unwrap()).collect();
    let at: Vec<usize> = all.iter().map(|name| cluster.primary(cluster.slot(name))).collect();
    cluster.nodes[0].kill();
    for (held, _) in held.iter().zip(&at).filter(|(_, at)| **at != 0) {
        held.renew_now_blocking().unwrap();
    }
    for (name, at) in all.iter().zip(&at) {
        let other = client.lock(format!("{{{name}}}:other")).wait(Duration::from_millis(500)).acquire_blocking();
        match other {
            Ok(other) => assert!(*at != 0 && other.release_blocking().is_ok()),
            Err(error) => assert!(*at == 0 && error.code() == Code::Unavailable, "{error}"),
        }
    }
}

#[test]
fn a_node_that_gives_no_answer_is_named() {
    let cluster = ClusterOptions::new().start();
    let name = names(&cluster, 1).remove(0);
    let span = Duration::from_millis(300);
    let client = Client::builder().url(cluster.url()).response_timeout(span).unavailable_after(span).build().unwrap();
    client.lock(&name).acquire_blocking().unwrap().release_blocking().unwrap();
    let node = cluster.at(&name);
    node.pause();
    let error = client.lock(&name).acquire_blocking().unwrap_err();
    node.resume();
    let message = &error.servers()[0].message;
    // "no answer within …"; on a busy machine also "no connection was made …", to the node all the same.
    assert!(message.starts_with(&format!("127.0.0.1:{}: no ", node.port())), "{error}");
    assert!(error.to_string().contains(message), "{error}");
}
