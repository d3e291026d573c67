//! What every user does: locks, waiters, jobs and elections on all nodes.

use std::collections::HashSet;
use std::time::Duration;

use locktender::Client;
use locktender_tests::{Cluster, TTL};

/// Names of locks on each of three nodes.
pub(super) fn names(cluster: &Cluster, each: usize) -> Vec<String> {
    let mut left = [each; 3];
    let names = (0..).map(|number| format!("orders:{number}"));
    let mut wanted = names.filter(|name| {
        let node = cluster.primary(cluster.slot(name));
        let is_wanted = left[node] > 0;
        left[node] -= usize::from(is_wanted);
        is_wanted
    });
    (0..3 * each).map(|_| wanted.next().unwrap()).collect()
}

#[test]
fn locks_of_all_nodes_are_taken_extended_and_released() {
    let cluster = Cluster::start();
    let client = Client::builder().url(cluster.url()).ttl(TTL).build().unwrap();
    let other = Client::builder().url(cluster.url()).ttl(TTL).build().unwrap();
    for name in names(&cluster, 4) {
        let held = client.lock(&name).acquire_blocking().unwrap();
        assert!(held.fence() > 0);
        assert!(other.lock(&name).try_acquire_blocking().unwrap().is_none(), "{name}");
        held.extend_blocking(Duration::from_secs(60)).unwrap();
        assert!(cluster.command(&name, &["PTTL", &name]).int() > 50_000);
        held.release_blocking().unwrap();
        assert_eq!(cluster.command(&name, &["EXISTS", &name]).int(), 0);
    }
}

#[tokio::test]
async fn tasks_use_connections_of_their_own_runtime() {
    let cluster = Cluster::start();
    let client = Client::builder().url(cluster.url()).ttl(TTL).build().unwrap();
    let mut fences = HashSet::new();
    for name in names(&cluster, 2) {
        for _ in 0..2 {
            let held = client.lock(&name).acquire().await.unwrap();
            assert!(fences.insert((name.clone(), held.fence())));
            held.release().await.unwrap();
        }
    }
}
