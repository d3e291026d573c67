//! Nodes that are reached at another address than they announce, and the names that their certificates may have.

use std::thread;
use std::time::Duration;

use locktender::{Client, ClientBuilder, Code, FailureKind};
use locktender_tests::{Binary, Cluster, ClusterOptions, PATIENCE, Proxy, ServerOptions, certificate, eventually};

use crate::everyday::names;

/// The host in the certificate `elsewhere`. It leads nowhere.
const NAME: &str = "elsewhere.invalid";

fn with_tls(certificate: &str) -> Cluster {
    ClusterOptions::new().node(ServerOptions::new().tls(certificate)).start()
}

fn trusting(url: String) -> ClientBuilder {
    let builder = Client::builder().url(url).tls_ca(certificate("ca.pem").to_str().unwrap());
    builder.connect_timeout(Duration::from_secs(5)).unavailable_after(Duration::from_millis(500))
}

/// A lock of each node is handed over to a waiter.
fn works(cluster: &Cluster, builder: ClientBuilder) {
    let client = builder.build().unwrap();
    for name in names(cluster, 1) {
        let held = client.lock(&name).acquire_blocking().unwrap();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| client.lock(&name).wait(PATIENCE).acquire_blocking().unwrap());
            eventually("it waits", PATIENCE, || {
                client.lock(&name).inspect_blocking().unwrap().is_some_and(|seen| seen.waiters > 0)
            });
            held.release_blocking().unwrap();
            waiter.join().unwrap().release_blocking().unwrap();
        });
    }
    client.close_blocking().unwrap();
}

fn fails(builder: ClientBuilder, words: &str) {
    let error = builder.build().unwrap().lock("a").acquire_blocking().unwrap_err();
    assert_eq!((error.code(), error.servers()[0].kind), (Code::Unavailable, FailureKind::Tls), "{error}");
    assert!(error.to_string().contains(words), "{words:?} is not in {error}");
}

#[test]
fn nodes_speak_tls_at_the_addresses_that_they_announce() {
    let cluster = with_tls("server");
    works(&cluster, trusting(cluster.url()));
    fails(Client::builder().url(cluster.url()).unavailable_after(Duration::from_millis(500)), "certificate");
    fails(trusting(cluster.url()).tls_name(NAME), "not valid for name");
}

#[test]
fn nodes_that_announce_addresses_may_have_a_certificate_for_one_name() {
    let cluster = with_tls("elsewhere");
    fails(trusting(cluster.url()), "not valid for name");
    works(&cluster, trusting(cluster.url()).tls_name(NAME));
    // The same for a name of the URL, wherever that leads.
    let port = cluster.nodes[0].port();
    let builder = trusting(format!("rediss+cluster://{NAME}:{port}"));
    works(&cluster, builder.address_map(format!("{NAME}:{port}"), format!("127.0.0.1:{port}")));
}

#[test]
fn nodes_that_announce_ports_of_proxies_are_reached_there_and_after_a_move_too() {
    for binary in Binary::ends() {
        let cluster = ClusterOptions::new().node(ServerOptions::new().binary(&binary)).start();
        let proxies: Vec<_> = cluster.nodes.iter().map(|node| Proxy::to(node.port())).collect();
        let builder = || {
            let first = Client::builder().url(format!("redis+cluster://127.0.0.1:{}", cluster.nodes[0].port()));
            cluster.nodes.iter().zip(&proxies).fold(first, |builder, (node, proxy)| {
                builder.address_map(format!("127.0.0.1:{}", node.port()), format!("127.0.0.1:{}", proxy.port()))
            })
        };
        works(&cluster, builder());
        assert!(proxies.iter().all(|proxy| proxy.connections() > 0), "{}", binary.name);
        // A client whose map is older learns of the move from the node.
        let client = builder().build().unwrap();
        let held = client.lock("{tag}a").acquire_blocking().unwrap();
        let slot = cluster.slot("{tag}a");
        let to = (cluster.primary(slot) + 1) % 3;
        cluster.move_slot(slot, to);
        let direct =
            |index: usize| cluster.nodes[index].command(&["CLIENT", "LIST"]).text().unwrap().matches(" name=locktender").count();
        held.renew_now_blocking().unwrap();
        held.release_blocking().unwrap();
        eventually("all connections lead through proxies", PATIENCE, || {
            (0..3).all(|index| direct(index) <= proxies[index].open_connections())
        });
        assert!(proxies[to].open_connections() > 0, "{}", binary.name);
    }
}

#[test]
fn nodes_that_announce_names_are_reached_where_the_map_says() {
    let newest = Binary::ends().pop().unwrap();
    let node = ServerOptions::new().binary(&newest).tls("elsewhere");
    let node = node.config(&format!("cluster-announce-hostname {NAME}")).config("cluster-preferred-endpoint-type hostname");
    let cluster = ClusterOptions::new().node(node).start();
    let names = |node: usize| format!("{:?}", cluster.nodes[node].command(&["CLUSTER", "SLOTS"])).matches(NAME).count();
    eventually("each node knows the names of all", PATIENCE, || (0..3).all(|node| names(node) == 3));
    let at = |port: u16| (format!("{NAME}:{port}"), format!("127.0.0.1:{port}"));
    let builder = cluster.nodes.iter().fold(trusting(cluster.url()).tls_name(NAME), |builder, node| {
        let (announced, reachable) = at(node.port());
        builder.address_map(announced, reachable)
    });
    works(&cluster, builder);
}

#[test]
fn nodes_of_two_clusters_are_no_cluster() {
    let (one, other) = (ClusterOptions::new().start(), ClusterOptions::new().start());
    let url = format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", one.nodes[0].port(), other.nodes[0].port());
    let client = Client::builder().url(url).unavailable_after(Duration::from_millis(500)).build().unwrap();
    let error = client.lock("a").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.to_string().contains("several clusters"), "{error}");
}
