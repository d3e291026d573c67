//! Lingering: what may come late is undone on its own socket, for as long as that may be.

use super::super::staged::{ENTRY, TIMEOUT, Test, acquire, keys, release, released};
use super::LONGEST;
use crate::clock::Tick;
use crate::op::{LockOp, Op, Verb};
use crate::server::redis::connection::effect::Role;
use crate::server::redis::connection::failure::no_answer;
use crate::server::redis::connection::input::Input;

/// A connection whose socket was left with an acquire in it.
fn lingering() -> Test {
    let mut test = Test::connected();
    let _received = test.submit(acquire());
    test.wrote();
    assert_eq!(test.until_due(), TIMEOUT);
    assert_eq!(test.effects(), ["failed", "complete", "linger"]);
    test
}

fn leave(entry: &str) -> Op {
    Op::Lock(LockOp { keys: keys(), by: entry.into(), verb: Verb::Leave })
}

#[test]
fn an_acquire_without_an_answer_is_undone_behind_itself_and_once() {
    let cases = [
        (release("ours", None), vec!["release ours ".to_owned()]),
        (release("ours", Some(ENTRY)), vec![format!("release ours {ENTRY}")]),
        // A later round of the same waiter, which has the place of the one that was cancelled.
        (release("others", Some(ENTRY)), vec![format!("release others {ENTRY}")]),
        (leave(ENTRY), vec![format!("release {ENTRY} {ENTRY}")]),
        (release("others", None), vec![]),
        (leave("f:c:2 host=h pid=1"), vec![]),
        (Op::inspect(keys()), vec![]),
    ];
    for (op, expected) in cases {
        let mut test = lingering();
        for _ in 0..2 {
            test.bring(Input::Undo(op.clone()));
        }
        let sent: Vec<String> = test.sent_on(Role::Lingering).iter().map(|sent| sent.trim_end().to_owned()).collect();
        let expected: Vec<String> = expected.iter().map(|sent| sent.trim_end().to_owned()).collect();
        assert_eq!(sent, expected, "{op:?}");
    }
}

#[test]
fn an_acquire_that_was_cancelled_on_a_connection_that_stays_open_is_undone_there() {
    let mut test = Test::connected();
    let _received = (test.submit(release("theirs", None)), test.submit(acquire()));
    test.wrote();
    test.bring(Input::Undo(release("ours", None)));
    assert_eq!(test.sent(), [""; 0], "its round may still be granted");
    // Something arrives, or the connection would count as dead.
    test.replies(released());
    test.until_due();
    test.bring(Input::Undo(release("others", None)));
    test.bring(Input::Undo(release("ours", None)));
    assert_eq!(test.sent(), ["release ours"]);
    test.replies(&(released().to_owned() + released()));
    test.bring(Input::Undo(release("ours", None)));
    assert_eq!(test.sent(), [""; 0], "it was answered, and won't come late");
}

#[test]
fn what_the_socket_did_not_take_is_written_later_and_in_order() {
    let mut test = Test::connected();
    let _received = test.submit(acquire());
    test.until_due();
    test.bring(Input::Undo(release("ours", None)));
    assert!(test.connection.is_busy(), "there are bytes to write");
    assert_eq!(test.sent_on(Role::Lingering), ["acquire ours 1000", "release ours"]);
}

#[test]
fn a_place_is_undone_also_after_the_value() {
    let mut test = lingering();
    test.bring(Input::Undo(release("ours", None)));
    test.bring(Input::Undo(leave(ENTRY)));
    assert_eq!(test.sent_on(Role::Lingering).len(), 2);
}

#[test]
fn a_socket_lingers_until_the_server_has_answered_everything() {
    let mut test = lingering();
    test.bring(Input::Undo(release("ours", None)));
    assert_eq!(test.sent_on(Role::Lingering).len(), 1);
    let refused = "*5\r\n$4\r\nheld\r\n:1\r\n:7\r\n$1\r\nx\r\n:100\r\n";
    test.replies_on(Role::Lingering, refused);
    assert_eq!(test.effects(), [""; 0], "the release has no answer yet");
    test.replies_on(Role::Lingering, released());
    assert_eq!(test.effects(), ["drop lingering"]);
}

#[test]
fn a_release_whose_script_the_server_does_not_know_is_sent_as_text() {
    let mut test = Test::connected();
    let _received = (test.submit(release("theirs", None)), test.wrote());
    test.replies(released());
    let _received = test.submit(acquire());
    test.wrote();
    test.until_due();
    test.effects();
    test.bring(Input::Undo(release("ours", None)));
    assert!(test.wrote_on(Role::Lingering).contains("EVALSHA"));
    test.replies_on(Role::Lingering, "-NOSCRIPT No matching script\r\n-NOSCRIPT No matching script\r\n");
    assert!(test.wrote_on(Role::Lingering).contains("\r\nEVAL\r\n"));
}

#[test]
fn a_socket_that_breaks_or_stays_silent_for_long_does_not_linger_on() {
    for breaks in [false, true] {
        let mut test = lingering();
        if breaks {
            test.bring(Input::Closed(Role::Lingering, None));
        } else {
            let since = test.now;
            while test.connection.wake_at() != Tick::NEVER {
                test.until_due();
            }
            assert_eq!(test.now.since(since), LONGEST);
        }
        assert_eq!(test.effects(), ["drop lingering"], "{breaks}");
        assert_eq!((test.wrote_on(Role::Lingering), test.connection.is_busy()), (String::new(), false));
    }
}

#[test]
fn a_socket_that_broke_or_owes_no_acquire_does_not_linger() {
    for (op, breaks) in [(acquire(), true), (release("ours", None), false), (Op::inspect(keys()), false)] {
        let mut test = Test::connected();
        let _received = test.submit(op.clone());
        test.wrote();
        if breaks {
            test.bring(Input::Closed(Role::Operations, None));
        } else {
            test.until_due();
        }
        assert!(test.effects().contains(&"drop"), "{op:?}");
    }
}

#[test]
fn a_close_that_waits_for_a_socket_that_lingers_does_not_connect_again() {
    let mut test = Test::connected();
    test.bring(Input::KeepWarm);
    let _received = test.submit(acquire());
    test.wrote();
    test.until_due();
    test.effects();
    test.bring(Input::Unopened(Role::Operations, no_answer(TIMEOUT)));
    test.bring(Input::Close);
    assert_eq!(test.until_due(), TIMEOUT, "not before");
    assert_eq!(test.effects(), ["drop lingering"]);
    assert!(test.connection.is_over());
}

#[test]
fn a_close_takes_everything_back_and_waits_for_it_as_for_a_release() {
    let mut test = lingering();
    test.bring(Input::KeepWarm);
    test.connect();
    test.effects();
    test.bring(Input::Close);
    assert_eq!(test.sent_on(Role::Lingering), [format!("release ours {ENTRY}")]);
    assert!(!test.connection.is_over());
    assert_eq!(test.until_due(), TIMEOUT);
    assert_eq!(test.effects(), ["drop lingering", "drop"]);
    assert!(test.connection.is_over());
}
