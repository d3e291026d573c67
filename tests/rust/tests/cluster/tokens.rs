//! Credentials that change while locks of all nodes are held: no connection is made again, and nothing is lost.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use locktender::{Client, Code, Credentials, EventKind};
use locktender_tests::{Binary, Cluster, ClusterOptions, Events, LENIENT, PATIENCE, RealServer, ServerOptions, TTL, eventually};

use crate::everyday::names;

const LIFE: Duration = Duration::from_secs(3);

/// The connections of clients of this library to a node: the id and the user of each.
pub(super) fn connections(node: &RealServer) -> Vec<(String, String)> {
    let list = node.command(&["CLIENT", "LIST"]).text().unwrap();
    let field = |line: &str, name: &str| line.split(' ').find_map(|field| Some(field.strip_prefix(name)?.to_owned())).unwrap();
    let ours = list.lines().filter(|line| field(line, "name=").starts_with("locktender"));
    let mut found: Vec<_> = ours.map(|line| (field(line, "id="), field(line, "user="))).collect();
    found.sort();
    found
}

/// Waits until every connection has a token of this number or a later one; gives the ids at each node.
fn all_have(cluster: &Cluster, number: u32) -> Vec<Vec<String>> {
    let has = |user: &str| user.strip_prefix("token-").is_some_and(|of| of.parse::<u32>().unwrap() >= number);
    eventually(&format!("every connection has token {number}"), PATIENCE, || {
        let found = cluster.nodes.iter().map(connections);
        found.into_iter().all(|found| !found.is_empty() && found.iter().all(|(_, user)| has(user)))
    });
    cluster.nodes.iter().map(|node| connections(node).into_iter().map(|(id, _)| id).collect()).collect()
}

#[test]
fn holds_of_all_nodes_outlive_their_tokens() {
    for binary in Binary::ends() {
        let node = ServerOptions::new().binary(&binary).password("the-administrators");
        let cluster = Arc::new(ClusterOptions::new().node(node).start());
        let hosts: Vec<_> = cluster.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        let calls = Arc::new(AtomicU32::new(0));
        let provider = {
            let (cluster, calls) = (Arc::clone(&cluster), Arc::clone(&calls));
            move || {
                let number = calls.fetch_add(1, Ordering::SeqCst) + 1;
                let (user, password) = (format!("token-{number}"), format!("hunter2-of-{number}"));
                // The first one is refused, as that of a provider whose cache is stale.
                for node in cluster.nodes.iter().filter(|_| number > 1) {
                    node.command(&["ACL", "SETUSER", &user, "on", &format!(">{password}"), "~*", "&*", "+@all"]);
                }
                async move { Ok::<_, io::Error>(Credentials::new(&*password).user(&*user).expires_in(LIFE)) }
            }
        };
        let builder = Client::builder().url(format!("redis+cluster://{}", hosts.join(","))).connect_timeout(LENIENT);
        let (client, events) = Events::of(builder.credentials(provider).ttl(TTL));
        let names = names(&cluster, 2);
        let held: Vec<_> = names.iter().map(|name| client.lock(name).acquire_blocking().unwrap()).collect();
        // From there on the background has its connections, too.
        events.more(EventKind::Renewed, 2 * names.len());
        let before = all_have(&cluster, 2);
        for number in 3..6 {
            assert_eq!(all_have(&cluster, number), before, "{}: no connection was made again", binary.name);
            // A user that is deleted closes its connections: all have left the old one.
            for node in &cluster.nodes {
                node.command(&["ACL", "DELUSER", &format!("token-{}", number - 1)]);
            }
            events.next_renewal();
        }
        assert_eq!(all_have(&cluster, 5), before, "{}", binary.name);
        for held in held {
            held.release_blocking().unwrap();
        }
        for kind in [EventKind::Lost, EventKind::Warning, EventKind::ServerFailed] {
            assert_eq!(events.last(kind), None, "{}", binary.name);
        }
        client.close_blocking().unwrap();
    }
}

#[test]
fn a_node_that_refuses_the_user_stops_no_other_node() {
    let cluster = ClusterOptions::new().node(ServerOptions::new().password("the-administrators")).start();
    let (refusing, healthy) = cluster.nodes.split_last().unwrap();
    for node in healthy {
        node.command(&["ACL", "SETUSER", "app", "on", ">hunter2", "~*", "&*", "+@all"]);
    }
    let provider = || async { Ok::<_, io::Error>(Credentials::new("hunter2").user("app").expires_in(LIFE)) };
    let hosts: Vec<_> = healthy.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
    let builder = Client::builder().url(format!("redis+cluster://{}", hosts.join(","))).connect_timeout(LENIENT);
    let client = builder.credentials(provider).ttl(TTL).build().unwrap();
    let (its, others): (Vec<_>, Vec<_>) =
        names(&cluster, 1).into_iter().partition(|name| cluster.at(name).port() == refusing.port());
    for round in 0..20 {
        let error = client.lock(&its[0]).acquire_blocking().unwrap_err();
        assert_eq!(error.code(), Code::Denied, "round {round}");
        // New connections are made while the refusal is fresh.
        for node in healthy {
            node.command(&["CLIENT", "KILL", "USER", "app"]);
        }
        for name in &others {
            client.lock(name).acquire_blocking().unwrap().release_blocking().unwrap();
        }
    }
    // The node gets the user: it gets the same credentials once more.
    refusing.command(&["ACL", "SETUSER", "app", "on", ">hunter2", "~*", "&*", "+@all"]);
    eventually("the node accepts them", PATIENCE, || client.lock(&its[0]).try_acquire_blocking().is_ok());
    client.close_blocking().unwrap();
}
