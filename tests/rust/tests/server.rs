//! The server fixture: it does what it says.

use std::fs;
use std::path::Path;

use locktender_tests::{Binary, Connection, RealServer, Reply, ServerOptions};

fn ok() -> Reply {
    Reply::Status("OK".to_owned())
}

#[test]
fn every_version_starts_and_is_the_one_it_says() {
    for binary in Binary::all() {
        let server = ServerOptions::new().binary(&binary).start();
        let info = server.command(&["INFO", "server"]).text().unwrap();
        assert!(info.contains(&format!("{}_version:{}", binary.kind, binary.version)), "{info}");
        let mut connection = Connection::tcp(server.port()).unwrap();
        assert_eq!(connection.command(&["SET", "a", "1"]).unwrap(), ok());
        assert_eq!(server.command(&["GET", "a"]).text().as_deref(), Some("1"));
    }
}

#[test]
fn a_killed_server_refuses_and_comes_back_empty_on_the_same_port() {
    let mut server = RealServer::start();
    let url = server.url();
    server.command(&["SET", "a", "1"]);
    server.kill();
    assert!(Connection::tcp(server.port()).is_err());
    server.restart_empty();
    assert_eq!(server.url(), url);
    assert_eq!(server.command(&["GET", "a"]), Reply::Nil);
}

#[test]
fn a_persistent_server_keeps_its_data_over_a_restart() {
    let mut server = ServerOptions::new().persistent().start();
    server.command(&["SET", "a", "1"]);
    server.restart();
    assert_eq!(server.command(&["GET", "a"]).text().as_deref(), Some("1"));
    server.restart_empty();
    assert_eq!(server.command(&["GET", "a"]), Reply::Nil);
}

#[test]
fn a_paused_server_answers_after_it_was_resumed() {
    let server = RealServer::start();
    let mut connection = Connection::tcp(server.port()).unwrap();
    server.pause();
    connection.send(&["PING"]).unwrap();
    let status = format!("/proc/{}/stat", server.pid());
    if Path::new(&status).exists() {
        assert!(fs::read_to_string(status).unwrap().contains(") T "));
    }
    server.resume();
    assert_eq!(connection.reply().unwrap(), Reply::Status("PONG".to_owned()));
}

#[test]
fn passwords_and_users_are_asked_for() {
    let server = ServerOptions::new().password("secret").user("reader", "other", "~* +get").start();
    assert!(server.url().contains(":secret@"));
    assert_eq!(server.command(&["SET", "a", "1"]), ok());
    let mut connection = Connection::tcp(server.port()).unwrap();
    let refused = |reply| matches!(reply, Reply::Error(error) if error.starts_with("NO"));
    assert!(refused(connection.command(&["GET", "a"]).unwrap()));
    assert_eq!(connection.command(&["AUTH", "reader", "other"]).unwrap(), ok());
    assert_eq!(connection.command(&["GET", "a"]).unwrap().text().as_deref(), Some("1"));
    assert!(refused(connection.command(&["SET", "a", "2"]).unwrap()));
}

#[test]
fn a_tls_server_does_not_speak_in_clear() {
    let server = ServerOptions::new().tls("server").start();
    assert!(server.url().starts_with("rediss://"));
    assert!(Connection::tcp(server.port()).unwrap().command(&["PING"]).is_err());
    assert_eq!(server.command(&["PING"]).text().as_deref(), Some("PONG"));
}

#[test]
fn a_dropped_server_leaves_neither_process_nor_directory() {
    let server = RealServer::start();
    let (port, socket) = (server.port(), server.socket());
    assert!(socket.exists());
    drop(server);
    assert!(Connection::tcp(port).is_err());
    assert!(!socket.parent().unwrap().exists());
}
