//! Conversation: the form in which operations are sent, and the round trips that they take.

use super::super::staged::{GREETED, Test, acquire, keys, release};
use crate::op::{LockOp, Op, Verb};
use crate::server::redis::connection::effect::Role;
use crate::server::redis::connection::input::Input;

fn extend() -> Op {
    Op::Lock(LockOp { keys: keys(), by: "ours".into(), verb: Verb::Extend { ttl_ms: 1_000, fence: 7 } })
}

/// The answer to an extension.
const EXTENDED: &str = "*5\r\n$2\r\nok\r\n:1\r\n:7\r\n$4\r\nours\r\n:1000\r\n";

#[test]
fn the_first_extension_on_each_socket_is_sent_as_text_and_need_not_be_sent_again() {
    let mut test = Test::connected();
    for _ in 0..2 {
        for (op, command, probes) in [(extend(), "EVAL", false), (extend(), "EVALSHA", false), (acquire(), "EVALSHA", true)] {
            let _received = test.submit(op);
            let written = test.wrote();
            assert!(written.contains(&format!("\r\n{command}\r\n")), "{command}: {written}");
            assert_eq!(test.connection.is_probing(), probes, "{command}: {written}");
        }
        test.replies(EXTENDED);
        test.bring(Input::Closed(Role::Operations, None));
        test.effects();
        // The next socket may lead to a server that was started again, and knows no script.
        test.bring(Input::KeepWarm);
        test.connect();
    }
}

#[test]
fn the_first_release_on_each_socket_is_sent_as_text_for_its_client_may_go_before_it_is_asked() {
    let mut test = Test::connected();
    for command in ["EVAL", "EVALSHA"] {
        let _received = test.submit(release("ours", None));
        let written = test.wrote();
        assert!(written.contains(&format!("\r\n{command}\r\n")), "{command}: {written}");
        assert!(!test.connection.is_probing(), "{command}: {written}");
    }
}

#[test]
fn a_renewal_on_a_connection_that_is_still_to_be_opened_takes_three_round_trips() {
    let mut test = Test::new();
    let received = test.submit(extend());
    // The first: the socket.
    assert_eq!((test.effects(), test.wrote().as_str()), (vec!["open"], ""));
    test.bring(Input::Opened(Role::Operations));
    // The second: the operation `greet`. The server may belong to a quorum, so it gets no operation before its answer.
    assert!(!test.wrote().contains("orders:42"));
    test.replies(GREETED);
    // The third: the extension, on a server that has never seen the script.
    let written = test.wrote();
    assert!(written.contains("\r\nEVAL\r\n") && written.contains("orders:42"), "{written}");
    test.replies(EXTENDED);
    assert_eq!(test.effects(), ["complete"]);
    assert!(received.try_recv().unwrap().is_ok());
}

#[test]
fn a_first_extension_that_waits_for_a_question_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    assert_noticed(Mutant::FirstExtensionByHash, the_first_extension_on_each_socket_is_sent_as_text_and_need_not_be_sent_again);
}

#[test]
fn a_first_release_that_waits_for_a_question_is_noticed() {
    use crate::mutant::{Mutant, assert_noticed};
    let first_release = the_first_release_on_each_socket_is_sent_as_text_for_its_client_may_go_before_it_is_asked;
    assert_noticed(Mutant::FirstReleaseByHash, first_release);
}
