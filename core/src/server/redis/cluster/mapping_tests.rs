//! Tables of when nodes are asked for the map, and of what waits for it.

use std::sync::Arc;

use redis::Value;

use super::*;
use crate::name::{Keys, Kind};
use crate::op::{FailureKind, LockOp, Op, Verb};
use crate::server::{Completion, Request};

const START: Tick = Tick::from_micros(1_000_000);

fn node(port: u16) -> Address {
    Address { host: "h".into(), port }
}

fn found(ports: &[u16]) -> Found {
    let range = |port: &u16| {
        let primary = Value::Array(vec![Value::BulkString("h".into()), Value::Int((*port).into())]);
        Value::Array(vec![Value::Int((*port).into()), Value::Int((*port).into()), primary])
    };
    Ok(Topology::read(&Value::Array(ports.iter().map(range).collect()), &node(9)).unwrap())
}

fn failed() -> Found {
    Err(Failure::not_applied(FailureKind::Refused, "no"))
}

fn routed(verb: Verb, deadline: Tick) -> Routed {
    let keys = Arc::new(Keys::new(Kind::Exclusive, "", "a", true).unwrap());
    let op = Op::Lock(LockOp { keys, by: "ours".into(), verb });
    Routed::new(Request::new(op, deadline), Completion::new(|_| ()))
}

fn extend(deadline: Tick) -> Routed {
    routed(Verb::Extend { ttl_ms: 1, fence: 1 }, deadline)
}

fn release() -> Routed {
    routed(Verb::Release { leave: None, kept_ms: 0 }, Tick::NEVER)
}

fn after(milliseconds: u64) -> Tick {
    START.after(Duration::from_millis(milliseconds))
}

#[test]
fn while_a_node_fails_others_are_asked_for_its_successor_and_nobody_waits_for_that() {
    let mut mapping = Mapping::default();
    assert_eq!(mapping.begins(START), Some(START));
    mapping.some_primaries();
    assert_eq!(mapping.answered(&found(&[1]), true, START, 0.0).1, Again::Watch);
    assert!(mapping.watches());
    mapping.some_primaries();
    assert_eq!(mapping.answered(&found(&[1]), true, after(1_500), 0.0).1, Again::Watch);
    // The map proves wrong, and may be asked for at once; that one watches from now on.
    assert_eq!(mapping.begins(after(1_600)), Some(after(1_600)));
    assert!(!mapping.watches());
    mapping.some_primaries();
    assert_eq!(mapping.answered(&found(&[2]), false, after(1_610), 0.0).1, Again::Never);
}

#[test]
fn a_node_whose_slots_nobody_serves_for_a_moment_is_followed_by_the_node_that_serves_them_next() {
    let served = |slot: u16, port: u16| {
        let primary = Value::Array(vec![Value::BulkString("h".into()), Value::Int(port.into())]);
        Value::Array(vec![Value::Int(slot.into()), Value::Int(slot.into()), primary])
    };
    let found = |ranges: Vec<Value>| Ok(Topology::read(&Value::Array(ranges), &node(9)).unwrap());
    let mut mapping = Mapping::default();
    let hole: Found = found(vec![served(2, 2)]);
    for found in [found(vec![served(1, 1), served(2, 2)]), hole.clone()] {
        mapping.begins(START);
        mapping.some_primaries();
        mapping.answered(&found, true, START, 0.0);
    }
    assert_eq!(mapping.primary_of(1), None, "nobody serves it now");
    let next: Found = found(vec![served(1, 3), served(2, 2)]);
    let (hole, next) = (hole.unwrap().0, next.unwrap().0);
    assert_eq!(mapping.in_charge(&hole).primaries(), [node(2), node(1)], "the failing one isn't left yet");
    assert_eq!(mapping.in_charge(&next).primaries(), [node(2), node(3)]);
    assert_eq!(mapping.successors(&next, |_| true), [node(3)]);
}

#[test]
fn a_node_that_fails_for_long_has_its_successor_asked_for_less_often() {
    let mut mapping = Mapping::default();
    assert_eq!(mapping.begins(START), Some(START));
    for asked in 0..200 {
        assert_eq!(mapping.watch_pause(), if asked <= 60 { PAUSE } else { LONG_PAUSE }, "{asked}");
        mapping.some_primaries();
        assert_eq!(mapping.answered(&found(&[1]), true, START, 0.0).1, Again::Watch);
        assert!(mapping.watches());
    }
    mapping.answered(&found(&[2]), true, START, 0.0);
    assert_eq!(mapping.watch_pause(), PAUSE, "another map");
}

#[test]
fn a_map_that_proves_wrong_is_asked_for_once_a_second() {
    let mut mapping = Mapping::default();
    assert_eq!(mapping.begins(START), Some(START));
    assert_eq!(mapping.begins(START), None, "a caller asks");
    mapping.some_primaries();
    assert_eq!(mapping.answered(&found(&[1]), false, START, 0.0).1, Again::Never);
    assert_eq!(mapping.begins(after(10)), Some(after(1_000)));
    assert_eq!(mapping.some_primaries(), [node(1)]);
    assert_eq!(mapping.begins(after(1_001)), None);
    assert_eq!(mapping.answered(&found(&[2]), false, after(1_002), 0.0).1, Again::Soon, "it has proved wrong meanwhile");
    assert_eq!((mapping.primary_of(1), mapping.primary_of(2)), (None, Some(node(2))));
    assert_eq!(mapping.all_nodes(&[node(7), node(1)]), [node(7), node(1), node(2)]);
    mapping.some_primaries();
    assert_eq!(mapping.answered(&failed(), false, after(2_002), 0.0).1, Again::Never);
    assert_eq!(mapping.primary_of(2), Some(node(2)), "the last map stays");
}

#[test]
fn without_a_map_attempts_are_as_often_as_those_to_connect() {
    let mut mapping = Mapping::default();
    let mut now = START;
    for longest in [50, 100, 200, 400, 500, 500] {
        assert_eq!(mapping.begins(now), Some(now));
        mapping.some_primaries();
        mapping.answered(&failed(), false, now, 1.0);
        assert_eq!(mapping.begins(now), Some(now.after(Duration::from_millis(longest))));
        now = now.after(Duration::from_millis(longest));
        mapping.some_primaries();
        mapping.asks = false;
    }
}

#[test]
fn what_needs_the_first_map_waits_for_an_attempt_and_learns_why_the_last_one_failed() {
    let mut mapping = Mapping::default();
    assert!(matches!(mapping.wait(extend(after(30)), START), Wait::Waits));
    assert!(matches!(mapping.wait(extend(after(90)), START), Wait::Waits));
    let (late, why) = mapping.overdue(after(30));
    assert_eq!((late.len(), why.kind), (1, FailureKind::Timeout), "no attempt has failed so far");
    assert_eq!(mapping.answered(&failed(), false, after(40), 1.0).0.len(), 1);
    assert!(
        matches!(mapping.wait(extend(after(90)), after(41)), Wait::Refused(_, failure) if failure.kind == FailureKind::Refused)
    );
    assert!(matches!(mapping.wait(release(), after(41)), Wait::Waits), "a release may wait for the next attempt");
    assert!(matches!(mapping.wait(extend(after(90)), after(90)), Wait::Waits));
    assert_eq!(mapping.overdue(after(90)).1.kind, FailureKind::Refused);
    assert_eq!(mapping.answered(&found(&[1]), false, after(91), 1.0).0.len(), 1);
    assert!(matches!(mapping.wait(extend(after(99)), after(92)), Wait::Known(_)));
}

#[test]
fn what_needs_a_newer_map_than_nodes_are_being_asked_for_waits_for_the_next() {
    let mut mapping = Mapping::default();
    mapping.begins(START);
    mapping.some_primaries();
    mapping.await_map(extend(after(90)));
    assert!(!mapping.begins_at_once(), "they are being asked");
    let (waiting, again) = mapping.answered(&found(&[1]), false, START, 0.0);
    assert_eq!((waiting.len(), again), (0, Again::AtOnce));
    mapping.some_primaries();
    mapping.await_map(extend(after(99)));
    assert_eq!(mapping.answered(&found(&[1]), false, START, 0.0).0.len(), 1);
    assert_eq!((mapping.overdue(after(98)).0.len(), mapping.overdue(after(99)).0.len()), (0, 1));
    mapping.await_map(release());
    assert_eq!(mapping.take_waiting().len(), 1);
    mapping.some_primaries();
    assert_eq!(mapping.answered(&found(&[1]), false, START, 0.0).1, Again::Never);
    assert_eq!(mapping.begins(after(10)), Some(after(1_000)), "the map proves wrong");
    assert!(mapping.begins_at_once(), "they rest until then");
    mapping.some_primaries();
    assert_eq!(mapping.answered(&found(&[1]), false, after(20), 0.0).1, Again::Never);
}

#[test]
fn a_slot_that_nobody_was_ever_in_charge_of_is_a_hole() {
    let whole = |port: i64, last: u16| {
        let primary = Value::Array(vec![Value::BulkString("h".into()), Value::Int(port)]);
        let range = Value::Array(vec![Value::Int(0), Value::Int(last.into()), primary]);
        Ok(Topology::read(&Value::Array(vec![range]), &node(9)).unwrap())
    };
    let mut mapping = Mapping::default();
    assert!(mapping.has_hole(), "there is no map");
    for (found, has_hole) in [(whole(1, 16_382), true), (whole(1, 16_383), false), (whole(1, 7), false)] {
        mapping.answered(&found, false, START, 0.0);
        assert_eq!(mapping.has_hole(), has_hole);
    }
}
