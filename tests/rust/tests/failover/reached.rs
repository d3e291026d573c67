//! Nodes that are reached at another address than they announce, and the names that their certificates may have.

use std::time::Duration;

use locktender::{Client, ClientBuilder, Code, EventKind, FailureKind};
use locktender_tests::{Events, PATIENCE, RealServer, certificate, eventually};

use crate::oracle::{Oracle, SERVICE};
use crate::peer::tls::terminate;
use crate::primary_with_one::{Pair, ms};

/// A name that leads nowhere.
const NOWHERE: &str = "db.locktender.invalid";

/// An address that nobody listens at.
const ELSEWHERE: &str = "127.0.0.2";

fn port(url: &str) -> u16 {
    url.rsplit(':').next().unwrap().parse().unwrap()
}

fn trusting(url: String) -> ClientBuilder {
    let builder = Client::builder().url(url).tls_ca(certificate("ca.pem").to_str().unwrap());
    builder.connect_timeout(Duration::from_secs(5)).unavailable_after(ms(300))
}

/// A client of a node behind TLS with that certificate. It is announced at a host where nobody listens.
fn announced(host: &'static str, node: &RealServer, certificate: &str) -> ClientBuilder {
    let port = port(&terminate(node.port(), certificate, false));
    let oracle = Oracle::naming(port, 1);
    oracle.announce(host);
    trusting(format!("rediss+sentinel://localhost:{}/{SERVICE}?sentinel_tls=no", oracle.port))
        .address_map(format!("{host}:{port}"), format!("127.0.0.1:{port}"))
}

fn works(builder: ClientBuilder) {
    builder.build().unwrap().lock("a").acquire_blocking().unwrap().release_blocking().unwrap();
}

fn fails(builder: ClientBuilder, words: &str) {
    let error = builder.build().unwrap().lock("a").acquire_blocking().unwrap_err();
    assert_eq!((error.code(), error.servers()[0].kind), (Code::Unavailable, FailureKind::Tls), "{error}");
    assert!(error.to_string().contains(words), "{words:?} is not in {error}");
}

#[test]
fn a_node_that_announces_an_address_may_have_a_certificate_for_a_host_of_the_url() {
    let node = RealServer::start();
    works(announced(ELSEWHERE, &node, "server"));
    fails(announced(ELSEWHERE, &node, "elsewhere"), "not valid for name");
    fails(announced(ELSEWHERE, &node, "expired"), "xpired");
}

#[test]
fn a_node_that_announces_a_name_has_a_certificate_for_that_wherever_it_is_reached() {
    let node = RealServer::start();
    fails(announced(NOWHERE, &node, "server"), "not valid for name");
    works(announced("elsewhere.invalid", &node, "elsewhere"));
}

#[test]
fn one_name_counts_for_all() {
    let node = RealServer::start();
    for host in [NOWHERE, ELSEWHERE] {
        works(announced(host, &node, "elsewhere").tls_name("elsewhere.invalid"));
        fails(announced(host, &node, "server").tls_name("elsewhere.invalid"), "not valid for name");
        works(announced(host, &node, "server").tls_name("127.0.0.1"));
    }
    let urls = ["server", "elsewhere"].map(|certificate| terminate(node.port(), certificate, false));
    works(trusting(urls[1].clone()).tls_name("elsewhere.invalid"));
    fails(trusting(urls[1].clone()), "not valid for name");
    fails(trusting(urls[0].clone()).tls_name("elsewhere.invalid"), "not valid for name");
    // The sentinels, too.
    let oracle = Oracle::naming(port(&urls[1]), 1);
    let behind_tls = port(&terminate(oracle.port, "elsewhere", false));
    works(trusting(format!("rediss+sentinel://localhost:{behind_tls}/{SERVICE}")).tls_name("elsewhere.invalid"));
}

#[test]
fn a_failover_leads_to_the_node_at_its_mapped_address() {
    let pair = Pair::start();
    let oracle = Oracle::naming(pair.primary.port(), 1);
    oracle.announce(NOWHERE);
    let builder = Client::builder().url(format!("redis+sentinel://127.0.0.1:{}/{SERVICE}", oracle.port));
    let builder = [&pair.primary, &pair.replica].into_iter().fold(builder, |builder, node| {
        builder.address_map(format!("{NOWHERE}:{}", node.port()), format!("localhost:{}", node.port()))
    });
    let (client, events) = Events::of(builder);
    let held = client.lock("a").acquire_blocking().unwrap();
    eventually("it is replicated", PATIENCE, || pair.replica.command(&["EXISTS", "a"]).int() == 1);
    pair.replica.command(&["REPLICAOF", "NO", "ONE"]);
    oracle.name(pair.replica.port(), 2);
    pair.primary.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    events.at_least(EventKind::FailedOver, 1);
    assert!(held.is_valid());
    held.release_blocking().unwrap();
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    for (builder, argument) in [
        (Client::builder().url("redis://h").address_map("a:1", "b:1"), "address_map"),
        (Client::builder().url("redis+sentinel://h/s").address_map("a", "b:1"), "address_map"),
        (Client::builder().url("redis://h").tls_name("db.example"), "tls_name"),
        (Client::builder().url("rediss://h").tls_name("no name"), "tls_name"),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!((error.code(), error.argument()), (Code::InvalidArgument, Some(argument)), "{error}");
    }
}
