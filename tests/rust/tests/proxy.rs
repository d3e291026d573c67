//! The proxy fixture: it does what it says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use locktender_tests::{Connection, Proxy, RealServer, Reply, eventually};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

fn start() -> (RealServer, Proxy) {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    (server, proxy)
}

fn works(connection: &mut Connection) -> bool {
    connection.command(&["PING"]).is_ok_and(|reply| reply == Reply::Status("PONG".to_owned()))
}

#[test]
fn everything_passes_and_is_counted() {
    let (_server, proxy) = start();
    let mut connection = proxy.connect();
    assert!(works(&mut connection) && works(&mut connection));
    assert_eq!((proxy.connections(), proxy.open_connections()), (1, 1));
    assert_eq!((proxy.client_reads(), proxy.client_bytes()), (2, 2 * 14));
}

#[test]
fn latency_delays_each_direction_but_not_the_rate() {
    let (_server, proxy) = start();
    let mut connection = proxy.connect();
    proxy.latency(Duration::from_millis(60), Duration::from_millis(40));
    let began = Instant::now();
    for _ in 0..20 {
        connection.send(&["PING"]).unwrap();
    }
    for _ in 0..20 {
        connection.reply().unwrap();
    }
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(100), "{took:?}");
    assert!(took < Duration::from_millis(1_000), "{took:?}");
}

#[test]
fn a_cut_closes_what_is_open_and_lets_in_what_is_new() {
    let (_server, proxy) = start();
    let mut connection = proxy.connect();
    assert!(works(&mut connection));
    proxy.cut();
    assert!(!works(&mut connection));
    assert!(works(&mut proxy.connect()));
}

#[test]
fn refusing_keeps_what_is_open_and_the_port() {
    let (_server, mut proxy) = start();
    let mut connection = proxy.connect();
    assert!(works(&mut connection));
    proxy.refuse();
    assert!(Connection::tcp(proxy.port()).is_err());
    assert!(works(&mut connection));
    proxy.accept();
    assert!(works(&mut proxy.connect()));
}

#[test]
fn a_black_hole_is_silent_until_it_ends() {
    let (server, proxy) = start();
    let mut connection = proxy.connect();
    assert!(works(&mut connection));
    proxy.black_hole();
    connection.send(&["SET", "a", "1"]).unwrap();
    let mut late = proxy.connect();
    late.send(&["PING"]).unwrap();
    while proxy.client_reads() < 3 {
        thread::yield_now();
    }
    assert_eq!(server.command(&["GET", "a"]), Reply::Nil);
    proxy.restore();
    assert_eq!(connection.reply().unwrap().text().as_deref(), Some("OK"));
    assert_eq!(late.reply().unwrap().text().as_deref(), Some("PONG"));
}

#[test]
fn answers_are_held_until_they_are_let_go_and_requests_are_not() {
    let (server, proxy) = start();
    let mut connection = proxy.connect();
    assert!(works(&mut connection));
    proxy.hold_answers();
    connection.send(&["SET", "a", "1"]).unwrap();
    let answered = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(connection.reply().unwrap().text().as_deref(), Some("OK"));
            answered.store(true, Ordering::SeqCst);
        });
        eventually("the server has the request", PATIENCE, || server.command(&["GET", "a"]) != Reply::Nil);
        // An answer that isn't held would be there by now.
        (0..100).for_each(|_| drop(server.command(&["PING"])));
        assert!(!answered.load(Ordering::SeqCst));
        proxy.let_answers_go();
    });
    assert!(works(&mut connection));
}

#[test]
fn a_black_hole_can_be_cut() {
    let (_server, proxy) = start();
    let mut connection = proxy.connect();
    assert!(works(&mut connection));
    proxy.black_hole();
    connection.send(&["PING"]).unwrap();
    proxy.cut();
    assert!(connection.reply().is_err());
}

#[test]
fn cut_after_apply_loses_the_answer_but_not_the_deed() {
    let (server, proxy) = start();
    let mut connection = proxy.connect();
    proxy.cut_after_apply(1, "set");
    assert!(works(&mut connection));
    assert!(connection.command(&["SET", "a", "1"]).is_err());
    assert_eq!(server.command(&["GET", "a"]).text().as_deref(), Some("1"));
    assert_eq!(proxy.faults_left(), 0);
    assert!(proxy.connect().command(&["SET", "a", "2"]).is_ok());
}

#[test]
fn cut_before_apply_loses_the_deed() {
    let (server, proxy) = start();
    let mut connection = proxy.connect();
    proxy.cut_before_apply(2, "");
    assert!(connection.command(&["SET", "a", "1"]).is_err());
    assert_eq!(proxy.faults_left(), 1);
    assert!(proxy.connect().command(&["SET", "a", "1"]).is_err());
    assert_eq!(server.command(&["GET", "a"]), Reply::Nil);
}

#[test]
fn silence_after_apply_leaves_the_connection_open() {
    let (server, proxy) = start();
    let mut connection = proxy.connect();
    proxy.silence_after_apply(1, "SET");
    connection.send(&["SET", "a", "1"]).unwrap();
    while server.command(&["GET", "a"]) == Reply::Nil {
        thread::yield_now();
    }
    assert_eq!(proxy.open_connections(), 1);
    proxy.cut();
    assert!(connection.reply().is_err());
}

#[test]
fn a_server_that_is_gone_closes_the_connection() {
    let (mut server, proxy) = start();
    server.kill();
    assert!(!works(&mut proxy.connect()));
    server.restart();
    assert!(works(&mut proxy.connect()));
}
