//! Grants and extensions that count only when a replica of their shard has confirmed them.

use std::time::Duration;

use locktender::{Client, ClientBuilder, Code, FailureKind};
use locktender_tests::{Cluster, ClusterOptions, PATIENCE, Reply, TTL, eventually};

use crate::everyday::names;

fn confirmed(cluster: &Cluster) -> ClientBuilder {
    Client::builder().url(cluster.url()).ttl(TTL).min_replicas(1).unavailable_after(Duration::from_millis(300))
}

#[test]
fn a_grant_is_confirmed_by_the_replica_of_its_shard_and_outlives_the_primary() {
    let mut cluster = ClusterOptions::new().replicas(1).start();
    let client = confirmed(&cluster)
        .ttl(PATIENCE * 3)
        .replicas_timeout(Duration::from_secs(5))
        .response_timeout(Duration::from_secs(6))
        .build()
        .unwrap();
    let held: Vec<_> = names(&cluster, 3).iter().map(|name| client.lock(name).acquire_blocking().unwrap()).collect();
    let at = |held: &locktender::Hold| cluster.primary(cluster.slot(held.name()));
    let of_first: Vec<_> = held.iter().map(|held| at(held) == 0).collect();
    for held in &held {
        let keys = cluster.nodes[3 + at(held)].command(&["KEYS", held.name()]);
        assert_eq!(keys, Reply::Array(vec![Reply::Text(held.name().into())]), "the replica has it");
    }
    cluster.fail_over(0);
    let rival = Client::builder().url(cluster.url()).build().unwrap();
    for (held, of_first) in held.iter().zip(of_first) {
        // The shard that failed over has no replica any more that could confirm an extension, but it knows the lock.
        assert!(rival.lock(held.name()).try_acquire_blocking().unwrap().is_none(), "{}", held.name());
        assert!(held.is_valid(), "{}", held.name());
        if !of_first {
            held.renew_now_blocking().unwrap();
        }
        held.release_blocking().unwrap();
    }
}

#[test]
fn a_replica_that_stands_still_concerns_the_locks_of_its_shard_only() {
    let cluster = ClusterOptions::new().replicas(1).start();
    let client = confirmed(&cluster).build().unwrap();
    let names = names(&cluster, 1);
    cluster.nodes[3].pause();
    for name in &names {
        match (cluster.primary(cluster.slot(name)), client.lock(name).try_acquire_blocking()) {
            (0, Err(error)) => {
                assert_eq!((error.code(), error.servers()[0].kind), (Code::Unavailable, FailureKind::NotReplicated), "{error}");
            }
            (0, granted) => panic!("{granted:?}"),
            (_, granted) => drop(granted.unwrap().unwrap().release_blocking().unwrap()),
        }
    }
    cluster.nodes[3].resume();
    for name in &names {
        eventually("it is granted again", PATIENCE, || client.lock(name).try_acquire_blocking().is_ok_and(|held| held.is_some()));
    }
}
