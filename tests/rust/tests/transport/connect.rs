//! Connections that fail: every reason ends in time, with the right error.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it can't go on")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::peer::tls::terminate;
use crate::peer::{Host, PATIENCE, Subject, acquire, release};
use locktender::ClientOptions;
use locktender::internals::clock::Tick;
use locktender::internals::redis::{RedisServer, ServerState};
use locktender::op::FailureKind;
use locktender::server::Server;
use locktender_tests::{RealServer, ServerOptions, certificate};

/// The connect timeout where a test waits for it.
const CONNECT: Duration = Duration::from_millis(1_000);

/// Whose connect timeout is not what ends it.
fn options() -> ClientOptions {
    let mut options = ClientOptions::default();
    options.connect_timeout = PATIENCE;
    options
}

fn hasty() -> ClientOptions {
    let mut options = options();
    options.connect_timeout = CONNECT;
    options
}

/// The kind of the failure of one acquire, which was certainly not applied.
fn fails(url: &str, options: &ClientOptions) -> (FailureKind, String) {
    let subject = Subject::with(url, options, PATIENCE, None);
    let begun = Instant::now();
    let failure = subject.ask(acquire("a", "b")).unwrap_err();
    assert!(begun.elapsed() < Duration::from_millis(2_300), "{failure} took {:?}", begun.elapsed());
    assert!(!failure.maybe_applied, "{failure}");
    assert!(!failure.message.contains("hunter2"), "{failure}");
    (failure.kind, failure.message)
}

/// A listener that does this with every connection.
fn listener(scheme: &str, serve: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("{scheme}://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            serve(stream.unwrap());
        }
    });
    url
}

/// Reads the first words and answers them with these bytes, then hangs up.
fn answering(bytes: &'static [u8]) -> impl Fn(TcpStream) + Send {
    move |mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(bytes);
    }
}

#[test]
fn a_refused_port() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(fails(&format!("redis://{free}"), &options()).0, FailureKind::Refused);
    assert_eq!(fails("unix:///no/such/socket", &options()).0, FailureKind::Refused);
}

#[test]
fn a_name_that_does_not_resolve() {
    assert_eq!(fails("redis://no-such-host.invalid", &options()).0, FailureKind::Dns);
}

#[test]
fn a_silent_port() {
    let held = std::sync::Mutex::new(Vec::new());
    let keep = move |stream| held.lock().unwrap().push(stream);
    assert_eq!(fails(&listener("redis", keep), &hasty()).0, FailureKind::Timeout);
}

#[test]
fn a_silent_port_that_should_speak_tls() {
    let held = std::sync::Mutex::new(Vec::new());
    let keep = move |stream| held.lock().unwrap().push(stream);
    let mut options = hasty();
    options.tls_ca = Some(certificate("ca.pem").display().to_string());
    assert_eq!(fails(&listener("rediss", keep), &options).0, FailureKind::Tls);
}

#[test]
fn a_port_that_is_no_redis() {
    for bytes in [&b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"[..], b"SSH-2.0-OpenSSH_9.9\r\n"] {
        let (kind, message) = fails(&listener("redis", answering(bytes)), &options());
        assert_eq!(kind, FailureKind::Protocol, "{message}");
    }
    let (kind, message) = fails(&listener("redis", answering(b"")), &options());
    assert_eq!(kind, FailureKind::Disconnected, "{message}");
}

#[test]
fn a_server_with_too_many_clients_is_no_wrong_password() {
    let url = listener("redis", answering(b"-ERR max number of clients reached\r\n"));
    for url in [url.clone(), url.replace("://", "://:hunter2@")] {
        let (kind, message) = fails(&url, &options());
        assert_eq!(kind, FailureKind::Other, "{message}");
        assert!(message.contains("max number of clients"), "{message}");
    }
}

#[test]
fn a_missing_or_wrong_password_is_denied_and_the_right_one_is_not() {
    let server = ServerOptions::new().password("s3cret").start();
    let bare = format!("redis://127.0.0.1:{}", server.port());
    assert_eq!(fails(&bare, &options()).0, FailureKind::Denied);
    assert_eq!(fails(&bare.replace("://", "://:hunter2@"), &options()).0, FailureKind::Denied);
    assert_eq!(fails(&format!("unix://{}?pass=hunter2", server.socket().display()), &options()).0, FailureKind::Denied);
    Subject::new(&server.url(), PATIENCE).ask(acquire("a", "b")).unwrap();
    Subject::new(&server.unix_url(), PATIENCE).ask(release("a", "b")).unwrap();
}

#[test]
fn a_password_nobody_asked_for_is_denied() {
    let server = ServerOptions::new().start();
    let url = format!("redis://:hunter2@127.0.0.1:{}", server.port());
    assert_eq!(fails(&url, &options()).0, FailureKind::Denied);
}

#[test]
fn a_user_with_no_right_to_what_is_optional_can_lock() {
    let server = ServerOptions::new().user("ann", "s3cret", "~* &* +@all -client -info").start();
    let url = format!("redis://ann:s3cret@127.0.0.1:{}", server.port());
    Subject::new(&url, PATIENCE).ask(acquire("a", "b")).unwrap();
}

#[test]
fn the_database_of_the_url_is_used_and_one_that_does_not_exist_is_named() {
    let server = RealServer::start();
    Subject::new(&format!("{}/3", server.url()), PATIENCE).ask(acquire("a", "b")).unwrap();
    Subject::new(&format!("{}?db=4", server.unix_url()), PATIENCE).ask(acquire("a", "b")).unwrap();
    let mut connection = server.connection().unwrap();
    for (database, keys) in [("0", 0), ("3", 1), ("4", 1)] {
        connection.command(&["SELECT", database]).unwrap();
        assert_eq!(connection.command(&["EXISTS", "a"]).unwrap().int(), keys, "database {database}");
    }
    let (_, message) = fails(&format!("{}/9999", server.url()), &options());
    assert!(message.contains("database 9999"), "{message}");
}

#[test]
fn the_connection_says_whose_it_is() {
    let server = RealServer::start();
    let subject = Subject::new(&server.url(), PATIENCE);
    subject.ask(acquire("a", "b")).unwrap();
    let clients = server.command(&["CLIENT", "LIST"]).text().unwrap();
    assert!(clients.contains("name=locktender"), "{clients}");
}

#[test]
fn certificates_are_checked() {
    let file = |name: &str| Some(certificate(name).display().to_string());
    let server = RealServer::start();
    let good = terminate(server.port(), "server", false);
    let mut trusting = options();
    trusting.tls_ca = file("ca.pem");
    for url in [good.clone(), good.replace("localhost", "127.0.0.1")] {
        Subject::with(&url, &trusting, PATIENCE, None).ask(release("a", "b")).unwrap();
    }
    let mut strange = trusting.clone();
    strange.tls_ca = file("stranger.pem");
    assert_eq!(fails(&good, &strange).0, FailureKind::Tls);
    for bad in ["elsewhere", "expired"] {
        let (kind, message) = fails(&terminate(server.port(), bad, false), &trusting);
        assert_eq!(kind, FailureKind::Tls, "{bad}: {message}");
    }
    // A server that doesn't speak TLS waits for the end of a line, but answers a command.
    trusting.connect_timeout = CONNECT;
    assert_eq!(fails(&server.url().replace("redis:", "rediss:"), &trusting).0, FailureKind::Mismatch);
}

#[test]
fn a_client_certificate_is_sent_where_it_is_asked_for() {
    let file = |name: &str| Some(certificate(name).display().to_string());
    let server = RealServer::start();
    let url = terminate(server.port(), "server", true);
    let mut options = options();
    options.tls_ca = file("ca.pem");
    let (kind, message) = fails(&url, &options);
    assert_eq!(kind, FailureKind::Tls, "{message}");
    (options.tls_cert, options.tls_key) = (file("client.pem"), file("client.key"));
    Subject::with(&url, &options, PATIENCE, None).ask(acquire("a", "b")).unwrap();
}

#[test]
fn a_server_that_cannot_be_reached_answers_at_once_while_it_is_not_worth_another_try() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let subject = Subject::new(&format!("redis://{free}"), PATIENCE);
    for _ in 0..1_000 {
        let failure = subject.ask(acquire("a", "b")).unwrap_err();
        assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::Refused, false));
    }
    let states: Vec<_> = subject.states.try_iter().collect();
    assert!(matches!(&states[..], [ServerState::Failed(failure)] if failure.kind == FailureKind::Refused), "{states:?}");
}

#[test]
fn nothing_is_connected_before_it_is_needed_and_nothing_shown_has_the_password() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("redis://ann:hunter2@{address}/1");
    let subject = Subject::new(&url, PATIENCE);
    assert_eq!(subject.server.address(), format!("redis://{address}/1"));
    assert!(!format!("{:?}", subject.server).contains("hunter2"));
    let error = RedisServer::new("redis://ann:hunter2@host/one", &options(), PATIENCE, None, Host::start().0, |_| ());
    assert!(!format!("{:?}", error.unwrap_err()).contains("hunter2"));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "it connected");
}

#[test]
fn a_release_waits_for_a_dead_server_no_longer_than_its_deadline() {
    let mut server = RealServer::start();
    let subject = Subject::new(&server.url(), PATIENCE);
    subject.ask(acquire("a", "b")).unwrap();
    server.kill();
    let begun = Instant::now();
    let failure = subject.submit_until(release("a", "b"), Tick::now().after(CONNECT)).wait().unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Refused | FailureKind::Disconnected), "{failure}: says why");
    assert!(begun.elapsed() < Duration::from_millis(2_300));
}
