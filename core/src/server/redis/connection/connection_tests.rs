//! The decisions of a connection: inputs in, effects and bytes out, without a socket.

use std::time::Duration;

use super::super::staged::{HANDSHAKE, START, TIMEOUT, Test, acquire, kind, release, released};
use super::*;

#[test]
fn nothing_is_connected_before_it_is_needed_nor_sent_before_the_server_is_known() {
    let mut test = Test::new();
    assert_eq!((test.connection.wake_at(), test.connection.is_busy()), (Tick::NEVER, false));
    let (one, two) = (test.submit(release("one", None)), test.submit(release("two", None)));
    assert_eq!(test.effects(), ["open"]);
    test.bring(Input::Opened(Role::Operations));
    assert!(!test.wrote().contains("orders:42") && test.connection.is_busy());
    for byte in HANDSHAKE.split_inclusive("") {
        assert_eq!(test.sent(), [""; 0]);
        test.replies(byte);
    }
    assert_eq!(test.sent(), ["release one", "release two"], "in their order");
    for byte in (released().to_owned() + released()).split_inclusive("") {
        test.replies(byte);
    }
    assert_eq!(test.effects(), ["complete", "complete"]);
    for received in [one, two] {
        assert_eq!(received.try_recv().unwrap().unwrap().verdict, Verdict::Ok);
    }
    assert!(!test.connection.is_busy());
}

#[test]
fn what_is_sent_between_two_parts_of_the_replies_is_written_before_the_second() {
    let mut test = Test::connected();
    test.connection.parts = 2;
    let received = ["one", "two", "three", "four"].map(|owner| test.submit(release(owner, None)));
    test.wrote();
    test.replies(&released().repeat(4));
    assert_eq!((test.effects(), test.connection.has_replies()), (vec!["complete"; 2], true));
    let _later = ["later", "last"].map(|owner| test.submit(release(owner, None)));
    assert_eq!(test.sent(), ["release later", "release last"]);
    test.bring(Input::Read(Role::Operations, 0));
    assert_eq!((test.effects(), test.connection.has_replies()), (vec!["complete"; 2], true));
    test.bring(Input::Read(Role::Operations, 0));
    assert_eq!((test.effects(), test.connection.has_replies()), (vec![], false), "all have come");
    assert!(received.iter().all(|received| received.try_recv().unwrap().is_ok()));
    // A socket that was left takes its replies along.
    test.replies(released());
    let _more = ["four", "five", "six"].map(|owner| test.submit(release(owner, None)));
    test.replies(&released().repeat(2));
    assert!(test.connection.has_replies());
    test.bring(Input::Closed(Role::Operations, None));
    test.bring(Input::Read(Role::Operations, 0));
    assert!(!test.connection.has_replies());
}

#[test]
fn an_answer_that_comes_twice_is_found_before_a_caller_sends_the_next_operation() {
    let mut test = Test::connected();
    test.connection.parts = 2;
    let received = ["one", "two"].map(|owner| test.submit(release(owner, None)));
    test.wrote();
    test.replies(&released().repeat(3));
    test.bring(Input::Read(Role::Operations, 0));
    assert_eq!(test.effects(), ["complete", "complete", "drop"]);
    assert!(received.iter().all(|received| received.try_recv().unwrap().is_ok()));
}

#[test]
fn a_script_that_the_server_does_not_know_is_sent_as_text_and_only_in_time() {
    let mut test = Test::connected();
    // A connection's first release is sent as text.
    let _received = test.submit(release("ours", None));
    test.wrote();
    test.replies(released());
    test.effects();
    for (passes, expected) in [(Duration::ZERO, 1), (TIMEOUT / 2, 0)] {
        let received = test.submit_until(release("ours", None), test.now.after(TIMEOUT / 2));
        let by_sha = test.wrote();
        assert!(by_sha.contains("EVALSHA") && by_sha.len() < 700, "{by_sha}");
        test.after(passes).replies("-NOSCRIPT No matching script\r\n");
        assert_eq!(test.wrote().matches("EVAL\r\n").count(), expected);
        if expected == 1 {
            test.replies(released());
            assert_eq!(test.effects(), ["complete"]);
            assert!(received.try_recv().unwrap().is_ok());
        } else {
            assert_eq!(test.effects(), ["complete"]);
            assert_eq!(kind(&received), Some((FailureKind::TooLate, false)));
        }
    }
}

#[test]
fn a_socket_that_breaks_leaves_all_unknown_but_the_releases_which_are_repeated() {
    let mut test = Test::connected();
    let (acquired, one) = (test.submit(acquire()), test.submit(release("one", None)));
    assert_eq!(test.sent(), ["acquire ours 1000", "release one"]);
    test.bring(Input::Closed(Role::Operations, None));
    assert_eq!(test.effects(), ["failed", "drop", "complete", "open"], "the first to be of no use is forgiven");
    assert_eq!(kind(&acquired), Some((FailureKind::Disconnected, true)));
    test.bring(Input::Opened(Role::Operations));
    test.wrote();
    let two = test.submit(release("two", None));
    test.replies(HANDSHAKE);
    assert_eq!(test.sent(), ["release one", "release two"]);
    test.replies(&(released().to_owned() + released()));
    assert_eq!(test.effects(), ["recovered", "complete", "complete"]);
    assert!(one.try_recv().unwrap().unwrap().repeated && !two.try_recv().unwrap().unwrap().repeated);
}

#[test]
fn why_there_is_no_connection_is_said_and_the_next_attempt_waits() {
    let mut test = Test::new();
    let refused = Failure::not_applied(FailureKind::Refused, "nobody listens");
    let (acquired, kept) = (test.submit(acquire()), test.submit(release("ours", None)));
    assert_eq!(test.effects(), ["open"]);
    test.bring(Input::Unopened(Role::Operations, refused.clone()));
    assert_eq!(test.effects(), ["failed", "complete"]);
    assert_eq!(acquired.try_recv().unwrap(), Err(refused.clone()));
    let early = test.submit(acquire());
    assert_eq!(test.effects(), ["complete"], "no attempt so soon");
    assert_eq!(early.try_recv().unwrap(), Err(refused));
    let pause = test.until_due();
    assert!(Duration::from_millis(25) <= pause && pause <= Duration::from_millis(50), "{pause:?}");
    test.connect();
    assert_eq!((test.sent(), kind(&kept)), (vec!["release ours".to_owned()], None));
    assert_eq!(test.effects(), ["recovered"]);
}

#[test]
fn a_server_that_accepts_and_says_nothing_is_left_in_time() {
    for answers_late in [false, true] {
        let mut test = Test::new();
        let received = test.submit(acquire());
        assert_eq!(test.effects(), ["open"]);
        test.after(TIMEOUT / 2).bring(Input::Opened(Role::Operations));
        if answers_late {
            test.replies("+OK\r\n");
        }
        assert_eq!(test.until_due(), TIMEOUT / 2, "as long as connecting may take in all");
        assert_eq!(test.effects(), ["drop", "failed", "complete"]);
        let failure = received.try_recv().unwrap().unwrap_err();
        assert_eq!((failure.kind, &*failure.message), (FailureKind::Timeout, "connected, but no answer within 1000 ms"));
    }
}

#[test]
fn an_operation_whose_time_is_up_before_there_is_a_connection_is_never_sent() {
    let mut test = Test::new();
    let received = test.submit_until(acquire(), START.after(TIMEOUT / 4));
    let late = test.submit_until(acquire(), START);
    assert_eq!(test.effects(), ["open", "complete"]);
    assert_eq!(kind(&late), Some((FailureKind::TooLate, false)));
    assert_eq!(test.until_due(), TIMEOUT / 4);
    assert_eq!(test.effects(), ["complete"]);
    assert_eq!(kind(&received), Some((FailureKind::Timeout, false)));
    test.bring(Input::Opened(Role::Operations));
    test.wrote();
    test.replies(HANDSHAKE);
    assert_eq!(test.sent(), [""; 0]);
}

#[test]
fn an_answer_that_does_not_come_ends_the_operation_and_a_silent_socket_too() {
    for silent in [false, true] {
        let mut test = Test::connected();
        let (received, answered) = (test.submit(acquire()), test.submit(release("ours", None)));
        test.wrote();
        if !silent {
            // The error answers the acquire. It promises nothing, so the acquire may have been done.
            test.replies("-ERR no\r\n");
            assert_eq!((test.effects(), kind(&received)), (vec!["complete"], Some((FailureKind::Other, true))));
        }
        assert_eq!(test.until_due(), TIMEOUT);
        let expected: &[&str] = if silent { &["failed", "complete", "complete", "linger"] } else { &["failed", "complete"] };
        assert_eq!(test.effects(), expected);
        assert_eq!(kind(&answered), Some((FailureKind::Timeout, true)));
    }
}

#[test]
fn answers_that_can_not_be_ours_end_the_connection() {
    for message in ["+OK\r\n", ">2\r\n$9\r\nsubscribe\r\n$1\r\na\r\n", "HTTP/1.1 400\r\n"] {
        let mut test = Test::connected();
        test.replies(message);
        assert_eq!(test.effects(), ["drop"], "{message:?}");
    }
    let mut test = Test::connected();
    let received = test.submit(release("ours", None));
    test.replies("*5\r\n$2\r\nok\r\n:1\r\n:7\r\n$6\r\ntheirs\r\n:-2\r\n");
    assert_eq!(test.effects()[..2], ["failed", "drop"]);
    assert_eq!(kind(&received), None, "it is sent again");
}

#[test]
fn a_primary_that_became_a_replica_is_left() {
    let mut test = Test::connected();
    let received = test.submit(acquire());
    test.replies("-READONLY You can't write against a read only replica.\r\n");
    assert_eq!(test.effects(), ["failed", "complete", "drop"], "the state is reported before the answer");
    assert_eq!(kind(&received), Some((FailureKind::ReadOnly, false)));
    test.bring(Input::KeepWarm);
    test.connect();
    assert_eq!(test.effects(), [""; 0], "a replica has the handshake of a primary");
}

#[test]
fn a_socket_that_nobody_waits_for_is_dropped() {
    let mut test = Test::connected();
    test.bring(Input::Opened(Role::Operations));
    assert_eq!(test.effects(), ["drop"]);
}

#[test]
fn a_closed_connection_does_nothing_more() {
    let mut test = Test::connected();
    test.bring(Input::Close);
    assert_eq!(test.effects(), ["drop"]);
    assert!(test.connection.is_over());
    let late = test.submit(release("ours", None));
    assert_eq!((test.effects(), kind(&late)), (vec!["complete"], Some((FailureKind::Closed, false))));
}
