//! A real server behind a network that fails.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it can't go on")]

use std::time::Duration;

use crate::peer::{PATIENCE, Subject, acquire, extend, release};
use locktender::op::FailureKind;
use locktender_tests::{Proxy, RealServer, Reply};

/// Waited for, and long enough for what has to be answered within it.
const SHORT: Duration = Duration::from_millis(1_000);

#[test]
fn link_cut_after_apply() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let subject = Subject::new(&proxy.url(), PATIENCE);
    subject.ask(acquire("warm", "owner")).unwrap();
    proxy.cut_after_apply(1, "lost-reply");
    let failure = subject.ask(acquire("a", "lost-reply")).unwrap_err();
    assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::Disconnected, true));
    assert_eq!(server.command(&["EXISTS", "a"]), Reply::Int(1), "it was applied");
    subject.ask(release("a", "lost-reply")).unwrap();
    assert_eq!(server.command(&["EXISTS", "a"]), Reply::Int(0));
}

#[test]
fn link_cut_before_and_after_the_release_was_applied() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let subject = Subject::new(&proxy.url(), PATIENCE);
    for cut in [Proxy::cut_before_apply, Proxy::cut_after_apply] {
        subject.ask(acquire("a", "owner")).unwrap();
        cut(&proxy, 1, "owner");
        subject.ask(release("a", "owner")).unwrap();
        assert_eq!(server.command(&["EXISTS", "a"]), Reply::Int(0));
    }
}

#[test]
fn half_open_link() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let subject = Subject::new(&proxy.url(), SHORT);
    let fence = subject.ask(acquire("a", "owner")).unwrap().fence;
    proxy.silence_after_apply(1, "");
    let failure = subject.ask(extend("a", "owner", fence)).unwrap_err();
    assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::Timeout, true));
    subject.ask(extend("a", "owner", fence)).unwrap();
    assert_eq!(proxy.connections(), 2);
}

#[test]
fn black_hole_and_back() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let subject = Subject::new(&proxy.url(), SHORT);
    subject.ask(acquire("a", "owner")).unwrap();
    proxy.black_hole();
    let failure = subject.ask(acquire("b", "owner")).unwrap_err();
    assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::Timeout, true));
    // From here on the release keeps the connection trying, with nobody asking.
    let waiting = subject.submit(release("a", "owner"));
    proxy.restore();
    waiting.wait().unwrap();
    assert_eq!(server.command(&["EXISTS", "a"]), Reply::Int(0));
}

#[test]
fn a_thousand_renewals_fifty_at_a_time_are_twenty_writes() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let subject = Subject::new(&proxy.url(), PATIENCE);
    let mut fences = Vec::new();
    for number in 0..50 {
        fences.push(subject.ask(acquire(&format!("lock-{number}"), "owner")).unwrap().fence);
    }
    let renewal = || fences.iter().enumerate().map(|(number, fence)| extend(&format!("lock-{number}"), "owner", *fence));
    // The first one may find the script unknown.
    subject.submit_together(renewal().collect()).into_iter().for_each(|pending| drop(pending.wait().unwrap()));
    let before = proxy.client_reads();
    for _ in 0..20 {
        subject.submit_together(renewal().collect()).into_iter().for_each(|pending| drop(pending.wait().unwrap()));
    }
    assert_eq!(proxy.client_reads() - before, 20);
}
