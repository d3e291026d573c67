//! A server that dies, restarts, is paused or forgets its scripts.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it can't go on")]

use std::time::Duration;

use crate::peer::{PATIENCE, Subject, acquire, extend, release};
use locktender::internals::redis::ServerState;
use locktender::op::{FailureKind, Op, QuorumConfig};
use locktender_tests::{Reply, ServerOptions};

#[test]
fn releases_queued_while_the_server_is_down_are_done_when_it_is_back_and_acquires_are_not() {
    let mut server = ServerOptions::new().persistent().start();
    let subject = Subject::new(&server.url(), PATIENCE);
    for name in ["a", "b"] {
        subject.ask(acquire(name, "owner")).unwrap();
    }
    server.kill();
    let releases = [subject.submit(release("a", "owner")), subject.submit(release("b", "owner"))];
    // Whether it still finds the old connection or already none: it is not done later.
    let failure = subject.ask(acquire("c", "owner")).unwrap_err();
    assert!(matches!(failure.kind, FailureKind::Refused | FailureKind::Disconnected), "{failure}");
    server.restart();
    for release in releases {
        release.wait().unwrap();
    }
    assert_eq!(server.command(&["EXISTS", "a", "b", "c"]), Reply::Int(0));
    let states: Vec<_> = subject.states.try_iter().collect();
    let [ServerState::Failed(_), ServerState::Recovered, ServerState::FailedOver(new)] = &states[..] else {
        panic!("{states:?}")
    };
    assert!(new.old_replid != new.new_replid && new.address == Some(format!("127.0.0.1:{}", server.port())), "{new:?}");
    subject.ask(acquire("c", "owner")).unwrap();
}

#[test]
fn a_connection_that_the_server_closed_while_idle_is_replaced_without_an_error() {
    let server = ServerOptions::new().start();
    let subject = Subject::new(&server.url(), PATIENCE);
    subject.ask(acquire("a", "owner")).unwrap();
    let first = server.command(&["CLIENT", "LIST"]).text().unwrap();
    let id = |list: &str| {
        let line = list.lines().find(|line| line.contains("name=locktender")).map(str::to_owned);
        line.and_then(|line| line.strip_prefix("id=").and_then(|rest| rest.split(' ').next()).map(str::to_owned))
    };
    let first = id(&first).expect("it is connected");
    server.command(&["CLIENT", "KILL", "ID", &first]);
    // Whether the hang-up is seen before the release is sent or after, the release is done.
    let outcome = subject.ask(release("a", "owner"));
    assert!(outcome.is_ok(), "{outcome:?}");
    let second = id(&server.command(&["CLIENT", "LIST"]).text().unwrap()).expect("it is connected");
    assert_ne!(first, second);
}

#[test]
fn scripts_may_be_flushed_before_any_operation() {
    let server = ServerOptions::new().start();
    let subject = Subject::new(&server.url(), PATIENCE);
    let fence = std::cell::Cell::new(0);
    for _ in 0..3 {
        server.command(&["SCRIPT", "FLUSH"]);
        fence.set(subject.ask(acquire("a", "owner")).unwrap().fence);
        server.command(&["SCRIPT", "FLUSH"]);
        subject.ask(extend("a", "owner", fence.get())).unwrap();
        server.command(&["SCRIPT", "FLUSH"]);
        subject.ask(release("a", "owner")).unwrap();
        assert_eq!(server.command(&["EXISTS", "a"]), Reply::Int(0));
    }
}

#[test]
fn a_server_that_stands_still_is_left_and_found_again() {
    let server = ServerOptions::new().start();
    let subject = Subject::new(&server.url(), Duration::from_millis(1_000));
    subject.ask(acquire("a", "owner")).unwrap();
    server.pause();
    let failure = subject.ask(extend("a", "owner", 1)).unwrap_err();
    assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::Timeout, true));
    let waiting = subject.submit(release("a", "owner"));
    server.resume();
    waiting.wait().unwrap();
    assert_eq!(server.command(&["EXISTS", "a"]), Reply::Int(0));
}

#[test]
fn a_server_of_a_quorum_connects_without_the_right_to_ask_for_its_run_id() {
    let server = ServerOptions::new().user("ann", "s3cret", "~* &* +@all -info").start();
    let url = format!("redis://ann:s3cret@127.0.0.1:{}", server.port());
    let quorum_config = QuorumConfig { servers: 3, max_ttl_ms: 60_000 };
    let subject = Subject::with(&url, &Default::default(), PATIENCE, Some(quorum_config));
    subject.ask(release("a", "owner")).unwrap();
}

#[test]
fn a_server_of_a_quorum_is_refused_by_a_client_that_has_it_alone() {
    let server = ServerOptions::new().start();
    let quorum_config = QuorumConfig { servers: 3, max_ttl_ms: 60_000 };
    let member = Subject::with(&server.url(), &Default::default(), PATIENCE, Some(quorum_config));
    member.ask(Op::Trust { quorum_config }).unwrap();
    let alone = Subject::new(&server.url(), PATIENCE);
    for op in [acquire("a", "owner"), release("a", "owner")] {
        let failure = alone.ask(op).unwrap_err();
        assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::Mismatch, false));
        assert!(failure.message.contains("one server") && failure.message.contains('3'), "{failure}");
    }
}
