//! The native way over a connection, without a socket: when it is taken, and what follows where it doesn't do.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use super::super::primary::Primary;
use super::super::staged::{HANDSHAKE, Test, acquire, kind, release, released};
use crate::clock::Tick;
use crate::mutant::{Mutant, assert_noticed};
use crate::op::{Answer, FailureKind, LockOp, Op, Verb, Verdict};
use crate::server::redis::connection::effect::Role;
use crate::server::redis::connection::in_flight::InFlight;
use crate::server::redis::connection::input::Input;
use crate::server::{Completion, Request};

const QUEUED: &str = "+OK\r\n+QUEUED\r\n+QUEUED\r\n";
const GRANTED: &str = "*2\r\n+OK\r\n$16\r\n1795227730123-45\r\n";
const HELD: &str = "*5\r\n$4\r\nheld\r\n:7\r\n:0\r\n$6\r\ntheirs\r\n:500\r\n";
const VOTED: &str = "*5\r\n$4\r\nvote\r\n:7\r\n:8\r\n$4\r\nours\r\n:1000\r\n";

/// The answer to the handshake of a server that answers an empty transaction so.
fn handshake_answers(transaction: &str) -> String {
    HANDSHAKE.strip_suffix("-NOPERM\r\n-NOPERM\r\n").unwrap().to_owned() + transaction
}

/// A connection to a server that has transactions, and compares by a script.
fn connected() -> Test {
    let mut test = Test::of(Arc::new(Primary::new(|_| ())));
    test.bring(Input::KeepWarm);
    assert_eq!(test.effects(), ["open"]);
    test.bring(Input::Opened(Role::Operations));
    assert!(test.wrote().ends_with("*1\r\n$5\r\nMULTI\r\n*1\r\n$4\r\nEXEC\r\n"));
    test.replies(&handshake_answers("+OK\r\n*0\r\n"));
    test.connection.kept_warm_until = Tick::default();
    test
}

/// An acquire of a lock that isn't fair, by a newcomer.
fn newcomer() -> Op {
    let Op::Lock(LockOp { keys, by, verb: Verb::Acquire { ttl_ms, proposal, place, .. } }) = acquire() else { unreachable!() };
    let (adopt, quorum_config, job) = (None, None, None);
    Op::Lock(LockOp { keys, by, verb: Verb::Acquire { ttl_ms, proposal, adopt, fair: false, place, quorum_config, job } })
}

/// Submits a release of a key with this value.
fn release_of(test: &mut Test, value: &str) -> Receiver<Answer> {
    let (sender, received) = std::sync::mpsc::channel();
    let completion = Completion::new(move |answer| drop(sender.send(answer)));
    let request = Request::new(release("ours", None), Tick::NEVER).of_value(Some(value.into()));
    test.bring(Input::Submit(InFlight::new(request, completion)));
    received
}

/// The commands that were written since the last time.
fn commands(test: &mut Test) -> Vec<String> {
    let written = format!("\r\n{}", test.wrote());
    let words = |command: &str| command.split("\r\n").nth(2).unwrap_or_default().to_owned();
    written.split("\r\n*").skip(1).map(words).filter(|word| !word.is_empty()).collect()
}

/// Acquires the lock, whose script answers so.
fn by_script(test: &mut Test, answer: &str) {
    let received = test.submit(newcomer());
    assert_eq!(commands(test), ["EVALSHA"]);
    test.replies(answer);
    test.effects();
    assert!(received.try_recv().unwrap().is_ok());
}

#[test]
fn a_free_lock_is_taken_by_a_transaction_in_one_write() {
    let mut test = connected();
    let received = test.submit(newcomer());
    assert_eq!(
        test.wrote(),
        "*1\r\n$5\r\nMULTI\r\n\
         *6\r\n$3\r\nSET\r\n$9\r\norders:42\r\n$4\r\nours\r\n$2\r\nNX\r\n$2\r\nPX\r\n$4\r\n1000\r\n\
         *7\r\n$4\r\nXADD\r\n$17\r\n{12193}:~lt:clock\r\n$6\r\nMAXLEN\r\n$1\r\n0\r\n$1\r\n*\r\n$0\r\n\r\n$0\r\n\r\n\
         *1\r\n$4\r\nEXEC\r\n"
    );
    for byte in (QUEUED.to_owned() + GRANTED).split_inclusive("") {
        test.replies(byte);
    }
    assert_eq!(test.effects(), ["complete"]);
    let reply = received.try_recv().unwrap().unwrap();
    assert_eq!((reply.verdict, reply.fence, reply.is_bare), (Verdict::Vote, 1_795_227_730_123_045, true));
}

#[test]
fn a_name_that_was_met_held_is_asked_for_by_script_until_it_was_got_twice() {
    let mut test = connected();
    let received = test.submit(newcomer());
    test.wrote();
    test.replies(&(QUEUED.to_owned() + "*2\r\n$-1\r\n$16\r\n1795227730123-46\r\n"));
    assert_eq!(commands(&mut test), ["EVALSHA"], "behind what the transaction could not do");
    test.replies(HELD);
    assert_eq!(test.effects(), ["complete"]);
    assert!(matches!(received.try_recv().unwrap().unwrap().verdict, Verdict::Held { .. }));
    by_script(&mut test, VOTED);
    // Nor is it compared: a client may wait.
    let _received = release_of(&mut test, "ours");
    assert_eq!(commands(&mut test), ["EVAL"]);
    test.replies(released());
    by_script(&mut test, VOTED);
    let _received = test.submit(newcomer());
    assert_eq!(commands(&mut test), ["MULTI", "SET", "XADD", "EXEC"]);
}

#[test]
fn an_acquire_that_is_only_of_use_for_a_free_lock_is_refused_without_a_script() {
    let mut test = connected();
    let submit = |test: &mut Test| {
        let (sender, received) = std::sync::mpsc::channel();
        let completion = Completion::new(move |answer| drop(sender.send(answer)));
        test.bring(Input::Submit(InFlight::new(Request::new(newcomer(), Tick::NEVER).if_free(), completion)));
        received
    };
    let is_refused = |received: &Receiver<Answer>| matches!(received.try_recv(), Ok(Ok(reply)) if matches!(reply.verdict, Verdict::Held { .. }));
    let received = submit(&mut test);
    assert_eq!(commands(&mut test), ["MULTI", "SET", "XADD", "EXEC"]);
    test.replies(&(QUEUED.to_owned() + "*2\r\n$-1\r\n$16\r\n1795227730123-46\r\n"));
    assert_eq!((commands(&mut test), test.effects()), (Vec::new(), vec!["complete"]));
    assert!(is_refused(&received));
    // The name was met held: the same acquire, for more than a free lock, goes by script.
    by_script(&mut test, HELD);
    // Where transactions are of no use, nothing is sent at all.
    let _received = test.submit(newcomer());
    test.wrote();
    let mut other = connected();
    let received = submit(&mut other);
    other.wrote();
    other.replies("+OK\r\n+QUEUED\r\n-NOPERM no permissions to run the 'xadd' command\r\n-EXECABORT Transaction discarded\r\n");
    other.effects();
    assert!(is_refused(&received));
    let received = submit(&mut other);
    assert_eq!((commands(&mut other), other.effects()), (Vec::new(), vec!["complete"]));
    assert!(is_refused(&received));
}

/// Acquires a lock whose id is no fence; the script then finds another type in the place of the clock.
fn what_was_taken_is_given_back() {
    let mut test = connected();
    let received = test.submit(newcomer());
    test.wrote();
    test.replies(&(QUEUED.to_owned() + "*2\r\n+OK\r\n$18\r\n1795227730123-1000\r\n"));
    assert_eq!(commands(&mut test), ["EVALSHA"]);
    test.replies("*5\r\n$8\r\nconflict\r\n:7\r\n:0\r\n$4\r\nlist\r\n:-2\r\n");
    assert_eq!(commands(&mut test), ["EVAL"]);
    assert_eq!(test.effects(), [""; 0], "its caller gets the answer when the key is deleted");
    test.replies(released());
    assert_eq!(test.effects(), ["complete"]);
    assert!(matches!(received.try_recv().unwrap().unwrap().verdict, Verdict::Conflict { .. }));
}

#[test]
fn what_a_transaction_has_taken_is_given_back_before_the_caller_learns_that_it_is_not_granted() {
    what_was_taken_is_given_back();
    assert_noticed(Mutant::TakenKept, what_was_taken_is_given_back);
}

#[test]
fn where_transactions_are_of_no_use_they_are_not_tried_again_on_the_connection() {
    let mut test = connected();
    let _received = test.submit(newcomer());
    test.wrote();
    test.replies("+OK\r\n+QUEUED\r\n-NOPERM no permissions to run the 'xadd' command\r\n-EXECABORT Transaction discarded\r\n");
    assert_eq!(commands(&mut test), ["EVALSHA"]);
    test.replies(VOTED);
    test.effects();
    by_script(&mut test, VOTED);
}

/// Connects with an acquire that waits, to a server that answers the handshake's transaction so, or hangs up then.
fn without_transactions(answer: Option<&str>) {
    let mut test = Test::new();
    let received = test.submit(newcomer());
    assert_eq!(test.effects(), ["open"]);
    test.bring(Input::Opened(Role::Operations));
    test.wrote();
    test.replies(&handshake_answers(answer.unwrap_or_default()));
    if answer.is_none() {
        test.bring(Input::Closed(Role::Operations, None));
    }
    assert_eq!(test.effects(), ["drop", "open"], "at once, and it is not reported");
    test.bring(Input::Opened(Role::Operations));
    assert!(!test.wrote().contains("MULTI"));
    test.replies(&handshake_answers(""));
    assert_eq!(commands(&mut test), ["EVALSHA"]);
    test.replies(VOTED);
    assert_eq!(test.effects(), ["complete"]);
    assert_eq!(received.try_recv().unwrap().unwrap().verdict, Verdict::Vote);
}

#[test]
fn a_server_that_does_not_end_a_transaction_is_left_and_not_asked_again() {
    without_transactions(Some("+OK\r\n-ERR unknown command 'EXEC'\r\n"));
}

#[test]
fn a_server_that_hangs_up_on_a_transaction_is_not_asked_again() {
    without_transactions(None);
}

#[test]
fn an_answer_of_another_form_ends_the_connection_with_an_unknown_outcome() {
    let mut test = connected();
    let received = test.submit(newcomer());
    test.replies(&(QUEUED.to_owned() + ":1\r\n"));
    assert!(test.effects().contains(&"drop"));
    assert_eq!(kind(&received), Some((FailureKind::Disconnected, true)));
}

#[test]
fn a_lock_is_released_by_comparison_and_by_the_script_where_that_does_not_do() {
    let mut test = connected();
    let received = release_of(&mut test, "ours fence=7");
    assert!(test.wrote().ends_with("\r\n$1\r\n1\r\n$9\r\norders:42\r\n$12\r\nours fence=7\r\n"));
    test.replies(":1\r\n");
    assert_eq!(test.effects(), ["complete"]);
    assert_eq!(received.try_recv().unwrap().unwrap().verdict, Verdict::Ok);
    for (answer, again) in [(":0\r\n", "EVAL"), ("-NOSCRIPT No matching script\r\n", "EVALSHA")] {
        let received = release_of(&mut test, "ours");
        test.wrote();
        test.replies(answer);
        assert_eq!(commands(&mut test), [again]);
        test.replies(released());
        assert_eq!(test.effects(), ["complete"]);
        assert_eq!(received.try_recv().unwrap().unwrap().verdict, Verdict::Ok);
    }
}
