//! Following: one replication id for all connections to a server, and what is done while something is held.

use std::sync::Arc;

use super::super::staged::{Test, acquire, keys, kind, release, released};
use super::*;
use crate::name::{Keys, Kind};
use crate::op::{LockOp, Op, QuorumConfig, Verdict};
use crate::server::redis::connection::input::Input;
use crate::server::redis::connection::primary::Primary;

const PEER: ([u8; 4], u16) = ([10, 0, 0, 1], 6379);

/// The answers to the handshake of a primary with this replication id.
fn handshake_answers(replid: &str) -> String {
    let info = format!("role:master\r\nmaster_replid:{replid}\r\n");
    let server = "redis_version:7.2.4\r\nserver_time_usec:5000000\r\n";
    let marker = "*5\r\n$2\r\nok\r\n:5000000\r\n:0\r\n$-1\r\n:-2\r\n-NOPERM\r\n-NOPERM\r\n";
    format!("${}\r\n{server}\r\n${}\r\n{info}\r\n+OK\r\n{marker}", server.len(), info.len())
}

impl Test {
    /// Answers the handshake that was begun, as a primary with this replication id.
    fn handshake(&mut self, replid: &str) {
        self.connection.reached(Some(PEER.into()));
        self.bring(Input::Opened(Role::Operations));
        self.wrote();
        self.replies(&handshake_answers(replid));
    }
}

#[test]
fn a_connection_to_the_old_primary_is_left_when_another_one_has_found_the_new_one() {
    let primary = Arc::new(Primary::new(|_| ()));
    let [mut one, mut other] = [(); 2].map(|()| Test::of(Arc::clone(&primary)));
    for test in [&mut one, &mut other] {
        test.bring(Input::KeepWarm);
        assert_eq!(test.effects(), ["open"]);
        test.handshake("old");
        assert_eq!(test.effects(), [""; 0]);
    }
    let (received, _released) = (other.submit(acquire()), other.submit(release("ours", None)));
    other.wrote();
    one.bring(Input::Closed(Role::Operations, None));
    assert_eq!(one.effects(), ["drop", "open"], "something is held");
    one.handshake("new");
    assert_eq!(one.effects(), ["failed over"]);
    other.bring(Input::Wake);
    assert_eq!((other.effects(), kind(&received)), (vec!["drop", "complete", "open"], Some((FailureKind::Disconnected, true))));
    other.handshake("new");
    assert_eq!(
        (other.sent(), other.effects()),
        (vec!["release ours".to_owned()], vec![]),
        "a release is kept, and no news reported twice"
    );
    // The name leads back to the old primary, which calls itself one still.
    other.replies(released());
    other.bring(Input::Closed(Role::Operations, None));
    other.effects();
    other.handshake("old");
    assert_eq!(other.effects(), ["drop", "failed"]);
    let received = other.submit(acquire());
    assert_eq!((other.effects(), kind(&received)), (vec!["complete"], Some((FailureKind::ReadOnly, false))));
}

#[test]
fn while_something_is_held_a_broken_connection_is_replaced_and_the_name_looked_up_every_half_a_minute() {
    let mut test = Test::connected();
    test.connection.reached(Some(PEER.into()));
    let mut looks = Vec::new();
    for second in (0..=90).step_by(5) {
        test.bring(Input::KeepWarm);
        looks.extend((test.effects() == ["look"]).then_some(second));
        test.after(Duration::from_secs(5));
    }
    assert_eq!(looks, [30, 60, 90]);
    test.bring(Input::Closed(Role::Operations, None));
    assert_eq!(test.effects(), ["drop", "open"]);
    test.bring(Input::Unopened(Role::Operations, Failure::not_applied(FailureKind::Refused, "no")));
    assert_eq!(test.effects(), ["failed"]);
    assert!(test.until_due() <= Duration::from_millis(500));
    assert_eq!(test.effects(), ["open"]);
    test.after(KEPT_WARM).bring(Input::Unopened(Role::Operations, Failure::not_applied(FailureKind::Refused, "no")));
    assert_eq!((test.effects(), test.connection.wake_at()), (vec![], Tick::NEVER), "nothing is held any more");
}

#[test]
fn a_wake_that_comes_when_nothing_is_held_any_more_is_not_due_again() {
    let mut test = Test::connected();
    test.connection.reached(Some(PEER.into()));
    test.bring(Input::KeepWarm);
    test.bring(Input::Closed(Role::Operations, None));
    test.bring(Input::Unopened(Role::Operations, Failure::not_applied(FailureKind::Refused, "no")));
    test.effects();
    assert!(test.connection.wake_at() > test.now, "it is to be tried again");
    // The process was paused, or the wake is late.
    test.after(KEPT_WARM * 2).bring(Input::Wake);
    assert!(test.connection.wake_at() > test.now, "{:?}", test.effects());
}

#[test]
fn the_servers_clock_is_read_by_the_handshake_and_ahead_of_an_acquire_once_a_second() {
    let mut test = Test::of(Arc::new(Primary::new(|_| ())));
    assert_eq!(test.connection.server_clock(test.now), None);
    test.bring(Input::KeepWarm);
    test.effects();
    test.handshake("era");
    assert_eq!(test.connection.server_clock(test.now), Some(5_000_000));
    let time = "$4\r\nTIME\r\n";
    let mut asks = |after: u64| {
        test.after(Duration::from_millis(after));
        let _received = test.submit(of_quorum(acquire()));
        test.wrote().find(time)
    };
    assert_eq!([asks(999), asks(1), asks(0), asks(999)], [None, Some(4), None, None], "ahead of the acquire");
    test.replies("-ERR no acquire\r\n*2\r\n$2\r\n90\r\n$1\r\n7\r\n");
    assert_eq!(test.connection.server_clock(test.now), Some(90_000_007));
}

#[test]
fn a_server_that_changes_its_replid_under_an_open_connection_has_a_handshake_again_and_then_the_operation() {
    let mut test = Test::of(Arc::new(Primary::new(|_| ())));
    test.bring(Input::KeepWarm);
    test.effects();
    test.handshake("old");
    let (received, other) = (test.submit(acquire()), test.submit(Op::inspect(keys())));
    assert_eq!(test.sent().len(), 2);
    test.replies("*5\r\n$3\r\nera\r\n:1\r\n:0\r\n$-1\r\n:-2\r\n");
    assert_eq!(test.effects(), ["drop", "complete", "open"]);
    assert_eq!((kind(&received), kind(&other)), (None, Some((FailureKind::Disconnected, true))));
    test.handshake("new");
    assert_eq!((test.effects(), test.sent()), (vec!["failed over"], vec!["acquire ours 1000".to_owned()]));
    // A proxy that asks one node for its INFO, and another one for a script, would have the handshake repeated without end.
    test.replies("*5\r\n$3\r\nera\r\n:1\r\n:0\r\n$-1\r\n:-2\r\n");
    assert_eq!((test.effects(), kind(&received)), (vec!["complete"], Some((FailureKind::Protocol, false))));
}

#[test]
fn while_something_is_held_the_node_is_asked_whether_it_has_another_replid_or_is_no_primary_any_more() {
    for (answer, is_left) in [
        (Ok("role:master\r\nmaster_replid:old"), false),
        (Ok("role:master\r\nmaster_replid:new"), true),
        (Ok("role:slave\r\nmaster_replid:old\r\nmaster_host:h\r\nmaster_port:1"), true),
        (Err("-NOPERM\r\n"), false),
    ] {
        let mut test = Test::of(Arc::new(Primary::new(|_| ())));
        test.bring(Input::KeepWarm);
        test.effects();
        test.handshake("old");
        test.after(LOOK).bring(Input::KeepWarm);
        assert_eq!(test.effects(), ["look"]);
        assert!(test.wrote().contains("replication"));
        test.replies(&answer.map_or_else(str::to_owned, |info| format!("${}\r\n{info}\r\n", info.len())));
        assert_eq!(test.effects().contains(&"drop"), is_left, "{answer:?}");
    }
}

#[test]
fn a_node_that_may_have_followed_another_is_asked_at_once_also_on_a_connection_that_is_open() {
    let mut test = Test::of(Arc::new(Primary::new(|_| ())));
    test.bring(Input::Verify);
    assert_eq!(test.effects(), ["open"]);
    test.handshake("first");
    test.effects();
    test.bring(Input::KeepWarm);
    assert_eq!((test.effects(), test.wrote()), (vec![], String::new()), "it has just been asked");
    test.bring(Input::Verify);
    assert_eq!(test.effects(), ["look"]);
    assert!(test.wrote().contains("replication"));
    let info = "role:master\r\nmaster_replid:third\r\nmaster_replid2:second";
    test.replies(&format!("${}\r\n{info}\r\n", info.len()));
    assert!(test.effects().contains(&"drop"), "the handshake is repeated");
}

#[test]
fn a_replid_that_comes_back_has_no_votes_before_max_ttl_has_passed_and_all_else() {
    let quorum_config = QuorumConfig { servers: 1, max_ttl_ms: 5_000 };
    let mut test = Test::with(Arc::new(Primary::new(|_| ())), Some(quorum_config));
    // Its marker is no part of the handshake.
    let handshake = |test: &mut Test, replid: &str| {
        test.bring(Input::Opened(Role::Operations));
        test.wrote();
        test.replies(handshake_answers(replid).rsplit_once("*5").unwrap().0);
    };
    test.bring(Input::KeepWarm);
    for replid in ["old", "new"] {
        test.effects();
        handshake(&mut test, replid);
        test.bring(Input::Closed(Role::Operations, None));
    }
    // The new primary is gone, and the old one doesn't know it.
    test.effects();
    test.after(Duration::from_secs(4));
    let (early, kept) = (test.submit(acquire()), test.submit(release("ours", None)));
    handshake(&mut test, "old");
    assert_eq!(test.effects(), ["open", "complete", "failed over"]);
    let left = Duration::from_secs(5);
    assert_eq!(early.try_recv().unwrap().unwrap().verdict, Verdict::Quarantine { left });
    assert_eq!((test.sent(), kind(&kept)), (vec!["release ours".to_owned()], None));
    test.after(Duration::from_secs(4));
    let early = test.submit(acquire());
    assert_eq!((test.effects(), test.sent()), (vec!["complete"], vec![]));
    assert_eq!(early.try_recv().unwrap().unwrap().verdict, Verdict::Quarantine { left: Duration::from_secs(1) });
    test.after(Duration::from_secs(1));
    let _received = test.submit(acquire());
    assert!(test.effects().is_empty() && test.wrote().contains("orders:42"));
}

/// The same operation on a lock of a quorum.
fn of_quorum(op: Op) -> Op {
    let Op::Lock(op) = op else { return op };
    Op::Lock(LockOp { keys: Arc::new(Keys::new(Kind::Quorum, "", op.keys.name(), false).unwrap()), ..op })
}

#[test]
fn the_answer_of_a_script_shows_the_servers_clock_unless_its_replid_was_left() {
    let primary = Arc::new(Primary::new(|_| ()));
    let [mut one, mut other] = [(); 2].map(|()| Test::of(Arc::clone(&primary)));
    for test in [&mut one, &mut other] {
        test.bring(Input::KeepWarm);
        test.effects();
        test.handshake("old");
    }
    let handshake_us = one.connection.server_clock(one.now);
    let held = |time_us: u64| format!("*5\r\n$4\r\nheld\r\n:{time_us}\r\n:7\r\n$6\r\ntheirs\r\n:500\r\n");
    let _received = one.submit(acquire());
    one.replies(&held(9_000_000));
    assert_eq!((handshake_us, one.connection.server_clock(one.now)), (Some(5_000_000), Some(9_000_000)));
    let _late = one.submit(acquire());
    other.bring(Input::Closed(Role::Operations, None));
    other.effects();
    other.handshake("new");
    one.replies(&held(10_000_000));
    assert_eq!(one.connection.server_clock(one.now), Some(5_000_000), "it is the new node's");
}
