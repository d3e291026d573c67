//! Handshakes: the questions, and the text for a server that refuses them, without a password in it.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::options::ClientOptions;
use crate::server::redis::settings::name;
use crate::server::redis::url::Target;

fn settings(url: &str) -> Settings {
    let target = Target::parse(url, &ClientOptions::default()).unwrap();
    let timeout = Duration::from_secs(1);
    Settings {
        target,
        name: name(None),
        quorum_config: None,
        connect_timeout: timeout,
        response_timeout: timeout,
        replicas: None,
        answered: AtomicBool::default(),
        has_no_transactions: AtomicBool::default(),
        provided: None,
        in_cluster: false,
        callers_runtime: true,
    }
}

/// A handshake by the settings of a URL.
fn begun(url: &str) -> Handshake {
    Handshake::begin(&Arc::new(settings(url)), Tick::NEVER)
}

/// Gives the handshake bytes.
fn after_reply(handshake: &mut Handshake, bytes: &str) -> Option<Result<HandshakeFacts, Failure>> {
    handshake.buffers.room()[..bytes.len()].copy_from_slice(bytes.as_bytes());
    handshake.buffers.replies.filled(bytes.len());
    handshake.read()
}

/// The failure that these answers to the handshake give.
fn failed(url: &str, answers: &[&str]) -> Failure {
    let mut handshake = begun(url);
    for answer in answers {
        match after_reply(&mut handshake, &format!("{answer}\r\n")) {
            Some(Err(failure)) => return failure,
            Some(Ok(_)) => panic!("{url} was let in"),
            None => {}
        }
    }
    handshake.closed(None)
}

/// The answer to `INFO` with one line.
fn info(line: &str) -> String {
    format!("${}\r\n{line}\r\n\r\n", line.len() + 2)
}

/// The answers to the empty transaction.
const UNTRIED: &str = "-NOPERM\r\n-NOPERM\r\n";

#[test]
fn a_sentinel_is_found_by_its_mode_and_not_by_what_it_lacks() {
    let unknown = |what: &str| format!("-ERR unknown command '{what}', with args beginning with: '3'\r\n");
    for (mode, kind) in [("sentinel", FailureKind::Mismatch), ("standalone", FailureKind::Denied)] {
        let mut handshake = begun("redis://localhost");
        let answers = info(&format!("redis_mode:{mode}")) + &info("role:master") + "+OK\r\n" + &unknown("EVAL") + UNTRIED;
        assert_eq!(after_reply(&mut handshake, &answers).unwrap().unwrap_err().kind, kind);
    }
    let mut with_database = begun("redis://localhost/3");
    let answers = info("redis_mode:sentinel") + &unknown("INFO") + &unknown("SELECT") + "+OK\r\n" + &unknown("EVAL") + UNTRIED;
    assert_eq!(after_reply(&mut with_database, &answers).unwrap().unwrap_err().kind, FailureKind::Mismatch);
}

#[test]
fn a_replica_is_refused_and_a_server_that_shows_no_role_is_not() {
    let marker_reply = "+OK\r\n*5\r\n$2\r\nok\r\n:1\r\n:0\r\n$-1\r\n:-2\r\n-NOPERM\r\n-NOPERM\r\n";
    for (replication, expected) in [
        (info("role:slave"), Err(FailureKind::ReadOnly)),
        (info("role:master"), Ok(true)),
        ("-NOPERM this user has no permissions to run the 'info' command\r\n".to_owned(), Ok(false)),
        ("-ERR unknown command 'INFO'\r\n".to_owned(), Ok(false)),
        ("-LOADING Redis is loading the dataset in memory\r\n".to_owned(), Err(FailureKind::Loading)),
    ] {
        let answers = info("redis_version:7.2.4") + &replication + marker_reply;
        let assessed = after_reply(&mut begun("redis://localhost"), &answers).unwrap();
        assert_eq!(assessed.map(|facts| facts.is_primary).map_err(|failure| failure.kind), expected, "{replication}");
    }
}

#[test]
fn more_than_was_asked_for_is_no_server() {
    let mut handshake = begun("redis://localhost");
    let marker_reply = "-NOPERM\r\n-NOPERM\r\n+OK\r\n*5\r\n$2\r\nok\r\n:1\r\n:0\r\n$-1\r\n:-2\r\n-NOPERM\r\n-NOPERM\r\n";
    let failure = after_reply(&mut handshake, &format!("{marker_reply}+OK\r\n")).unwrap().unwrap_err();
    assert_eq!(
        (failure.kind, &*failure.message),
        (FailureKind::Protocol, "the server sent more replies than there were requests")
    );
    let expected = HandshakeFacts { time_us: Some(1), denies_transactions: true, ..HandshakeFacts::default() };
    assert_eq!(after_reply(&mut begun("redis://localhost"), marker_reply), Some(Ok(expected)));
}

#[test]
fn only_what_is_needed_is_said_where_one_only_listens() {
    let settings = Arc::new(settings("redis://ann:hunter2@localhost/3"));
    let mut handshake = Handshake::introduce(&settings);
    let asked = String::from_utf8_lossy(handshake.buffers.unwritten()).into_owned();
    assert!(asked.contains("AUTH") && asked.contains("SETNAME"), "{asked}");
    assert!(!asked.contains("SELECT") && !asked.contains("EVAL") && !asked.contains("INFO"), "{asked}");
    assert_eq!(after_reply(&mut handshake, "+OK\r\n+OK\r\n"), Some(Ok(HandshakeFacts::default())));
}

#[test]
fn a_password_that_the_server_repeats_is_not_shown() {
    for password in ["hunter2hunter2hunter2", "hunter2", "hu", "PASSWORD", "geheim\u{1b}x"] {
        let encoded = password.replace('\u{1b}', "%1B");
        let url = format!("redis://ann:{encoded}@localhost/3");
        let ok = |count: usize| vec!["+OK"; count].join("\r\n");
        let cut = &password[..password.len().min(6)];
        for answers in [
            vec![format!("-ERR unknown command 'AUTH', with args beginning with: 'ann' '{password}' ")],
            vec![format!("-ERR unknown command `renamed`, with args beginning with: `ann` `{cut}")],
            vec![format!("-{password} is no password")],
            vec![format!("-WRONGPASS {password} is wrong")],
            vec![format!("-ERR invalid password {password}")],
            vec![format!("-LOADING {password}")],
            vec!["+OK".to_owned(), format!("-LOADING '{password}'")],
            vec![ok(3), format!("-ERR unknown command 'AUTH' 'ann' '{password}'")],
            vec![ok(4), format!("-ERR '{password}'"), "HTTP".to_owned()],
            vec![ok(5), format!("-ERR unknown command 'x' '{password}'")],
        ] {
            let failure = failed(&url, &answers.iter().map(String::as_str).collect::<Vec<_>>());
            let message = failure.message.replace("password", "");
            assert!(!message.contains(cut), "{answers:?} became {failure}");
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
        (
            &["+OK", "+OK", "+OK", "-ERR DB index is out of range"],
            FailureKind::Mismatch,
            "database 3 can't be used: ERR DB index is out of range; put the number of another one into the URL",
        ),
        (&["+OK", "+OK", "+OK", "-BUSY Redis is busy"], FailureKind::Other, "database 3 can't be used: BUSY"),
        (&["+OK", "+OK", "+OK", "-ERR max number of clients reached"], FailureKind::Other, "max number of clients"),
        (&["+OK", "+OK", "+OK", "+OK", "+OK", "-LOADING Redis is loading"], FailureKind::Loading, "LOADING Redis is loading"),
        (&["+OK", "+OK", "+OK", "+OK", "+OK", "-MOVED 866 127.0.0.1:7001"], FailureKind::Mismatch, "write redis+cluster://"),
        (
            &["+OK", "+OK", "+OK", "+OK", "+OK", "-ERR unknown command 'EVAL', with args beginning with: '-- Asks'"],
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
fn only_a_server_that_never_answered_is_asked_whether_it_speaks_tls() {
    let silent = failed("redis://localhost", &[]);
    assert!(silent.kind == FailureKind::Disconnected && silent.message.contains("does that port speak TLS?"), "{silent}");
    let known = failed("redis://localhost", &["+OK"]);
    assert_eq!(known.kind, FailureKind::Disconnected);
    assert!(known.message.starts_with("a new connection broke") && !known.message.contains("TLS"), "{known}");
}

#[test]
fn a_server_that_permits_no_info_shows_its_version_all_the_same() {
    for (version, expected) in [(0, false), (0x0006_02ff, false), (0x0007_0000, true), (0x0008_0203, true)] {
        let marker_reply = format!(
            "-NOPERM\r\n-NOPERM\r\n+OK\r\n*6\r\n$2\r\nok\r\n:1\r\n:0\r\n$-1\r\n:-2\r\n:{version}\r\n-NOPERM\r\n-NOPERM\r\n"
        );
        let facts = after_reply(&mut begun("redis://localhost"), &marker_reply).unwrap().unwrap();
        assert_eq!(facts.is_since_7, expected, "{version:x}");
    }
}
