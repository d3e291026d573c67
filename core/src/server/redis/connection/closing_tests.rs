//! Closing: the operations that a connection still sends after a close, and those that it undoes.

use super::super::staged::{ENTRY, GREETED, TIMEOUT, Test, acquire, keys, kind, release, released};
use crate::op::{FailureKind, Op};
use crate::server::redis::connection::effect::Role;
use crate::server::redis::connection::input::Input;

#[test]
fn a_close_undoes_what_was_sent_and_not_answered() {
    let mut test = Test::connected();
    let (acquired, _inspected) = (test.submit(acquire()), test.submit(Op::inspect(keys())));
    test.wrote();
    test.bring(Input::Close);
    assert_eq!(test.sent(), [format!("release ours {ENTRY}")], "behind the acquire, with the waiter that it enqueued");
    assert!(!test.connection.is_over(), "it has a moment to leave");
    assert_eq!((test.effects(), kind(&acquired)), (vec!["complete"; 2], Some((FailureKind::Closed, true))));
    assert_eq!(test.until_due(), TIMEOUT);
    assert!(test.connection.is_over());
}

#[test]
fn a_close_undoes_without_asking_whether_the_server_knows_the_script() {
    let mut test = Test::connected();
    let _received = (test.submit(acquire()), test.submit(acquire()));
    test.wrote();
    test.bring(Input::Close);
    let written = test.wrote();
    let commands: Vec<_> = written.lines().filter(|line| line.starts_with("EVAL")).collect();
    assert_eq!(commands, ["EVAL", "EVALSHA"], "one text is enough for both");
}

#[test]
fn a_close_undoes_what_was_cancelled_before() {
    let mut test = Test::connected();
    let _received = (test.submit(release("theirs", None)), test.submit(acquire()));
    test.wrote();
    // Something arrives, or the connection would count as dead.
    test.replies(released());
    test.after(TIMEOUT).bring(Input::Wake);
    assert_eq!(test.effects(), ["complete", "failed", "complete"]);
    test.bring(Input::Close);
    assert_eq!(test.sent(), [format!("release ours {ENTRY}")]);
}

#[test]
fn a_release_that_waits_for_a_connection_leaves_after_a_close_too() {
    let mut test = Test::new();
    let _received = test.submit(release("ours", Some(ENTRY)));
    test.bring(Input::Close);
    assert!(!test.connection.is_over(), "not before there was an attempt to connect");
    test.connect();
    assert_eq!(test.sent(), [format!("release ours {ENTRY}")]);
    test.replies(released());
    assert_eq!(test.effects(), ["complete", "drop"]);
    assert!(test.connection.is_over());
}

#[test]
fn a_closed_connection_waits_for_nothing_but_releases() {
    let mut test = Test::new();
    let received = test.submit(acquire());
    test.bring(Input::Close);
    assert_eq!(test.effects(), ["open", "complete", "drop"], "nothing waits for a connection any more");
    assert!(test.connection.is_over());
    assert_eq!(kind(&received), Some((FailureKind::Closed, false)));
}

#[test]
fn a_release_whose_connection_breaks_during_a_close_is_sent_again() {
    let mut test = Test::connected();
    let _received = test.submit(release("ours", None));
    test.bring(Input::Close);
    test.wrote();
    test.bring(Input::Closed(Role::Operations, None));
    assert!(!test.connection.is_over());
    assert_eq!(test.effects(), ["failed", "drop", "open"]);
    test.bring(Input::Opened(Role::Operations));
    test.wrote();
    test.replies(GREETED);
    assert_eq!(test.sent(), ["release ours"]);
}
