//! Sentinels that can't be asked, are asked wrongly, or name what is no primary: each is a clear error in time, and no wrong node
//! gets a command.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use locktender::{Client, ClientBuilder, Code, Error, EventKind, FailureKind};
use locktender_tests::{Events, PATIENCE, Proxy, RealServer, ServerOptions, certificate, eventually};
use tokio::net::TcpSocket;

use crate::oracle::{Oracle, SERVICE};
use crate::peer::tls::terminate;
use crate::primary_with_one::{Pair, ms};
use crate::with_sentinels::sentinel;

fn url(ports: &[u16]) -> String {
    let places: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("redis+sentinel://{}/{SERVICE}", places.join(","))
}

fn refused(builder: ClientBuilder) -> Error {
    builder.unavailable_after(ms(300)).build().unwrap().lock("a").acquire_blocking().unwrap_err()
}

fn fails(url: impl Into<String>, code: Code, words: &[&str]) {
    let error = refused(Client::builder().url(url));
    assert_eq!(error.code(), code, "{error}");
    for words in words {
        assert!(error.to_string().contains(words), "{words:?} is not in {error}");
    }
}

fn works(url: impl Into<String>) {
    Client::builder().url(url).build().unwrap().lock("a").acquire_blocking().unwrap().release().blocking().unwrap();
}

/// A port where nobody listens, and the socket that keeps it from the servers of other tests.
fn nobody() -> (u16, TcpSocket) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    (socket.local_addr().unwrap().port(), socket)
}

#[test]
fn a_service_that_no_sentinel_watches_and_a_server_that_is_no_sentinel() {
    let node = RealServer::start();
    let real = sentinel(node.port(), 1).start();
    works(url(&[real.port()]));
    let other = url(&[real.port()]).replace(SERVICE, "other");
    fails(other, Code::InvalidArgument, &["the sentinels watch no service \"other\"", "sentinel monitor"]);
    fails(url(&[node.port()]), Code::InvalidArgument, &["is no sentinel", "redis://"]);
    let plain = format!("redis://127.0.0.1:{}", real.port());
    fails(&*plain, Code::InvalidArgument, &["this is a sentinel", "write redis+sentinel://host:port/service"]);
    let of_cluster = plain.replace("redis:", "redis+cluster:");
    fails(of_cluster, Code::InvalidArgument, &["a sentinel is redis+sentinel://host:port/service"]);
}

#[test]
fn sentinels_that_nobody_reaches_are_reported_with_the_reason() {
    let ((gone, _kept), node) = (nobody(), RealServer::start());
    let begun = Instant::now();
    fails(url(&[gone]), Code::Unavailable, &["no sentinel names the primary", "could not connect"]);
    fails("redis+sentinel://no.such.host.invalid/main", Code::Unavailable, &["no.such.host.invalid"]);
    let proxy = Proxy::to(node.port());
    proxy.black_hole();
    let silent = Client::builder().url(url(&[gone, proxy.port()])).connect_timeout(ms(300));
    let error = refused(silent);
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.to_string().contains("no answer") && error.to_string().contains("could not connect"), "{error}");
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    // One that answers is enough.
    works(url(&[gone, proxy.port(), Oracle::naming(node.port(), 1).port]));
}

#[test]
fn sentinels_that_disagree_in_one_epoch_are_not_believed_and_a_higher_epoch_is() {
    let [first, second] = [(); 2].map(|()| RealServer::start());
    let oracles = [Oracle::naming(first.port(), 4), Oracle::naming(second.port(), 4)];
    let url = url(&[oracles[0].port, oracles[1].port]);
    fails(&*url, Code::Unavailable, &["the sentinels disagree: in epoch 4 they name 127.0.0.1:"]);
    oracles[1].name(second.port(), 5);
    let client = Client::open(&*url).unwrap();
    let held = client.lock("a").acquire_blocking().unwrap();
    assert_eq!(second.holder("a").as_deref(), Some(held.owner()));
    assert_eq!(first.command(&["CLIENT", "LIST"]).text().unwrap().matches("name=locktender").count(), 0);
}

#[test]
fn an_epoch_that_was_left_is_not_gone_back_to() {
    let [first, second] = [(); 2].map(|()| RealServer::start());
    let oracle = Oracle::naming(second.port(), 5);
    let client = Client::builder().url(url(&[oracle.port])).unavailable_after(ms(300)).build().unwrap();
    client.lock("a").acquire_blocking().unwrap().release().blocking().unwrap();
    oracle.name(first.port(), 4);
    second.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    let error = client.lock("b").acquire_blocking().unwrap_err();
    assert_eq!((error.code(), error.servers()[0].kind), (Code::Unavailable, FailureKind::ReadOnly), "{error}");
    assert!(error.to_string().contains("in epoch 4, and epoch 5 has come since"), "{error}");
    assert_eq!(first.command(&["DBSIZE"]).int(), 0);
    oracle.name(second.port(), 5);
    client.lock("b").acquire_blocking().unwrap();
}

#[test]
fn credentials_of_sentinels_are_their_own() {
    let node = ServerOptions::new().password("secret").start();
    let auth = format!("sentinel auth-pass {SERVICE} secret");
    let asks = sentinel(node.port(), 1).config(&auth).password("hunter2").start();
    let open = sentinel(node.port(), 1).config(&auth).start();
    let at = |port: u16, query: &str| format!("{}{query}", url(&[port]).replace("://", "://:secret@"));
    works(at(asks.port(), "?sentinel_password=hunter2"));
    works(at(asks.port(), "?sentinel_user=default&sentinel_password=hunter2"));
    works(at(open.port(), ""));
    fails(at(asks.port(), ""), Code::Denied, &["asks for a password: write ?sentinel_password="]);
    fails(at(asks.port(), "?sentinel_password=wrong"), Code::Denied, &["refuses sentinel_user or sentinel_password"]);
    fails(at(open.port(), "?sentinel_password=hunter2"), Code::Denied, &["leave sentinel_password out"]);
    fails(at(open.port(), "").replace("secret", "wrong"), Code::Denied, &["refused the URL's user or password"]);
    let error = refused(Client::builder().url(at(open.port(), "?sentinel_password=hunter2")));
    assert!(!format!("{error} {error:?}").contains("hunter2") && !error.to_string().contains("secret"), "{error}");
}

#[test]
fn a_primary_that_is_a_replica_or_gone_is_said_to_be_what_the_sentinels_name() {
    let pair = Pair::start();
    fails(url(&[Oracle::naming(pair.replica.port(), 1).port]), Code::Unavailable, &["this is a replica of"]);
    let (gone, _kept) = nobody();
    let oracle = Oracle::naming(gone, 1);
    fails(url(&[oracle.port]), Code::Unavailable, &["the primary that the sentinels name: could not connect"]);
    oracle.flag("master,s_down,o_down");
    fails(url(&[oracle.port]), Code::Unavailable, &["the primary that the sentinels name, and take for down: could not connect"]);
}

#[test]
fn tls_of_the_primary_and_of_the_sentinels() {
    let node = RealServer::start();
    let port = |url: String| url.rsplit(':').next().unwrap().parse::<u16>().unwrap();
    let [fit, other] = ["server", "elsewhere"].map(|name| port(terminate(node.port(), name, false)));
    let [named, wrong, plain] = [fit, other, node.port()].map(|port| Oracle::naming(port, 1).port);
    let behind_tls = |oracle: u16| port(terminate(oracle, "server", false));
    let at = |scheme: &str, port: u16, query: &str| {
        let url = format!("{scheme}+sentinel://127.0.0.1:{port}/{SERVICE}{query}");
        Client::builder().url(url).tls_ca(certificate("ca.pem").to_str().unwrap()).connect_timeout(ms(1_000))
    };
    let works =
        |builder: ClientBuilder| builder.build().unwrap().lock("a").acquire_blocking().unwrap().release().blocking().unwrap();
    works(at("rediss", behind_tls(named), ""));
    works(at("rediss", named, "?sentinel_tls=no"));
    works(at("redis", behind_tls(plain), "?sentinel_tls=yes"));
    for (builder, code, words) in [
        (at("rediss", wrong, "?sentinel_tls=no"), Code::Unavailable, "not valid for name"),
        (at("rediss", plain, "?sentinel_tls=no"), Code::InvalidArgument, "its URL begins with redis+sentinel://"),
        (at("redis", behind_tls(named), "?sentinel_tls=yes"), Code::Unavailable, "its URL begins with rediss+sentinel://"),
        (at("rediss", named, ""), Code::Unavailable, "if the sentinels have no TLS, write ?sentinel_tls=no"),
    ] {
        let error = refused(builder);
        assert!(error.code() == code && error.to_string().contains(words), "{words:?} is not in {error}");
    }
    let behind_tls = url(&[behind_tls(named)]);
    for query in ["", "?sentinel_password=p"] {
        fails(format!("{behind_tls}{query}"), Code::Unavailable, &["if the sentinels speak TLS, write ?sentinel_tls=yes"]);
    }
}

/// A ttl whose first renewal comes later than a test waits.
const LONGEST: Duration = ms(600_000);

#[test]
fn what_a_sentinel_says_of_a_failover_is_followed_at_once_though_the_old_primary_answers() {
    let pair = Pair::start();
    let oracle = Oracle::naming(pair.primary.port(), 1);
    let (client, events) = Events::of(Client::builder().url(url(&[oracle.port])));
    let held = client.lock("a").ttl(LONGEST).acquire_blocking().unwrap();
    eventually("it is replicated", PATIENCE, || pair.replica.command(&["EXISTS", "a"]).int() == 1);
    eventually("it listens", PATIENCE, || oracle.listeners() == 1);
    // The caller's connection, and that of the background.
    eventually("both connections have asked", PATIENCE, || oracle.asked() == 2);
    pair.replica.command(&["REPLICAOF", "NO", "ONE"]);
    oracle.name(pair.replica.port(), 2);
    let asked = oracle.asked();
    oracle.publish("another");
    oracle.publish("mainly");
    let still = client.lock("b").acquire_blocking().unwrap();
    assert_eq!((pair.primary.command(&["EXISTS", "b"]).int(), oracle.asked()), (1, asked), "that was about other services");
    oracle.publish(SERVICE);
    // The next look that nothing causes would come later than this waits.
    events.at_least(EventKind::FailedOver, 1);
    let there = client.lock("c").acquire_blocking().unwrap();
    assert_eq!(pair.replica.command(&["EXISTS", "a", "c"]).int(), 2);
    assert!(held.is_valid() && there.is_valid() && there.fence() > still.fence());
    client.close().blocking().unwrap();
    oracle.publish(SERVICE);
}

#[test]
#[ignore = "long: the next look comes after half a minute"]
fn a_failover_that_nobody_reports_is_found_by_the_look_of_half_a_minute() {
    let pair = Pair::start();
    let oracle = Oracle::naming(pair.primary.port(), 1);
    let (client, events) = Events::of(Client::builder().url(url(&[oracle.port])));
    let held = client.lock("a").ttl(LONGEST).acquire_blocking().unwrap();
    eventually("it is replicated", PATIENCE, || pair.replica.command(&["EXISTS", "a"]).int() == 1);
    pair.replica.command(&["REPLICAOF", "NO", "ONE"]);
    oracle.name(pair.replica.port(), 2);
    eventually("it looks", 3 * PATIENCE, || events.count(EventKind::FailedOver) == 1);
    assert!(held.is_valid());
}

#[test]
fn a_client_that_is_closed_leaves_no_connection_to_a_sentinel() {
    let node = RealServer::start();
    let real = sentinel(node.port(), 1).start();
    let ours = || real.command(&["CLIENT", "LIST"]).text().unwrap().matches("sub=1").count();
    let client = Client::open(url(&[real.port()])).unwrap();
    let held = client.lock("a").acquire_blocking().unwrap();
    eventually("it listens", PATIENCE, || ours() == 1);
    client.close().blocking().unwrap();
    eventually("it is gone", PATIENCE, || ours() == 0);
    assert!(!held.is_valid());
}
