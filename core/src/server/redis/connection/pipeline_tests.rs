//! Pipeline: which commands wait for an answer, and for how long.

use std::sync::Arc;

use super::*;
use crate::name::{Keys, Kind};
use crate::op::{LockOp, Verb};
use crate::server::{Completion, Request};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn at(n: u64) -> Tick {
    Tick::from_micros(n * 1_000)
}

/// A pipeline whose socket got a command at the clock's origin; an answer may take a second.
fn pipeline() -> Pipeline {
    let mut pipeline = Pipeline::new(HandshakeFacts::default(), ms(1_000), 1);
    ask(&mut pipeline, at(0));
    pipeline
}

fn ask(pipeline: &mut Pipeline, now: Tick) {
    let request = Request::new(Op::Examine, Tick::NEVER);
    pipeline.push(InFlight::new(request, Completion::new(|_| ())), Form::BySha, now);
}

fn overdue(pipeline: &mut Pipeline, now: Tick) -> (usize, bool) {
    let overdue = pipeline.overdue(now);
    (overdue.late.len(), overdue.silent)
}

#[test]
fn a_silent_connection_is_half_open_and_a_slow_one_is_not() {
    for silent in [true, false] {
        let mut pipeline = pipeline();
        assert_eq!((pipeline.due(), overdue(&mut pipeline, at(999))), (at(1_000), (0, false)));
        if !silent {
            pipeline.arrived();
        }
        assert_eq!(overdue(&mut pipeline, at(1_000)), (1, silent));
    }
}

#[test]
fn what_is_found_overdue_has_as_much_time_more_to_be_read() {
    for (found, due) in [(1_100, 1_200), (1_900, 2_800), (3_600_000, 3_601_000)] {
        let mut pipeline = pipeline();
        assert_eq!(overdue(&mut pipeline, at(found)), (0, false));
        assert_eq!(pipeline.due(), at(due));
        assert_eq!(overdue(&mut pipeline, at(due - 1)), (0, false));
        assert_eq!(overdue(&mut pipeline, at(due)), (1, true), "{found}");
    }
}

#[test]
fn a_dead_connection_is_found_though_everybody_is_always_late() {
    let mut pipeline = pipeline();
    assert_eq!(overdue(&mut pipeline, at(1_100)), (0, false));
    ask(&mut pipeline, at(1_150));
    assert_eq!(overdue(&mut pipeline, at(1_300)), (1, true), "nothing has arrived since");
    pipeline.arrived();
    assert_eq!(overdue(&mut pipeline, at(2_250)), (0, false), "something has");
}

/// Sends an extension of a hold that ends then, and gives the receiver of its answer.
fn extend(pipeline: &mut Pipeline, now: Tick, ends: Tick) -> std::sync::mpsc::Receiver<Answer> {
    let (sender, received) = std::sync::mpsc::channel();
    let keys = Arc::new(Keys::new(Kind::Exclusive, "", "orders:42", true).unwrap());
    let op = Op::Lock(LockOp { keys, by: "ours".into(), verb: Verb::Extend { ttl_ms: 1_000, fence: 7 } });
    let completion = Completion::new(move |answer| sender.send(answer).unwrap());
    pipeline.push(InFlight::new(Request::new(op, ends), completion), Form::BySha, now);
    received
}

fn extended() -> Value {
    let text = |text: &str| Value::BulkString(text.into());
    Value::Array(vec![text("ok"), Value::Int(0), Value::Int(7), text("ours"), Value::Int(1_000)])
}

#[test]
fn an_extension_is_waited_for_as_long_as_its_hold_is_valid_if_the_connection_lives() {
    let mut pipeline = Pipeline::new(HandshakeFacts::default(), ms(1_000), 1);
    let received = extend(&mut pipeline, at(0), at(5_000));
    let over = extend(&mut pipeline, at(0), at(2_500));
    for now in [1_000, 2_000] {
        pipeline.arrived();
        let overdue = pipeline.overdue(at(now));
        assert_eq!((overdue.late.len(), overdue.silent, overdue.slow), (0, false, now == 1_000), "{now}");
    }
    pipeline.arrived();
    let overdue = pipeline.overdue(at(3_000));
    assert_eq!((overdue.late.len(), overdue.silent), (1, false), "the hold of one has ended");
    drop((overdue, over));
    assert!(pipeline.is_busy());
    let Landing::Answered(pending, answer, _) = pipeline.land(Ok(extended())) else { panic!("its answer counts") };
    pending.completion.complete(answer);
    assert!(received.recv().unwrap().is_ok());
    assert!(matches!(pipeline.land(Ok(extended())), Landing::Late), "nobody waits for that any more");
    assert!(!pipeline.is_busy());
}

#[test]
fn who_is_late_to_look_after_an_extension_is_not_due_again_before_the_time_it_got() {
    let mut pipeline = Pipeline::new(HandshakeFacts::default(), ms(1_000), 1);
    let _received = extend(&mut pipeline, at(0), at(60_000));
    pipeline.arrived();
    assert_eq!(overdue(&mut pipeline, at(1_000)), (0, false));
    assert_eq!(overdue(&mut pipeline, at(2_500)), (0, false), "half a second late, so there is half a second more");
    assert_eq!(pipeline.due(), at(3_000));
    assert_eq!(overdue(&mut pipeline, at(3_000)), (0, true));
    assert_eq!(pipeline.take(|_| true).len(), 1);
}

#[test]
fn a_connection_that_falls_silent_while_an_extension_is_waited_for_is_dead() {
    let mut pipeline = Pipeline::new(HandshakeFacts::default(), ms(1_000), 1);
    let _received = extend(&mut pipeline, at(0), at(60_000));
    pipeline.arrived();
    assert_eq!(overdue(&mut pipeline, at(1_000)), (0, false));
    assert_eq!(pipeline.due(), at(2_000));
    assert_eq!(overdue(&mut pipeline, at(2_000)), (0, true));
    assert_eq!(pipeline.take(|_| true).len(), 1, "it is unknown, as everything else on the connection");
}
