//! Handshakes: the questions, and the text for a server that refuses them, without a password in it.

use std::time::Duration;

use super::*;
use crate::options::ClientOptions;
use crate::server::redis::settings::name;

fn settings(url: &str) -> Settings {
    let target = Target::parse(url, &ClientOptions::default()).unwrap();
    let timeout = Duration::from_secs(1);
    Settings { target, name: name(None), quorum_config: None, connect_timeout: timeout, response_timeout: timeout }
}

/// A handshake by the settings of a URL.
fn begun(url: &str) -> Handshake {
    Handshake::begin(&Arc::new(settings(url)), Role::Operations, Tick::NEVER)
}

/// Gives the handshake bytes.
fn said(handshake: &mut Handshake, bytes: &str) -> Option<Result<Peer, Failure>> {
    handshake.buffers.room()[..bytes.len()].copy_from_slice(bytes.as_bytes());
    handshake.buffers.replies.filled(bytes.len());
    handshake.read()
}

/// The failure that these answers to the handshake give.
fn failed(url: &str, answers: &[&str]) -> Failure {
    let mut handshake = begun(url);
    for answer in answers {
        match said(&mut handshake, &format!("{answer}\r\n")) {
            Some(Err(failure)) => return failure,
            Some(Ok(_)) => panic!("{url} was let in"),
            None => {}
        }
    }
    handshake.closed(None)
}

#[test]
fn a_sentinel_is_found_where_no_scripts_are_known() {
    let unknown = "+OK\r\n-ERR unknown command 'EVAL', with args beginning with: '-- Asks'\r\n";
    let info = |mode: &str| {
        let text = format!("redis_mode:{mode}\r\n");
        format!("${}\r\n{text}\r\n", text.len())
    };
    for (answer, kind) in [(info("sentinel"), FailureKind::Mismatch), (info("standalone"), FailureKind::Denied)] {
        let mut handshake = begun("redis://localhost");
        assert!(handshake.buffers.unwritten().windows(7).any(|word| word == b"SETNAME"));
        handshake.buffers.wrote(handshake.buffers.unwritten().len());
        assert!(said(&mut handshake, unknown).is_none());
        assert_eq!(handshake.buffers.unwritten(), b"*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n");
        assert_eq!(said(&mut handshake, &answer).unwrap().unwrap_err().kind, kind);
    }
    let mut handshake = begun("redis://localhost");
    assert!(said(&mut handshake, unknown).is_none());
    assert_eq!(handshake.closed(None).kind, FailureKind::Denied, "it says no more");
}

#[test]
fn more_than_was_asked_for_is_no_server() {
    let mut handshake = begun("redis://localhost");
    let greeted = "*5\r\n$2\r\nok\r\n:1\r\n:0\r\n$-1\r\n:-2\r\n";
    let failure = said(&mut handshake, &format!("+OK\r\n{greeted}+OK\r\n")).unwrap().unwrap_err();
    assert_eq!((failure.kind, &*failure.message), (FailureKind::Protocol, "more was answered than had been asked"));
    assert_eq!(said(&mut begun("redis://localhost"), &format!("+OK\r\n{greeted}")), Some(Ok(Peer::default())));
}

#[test]
fn only_what_is_needed_is_said_where_one_only_listens() {
    let settings = Arc::new(settings("redis://ann:hunter2@localhost/3"));
    let mut handshake = Handshake::begin(&settings, Role::Listening, Tick::NEVER);
    let asked = String::from_utf8_lossy(handshake.buffers.unwritten()).into_owned();
    assert!(asked.contains("AUTH") && asked.contains("SETNAME"), "{asked}");
    assert!(!asked.contains("SELECT") && !asked.contains("EVAL"), "{asked}");
    assert_eq!(said(&mut handshake, "+OK\r\n+OK\r\n"), Some(Ok(Peer::default())));
}

#[test]
fn a_password_that_the_server_repeats_is_not_shown() {
    for password in ["hunter2hunter2hunter2", "hunter2", "hu", "PASSWORD", "geheim\u{1b}x"] {
        let encoded = password.replace('\u{1b}', "%1B");
        let url = format!("redis://ann:{encoded}@localhost/3");
        let cut = &password[..password.len().min(6)];
        for answers in [
            vec![format!("-ERR unknown command 'AUTH', with args beginning with: 'ann' '{password}' ")],
            vec![format!("-ERR unknown command `renamed`, with args beginning with: `ann` `{cut}")],
            vec![format!("-{password} is no password")],
            vec![format!("-WRONGPASS {password} is wrong")],
            vec![format!("-ERR invalid password {password}")],
            vec![format!("-LOADING {password}")],
            vec!["+OK".to_owned(), format!("-ERR unknown command 'AUTH' 'ann' '{password}'")],
            vec!["+OK".to_owned(), "+OK".to_owned(), format!("-ERR '{password}'"), "HTTP".to_owned()],
            vec!["+OK".to_owned(), "+OK".to_owned(), "+OK".to_owned(), format!("-ERR unknown command 'x' '{password}'")],
        ] {
            let failure = failed(&url, &answers.iter().map(String::as_str).collect::<Vec<_>>());
            let told = failure.message.replace("password", "");
            assert!(!told.contains(cut), "{answers:?} became {failure}");
        }
    }
}

#[test]
fn why_the_first_words_were_refused_is_reported_all_the_same() {
    for (answers, kind, words) in [
        (
            &["-WRONGPASS invalid username-password pair or user is disabled."][..],
            FailureKind::Denied,
            "user or password (WRONGPASS)",
        ),
        (&["-ERR invalid password"], FailureKind::Denied, "user or password (ERR)"),
        (&["-ERR AUTH <password> called without any password configured"], FailureKind::Denied, "asks for none (ERR)"),
        (&["-ERR max number of clients reached"], FailureKind::Other, "ERR max number of clients reached"),
        (&["-LOADING Redis is loading"], FailureKind::Loading, "(LOADING)"),
        (&["+OK", "-ERR DB index is out of range"], FailureKind::Other, "database 3 can't be used: ERR DB index is out of range"),
        (&["+OK", "+OK", "+OK", "-LOADING Redis is loading"], FailureKind::Loading, "LOADING Redis is loading"),
        (&["+OK", "+OK", "+OK", "-MOVED 866 127.0.0.1:7001"], FailureKind::Mismatch, "redis+cluster:// is not supported yet"),
        (
            &["+OK", "+OK", "+OK", "-ERR unknown command 'EVAL', with args beginning with: '-- Asks'"],
            FailureKind::Denied,
            "(ERR unknown command 'EVAL')",
        ),
    ] {
        let failure = failed("redis://ann:hunter2@localhost/3", answers);
        assert_eq!((failure.kind, failure.maybe_applied), (kind, false), "{failure}");
        assert!(failure.message.contains(words), "{failure}");
    }
}

#[test]
fn a_server_from_version_7_on_gets_scripts_with_a_header() {
    for (version, expected) in [(0, false), (0x0006_02ff, false), (0x0007_0000, true), (0x0008_0203, true)] {
        let greeted = format!("+OK\r\n*6\r\n$2\r\nok\r\n:1\r\n:0\r\n$-1\r\n:-2\r\n:{version}\r\n");
        let peer = said(&mut begun("redis://localhost"), &greeted).unwrap().unwrap();
        assert_eq!(peer, Peer { run_id: None, reads_header: expected }, "{version:x}");
    }
    let quorum_config = Some(crate::op::QuorumConfig { servers: 3, max_ttl_ms: 60_000 });
    let of_quorum = || Settings { quorum_config, ..settings("redis://localhost") };
    for (version, expected) in [("6.2.14", false), ("7.0.0", true), ("7.2.4", true), ("10.0.1", true), ("", false)] {
        let mut handshake = Handshake::begin(&Arc::new(of_quorum()), Role::Operations, Tick::NEVER);
        let info = format!("redis_version:{version}\r\nrun_id:c0ffee\r\n");
        let peer = said(&mut handshake, &format!("+OK\r\n${}\r\n{info}\r\n", info.len())).unwrap().unwrap();
        assert_eq!(peer, Peer { run_id: Some("c0ffee".into()), reads_header: expected }, "{version}");
    }
}
