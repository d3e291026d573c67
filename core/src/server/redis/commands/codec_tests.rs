use std::sync::Arc;

use redis::RedisError;

use super::*;
use crate::name::{Keys, Kind};
use crate::op::LockOp;
use crate::op::job::{EarlierRun, Ending, OpenAttempt, ScheduledTime, Terms};
use crate::server::redis::commands::refusal::failure;

fn keys() -> Arc<Keys> {
    Arc::new(Keys::new(Kind::Exclusive, "", "k", true).unwrap())
}

fn release() -> Op {
    Op::Lock(LockOp { keys: keys(), by: "me".into(), verb: Verb::Release { leave: None, kept_ms: 0 } })
}

fn acquire() -> Op {
    begin(None)
}

fn begin(job: Option<Terms>) -> Op {
    let (adopt, place) = (None, None);
    let verb =
        Verb::Acquire { ttl_ms: 10_000, proposal: 7, adopt, fair: false, place, quorum_config: None, job: job.map(Box::new) };
    Op::Lock(LockOp { keys: keys(), by: "me".into(), verb })
}

fn ends(ending: Ending) -> Op {
    Op::Lock(LockOp {
        keys: keys(),
        by: "me".into(),
        verb: Verb::EndAttempt { ending, attempt: OpenAttempt::default(), leave: None },
    })
}

fn end() -> Op {
    ends(Ending::GivenBack)
}

fn done() -> Op {
    ends(Ending::Done { result: "7".into() })
}

fn publish() -> Op {
    Op::Publish { channel: "news".into(), message: "hello".into() }
}

fn extend() -> Op {
    Op::Lock(LockOp { keys: keys(), by: "me".into(), verb: Verb::Extend { ttl_ms: 10, fence: 9 } })
}

fn bulk(text: &str) -> Value {
    Value::BulkString(text.as_bytes().to_vec())
}

/// The failure for an error line of a server, as the crate reads the line.
fn failure_of(line: &str) -> Failure {
    let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
    reply(&release(), value).unwrap_err()
}

#[test]
fn an_answer_is_read_field_by_field() {
    let held = |remaining| Value::Array(vec![bulk("held"), Value::Int(5), bulk("7"), bulk("you"), remaining, bulk("later")]);
    let read = |value| reply(&acquire(), value).unwrap();
    let expected = |remaining| Reply::new(Verdict::Held { holder: "you".into(), remaining }, 5, 7);
    assert_eq!(read(held(Value::Int(250))), expected(Remaining::For(Duration::from_millis(250))));
    assert_eq!(read(held(Value::Int(-1))), expected(Remaining::Forever));
    assert_eq!(read(held(Value::Int(-2))), expected(Remaining::Gone));
    let foreign = |bytes: &[u8]| {
        let fields = vec![bulk("held"), Value::Int(5), Value::Int(0), Value::BulkString(bytes.into()), Value::Int(1)];
        read(Value::Array(fields)).holder().unwrap().to_owned()
    };
    assert_eq!(foreign(&[b'a', 0xff]), "a\u{fffd}");
    // The scripts cut at a number of bytes, here in the middle of a letter.
    let long = "é".repeat(SHOWN_BYTES);
    assert_eq!(foreign(&long.as_bytes()[..SHOWN_BYTES]), "é".repeat(SHOWN_BYTES / 2));
    let odd = "x".to_owned() + &long;
    assert_eq!(foreign(&odd.as_bytes()[..SHOWN_BYTES]), "x".to_owned() + &"é".repeat(SHOWN_BYTES / 2 - 1));
}

#[test]
fn the_first_attempt_for_a_scheduled_time_may_bring_the_run_that_it_leaves_behind() {
    let run = Value::Array(vec![bulk("70"), Value::Int(1), bulk("you"), bulk("it died"), bulk("60")]);
    let begins = [bulk("vote"), Value::Int(5), bulk("7"), bulk("me"), Value::Int(9), Value::Nil, Value::Nil];
    let read = |more: Vec<Value>| {
        let scheduled_time = Some(ScheduledTime { at_ms: 80, max_lateness_ms: 1, waits: false });
        let op = begin(Some(Terms { max_attempts: 1, retention_ms: 60, scheduled_time }));
        let answer = reply(&op, Value::Array([&begins[..], &more].concat())).unwrap();
        (answer.attempt, answer.earlier)
    };
    let attempt = |failures| Some(AttemptNumber { number: 2, max: 3, failures });
    let earlier = EarlierRun { scheduled_time_ms: 70, attempts: 1, by: "you".into(), error: "it died".into(), retention_ms: 60 };
    for (more, expected) in [
        (vec![Value::Int(2), Value::Int(3)], (attempt(0), None)),
        (vec![Value::Int(2), Value::Int(3), Value::Int(1)], (attempt(1), None)),
        (vec![Value::Int(2), Value::Int(3), Value::Int(0), run], (attempt(0), Some(Box::new(earlier)))),
    ] {
        assert_eq!(read(more), expected);
    }
}

#[test]
fn a_marker_is_shown_as_it_is() {
    let read = |remove, value| reply(&Op::Marker { remove }, value).map(|reply| reply.verdict);
    assert_eq!(read(false, bulk("n=3 more")), Ok(Verdict::Marker(Some("n=3 more".into()))));
    assert_eq!(read(false, Value::Nil), Ok(Verdict::Marker(None)));
    assert_eq!(read(true, Value::Int(1)), Ok(Verdict::Marker(None)));
    assert_eq!(read(true, Value::Int(0)), Ok(Verdict::Marker(None)));
    assert!(read(false, Value::Int(1)).is_err());
}

#[test]
fn a_number_says_what_was_done() {
    const TIME: u64 = 1_795_227_730_123_456;
    let Op::Lock(LockOp { keys, verb: Verb::Acquire { .. }, .. }) = acquire() else { unreachable!() };
    let inspect = Op::inspect(keys);
    let time = i64::try_from(TIME).unwrap();
    let terms = Terms { max_attempts: 3, retention_ms: 60, scheduled_time: None };
    for (op, number, expected) in [
        (acquire(), time, Some(Reply::new(Verdict::Vote, TIME, 7))),
        (acquire(), 0, Some(Reply::new(Verdict::Vote, 0, 7))),
        (acquire(), 1, None),
        (acquire(), -time, None),
        (begin(Some(terms)), time, None),
        (end(), 1, None),
        (publish(), 3, Some(Reply::new(Verdict::Ok, 0, 0))),
        (publish(), -time, None),
        (done(), 1, None),
        (done(), time, Some(Reply::new(Verdict::Ok, TIME, 0))),
        (end(), time, None),
        (extend(), -time, Some(Reply::new(Verdict::Ok, TIME, 9))),
        (extend(), -1, None),
        (extend(), 1, None),
        (extend(), time, None),
        (release(), 1, Some(Reply::new(Verdict::Ok, 0, 0))),
        (release(), time, None),
        (release(), -1, None),
        (inspect, time, None),
    ] {
        assert_eq!(reply(&op, Value::Int(number)).ok(), expected, "{op:?} {number}");
        assert_eq!(is_about_another(&op, &Value::Int(number)), expected.is_none(), "{op:?} {number}");
    }
}

#[test]
fn what_no_script_of_ours_says_is_a_protocol_failure_of_unknown_outcome() {
    for value in [
        Value::Nil,
        Value::Okay,
        bulk("vote"),
        Value::Array(vec![]),
        Value::Array(vec![bulk("vote"), Value::Int(1), Value::Int(1), Value::Nil]),
        Value::Array(vec![bulk("vote"), Value::Int(1), Value::Int(-1), Value::Nil, Value::Int(1)]),
        Value::Array(vec![bulk("ok"), Value::Int(1), Value::Int(1), Value::Nil, Value::Int(1)]),
        Value::Array(vec![bulk("later"), Value::Int(1), Value::Int(1), Value::Nil, Value::Int(1)]),
        bulk(&"é".repeat(900)),
    ] {
        let failure = reply(&acquire(), value).unwrap_err();
        assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::Protocol, true), "{failure}");
        assert!(failure.message.len() < 600, "{failure}");
    }
}

#[test]
fn a_server_s_error_says_what_is_wrong_and_whether_it_was_refused_as_a_whole() {
    for (line, kind, maybe_applied) in [
        ("LOADING Redis is loading the dataset in memory", FailureKind::Loading, false),
        ("READONLY You can't write against a read only replica. script: 5a, on @user_script:61.", FailureKind::ReadOnly, false),
        ("MISCONF Redis is configured to save RDB snapshots", FailureKind::Misconfigured, false),
        ("OOM command not allowed when used memory > 'maxmemory'.", FailureKind::OutOfMemory, false),
        ("CLUSTERDOWN The cluster is down", FailureKind::ClusterDown, false),
        ("TRYAGAIN Multiple keys request during rehashing of slot", FailureKind::ClusterDown, false),
        ("NOAUTH Authentication required.", FailureKind::Denied, false),
        ("WRONGPASS invalid username-password pair or user is disabled.", FailureKind::Denied, false),
        ("NOPERM this user has no permissions to run the 'evalsha' command", FailureKind::Denied, true),
        ("ERR ACL failure in script: User x has no permissions to run the 'set' command", FailureKind::Denied, true),
        (
            "ERR Error running script (call to f_a9): @user_script:18: @user_script: 18: The user executing the script can't run this command or subcommand",
            FailureKind::Denied,
            true,
        ),
        ("NOSCRIPT No matching script. Please use EVAL.", FailureKind::Other, false),
        (
            "ERR Error running script (call to f_5a): @user_script:5: @user_script: 5: -OOM command not allowed when used memory > 'maxmemory'.",
            FailureKind::OutOfMemory,
            false,
        ),
        (
            "ERR Error running script (call to f_5a): @user_script:5: @user_script: 5: -READONLY You can't write against a read only replica.",
            FailureKind::ReadOnly,
            false,
        ),
        ("ERR Error running script (call to f_5a): @user_script:5: attempt to index a nil value", FailureKind::Other, true),
        ("ERR unknown command 'EVALSHA'", FailureKind::Denied, false),
        ("MOVED 866 127.0.0.1:7001", FailureKind::Mismatch, false),
        ("ASK 866 127.0.0.1:7001", FailureKind::Mismatch, false),
        ("CROSSSLOT Keys in request don't hash to the same slot", FailureKind::Mismatch, false),
    ] {
        let failure = failure_of(line);
        assert_eq!((failure.kind, failure.maybe_applied), (kind, maybe_applied), "{line}: {failure}");
    }
}

#[test]
fn a_broken_connection_leaves_the_outcome_open_only_if_something_was_sent() {
    for (kind, expected) in [
        (std::io::ErrorKind::ConnectionRefused, FailureKind::Refused),
        (std::io::ErrorKind::TimedOut, FailureKind::Timeout),
        (std::io::ErrorKind::BrokenPipe, FailureKind::Disconnected),
        (std::io::ErrorKind::UnexpectedEof, FailureKind::Disconnected),
    ] {
        let error = RedisError::from(std::io::Error::from(kind));
        for sent in [false, true] {
            let failure = failure(&error, sent);
            assert_eq!((failure.kind, failure.maybe_applied), (expected, sent), "{kind:?}");
        }
    }
}

#[test]
fn an_answer_about_another_owner_belongs_to_another_operation() {
    let extend = extend();
    let inspect = Op::inspect(keys());
    for (op, tag, holder, another) in [
        (acquire(), "vote", Some("me"), false),
        (acquire(), "vote", Some("you"), true),
        (acquire(), "vote", None, true),
        (acquire(), "held", Some("you"), false),
        (acquire(), "held", Some("me"), true),
        (acquire(), "quarantine", None, false),
        (extend.clone(), "ok", Some("me"), false),
        (extend.clone(), "ok", Some("you"), true),
        (extend.clone(), "ok", None, true),
        (extend.clone(), "no", Some("me"), false),
        (extend.clone(), "no", Some("you"), false),
        (extend, "no", None, false),
        (release(), "ok", None, false),
        (release(), "ok", Some("me"), true),
        (release(), "no", Some("you"), false),
        (release(), "no", None, false),
        (release(), "no", Some("me"), true),
        (inspect, "info", Some("you"), false),
    ] {
        let holder = holder.map_or(Value::Nil, bulk);
        let answer = Value::Array(vec![bulk(tag), Value::Int(1), Value::Int(1), holder, Value::Int(1)]);
        assert_eq!(is_about_another(&op, &answer), another, "{op:?} {answer:?}");
    }
    assert!(!is_about_another(&acquire(), &Value::Okay) && !is_about_another(&Op::Examine, &Value::Array(vec![])));
}
