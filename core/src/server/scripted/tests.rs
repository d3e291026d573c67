//! Scripted servers: steps by kind of operation, failures, silence, and behaving without a step.

use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::error::Remaining;
use crate::name::{Keys, Kind};
use crate::op::holder::named::{in_short, named};
use crate::op::{Answer, FailureKind, LockOp, Verb, Verdict};

/// A time limit longer than any operation here takes.
const LONG: Duration = Duration::from_secs(10);

fn keys() -> Arc<Keys> {
    Arc::new(Keys::new(Kind::Exclusive, "", "k", true).unwrap())
}

fn acquire(owner: &str) -> Op {
    Op::Lock(LockOp {
        keys: keys(),
        by: named(owner).into(),
        verb: Verb::Acquire {
            ttl_ms: 60_000,
            proposal: 0,
            adopt: None,
            fair: false,
            place: None,
            quorum_config: None,
            job: None,
        },
    })
}

fn extend(owner: &str) -> Op {
    Op::Lock(LockOp { keys: keys(), by: named(owner).into(), verb: Verb::Extend { ttl_ms: 60_000, fence: 7 } })
}

fn release(owner: &str) -> Op {
    Op::Lock(LockOp { keys: keys(), by: named(owner).into(), verb: Verb::Release { leave: None, kept_ms: 0 } })
}

fn submit(server: &ScriptedServer, op: Op) -> Receiver<Answer> {
    let (sender, receiver) = channel();
    server.submit(
        Request::new(op, Tick::now().after(LONG)),
        Completion::new(move |answer| drop(sender.send(answer.map(in_short)))),
    );
    receiver
}

fn ask(server: &ScriptedServer, op: Op) -> Answer {
    submit(server, op).recv_timeout(LONG).unwrap()
}

fn verdict(answer: Answer) -> Verdict {
    answer.unwrap().verdict
}

#[test]
fn without_a_script_it_behaves() {
    let server = ScriptedServer::new("t");
    assert_eq!(ask(&server, acquire("a")).unwrap().verdict, Verdict::Vote);
    assert_eq!(ask(&server, acquire("b")).unwrap().holder(), Some("a"));
    assert_eq!(ask(&server, release("a")).unwrap().verdict, Verdict::Ok);
}

#[test]
fn each_operation_has_its_own_queue_and_then_its_always() {
    let server = ScriptedServer::new("t");
    server.play("acquire: busy ttl=500\n\n always release: gone \n any: fail refused\n extend: granted").unwrap();
    assert_eq!(server.unplayed(), 3);
    let busy = Verdict::Held { holder: "somebody".into(), remaining: Remaining::For(Duration::from_millis(500)) };
    assert_eq!(verdict(ask(&server, acquire("a"))), busy);
    assert_eq!(verdict(ask(&server, extend("a"))), Verdict::Ok);
    assert_eq!(ask(&server, release("a")).unwrap_err().kind, FailureKind::Refused);
    assert_eq!(verdict(ask(&server, release("a"))), Verdict::No { holder: None, remaining: Remaining::Gone });
    assert_eq!(server.unplayed(), 0);
    let seen: Vec<_> =
        server.seen().iter().map(|seen| (seen.op, seen.lock.clone().unwrap(), seen.owner.clone().unwrap())).collect();
    assert_eq!(seen.len(), 4);
    assert_eq!(seen[1], ("extend", "k".into(), named("a")));
}

#[test]
fn granted_succeeds_whatever_is_in_the_way() {
    let server = ScriptedServer::new("t");
    server.play("always any: granted").unwrap();
    for op in [acquire("a"), acquire("b")] {
        assert_eq!(ask(&server, op).unwrap().verdict, Verdict::Vote);
    }
    for op in
        [extend("c"), release("a"), Op::Lock(LockOp { keys: keys(), by: named("d").into(), verb: Verb::Confirm { fence: 3 } })]
    {
        assert_eq!(ask(&server, op.clone()).unwrap().verdict, Verdict::Ok, "{op:?}");
    }
    let quorum_config = crate::op::QuorumConfig { servers: 3, max_ttl_ms: 1 };
    for op in [Op::Trust { quorum_config }, Op::Greet { quorum_config: None }, Op::Greet { quorum_config: Some(quorum_config) }] {
        assert_eq!(ask(&server, op.clone()).unwrap().verdict, Verdict::Ok, "{op:?}");
    }
    server.next("acquire", "granted fence=42".parse().unwrap()).unwrap();
    assert_eq!(ask(&server, acquire("e")).unwrap().fence, 42);
    assert_eq!(ask(&server, Op::inspect(keys())).unwrap().fence, 42);
}

#[test]
fn a_prescribed_fence_is_that_of_the_whole_hold_of_every_kind() {
    for kind in [Kind::Exclusive, Kind::Read, Kind::Semaphore(2)] {
        let server = ScriptedServer::new("t");
        server.next("acquire", "granted fence=7".parse().unwrap()).unwrap();
        let keys = Arc::new(Keys::new(kind, "", "k", true).unwrap());
        let of_kind = |mut op: Op| {
            if let Op::Lock(op) = &mut op {
                op.keys = Arc::clone(&keys);
            }
            ask(&server, op).unwrap()
        };
        assert_eq!(of_kind(acquire("a")).fence, 7, "{kind:?}");
        for op in [extend("a"), release("a")] {
            assert_eq!(of_kind(op).verdict, Verdict::Ok, "{kind:?}");
        }
    }
}

#[test]
fn a_cut_after_apply_leaves_the_lock_and_an_open_outcome() {
    let server = ScriptedServer::new("t");
    server.next("acquire", Step::fail(FailureKind::Disconnected).applied()).unwrap();
    assert!(ask(&server, acquire("a")).unwrap_err().maybe_applied);
    assert_eq!(ask(&server, acquire("b")).unwrap().holder(), Some("a"));
    server.next("release", Step::fail(FailureKind::ReadOnly)).unwrap();
    assert!(!ask(&server, release("a")).unwrap_err().maybe_applied);
}

#[test]
fn a_late_answer_does_not_hold_up_the_next() {
    let server = ScriptedServer::new("t");
    server.next("acquire", Step::real().after(Duration::from_secs(2))).unwrap();
    let start = Tick::now();
    let late = submit(&server, acquire("a"));
    assert_eq!(submit(&server, acquire("b")).try_recv().unwrap().unwrap().holder(), Some("a"));
    assert!(late.try_recv().is_err());
    assert_eq!(late.recv_timeout(LONG).unwrap().unwrap().verdict, Verdict::Vote);
    assert!(Tick::now().since(start) >= Duration::from_secs(2));
}

#[test]
fn silence_ends_with_the_response_timeout() {
    let server = ScriptedServer::new("t");
    server.set_response_timeout(Duration::from_millis(20));
    server.next("acquire", Step::silence()).unwrap();
    let failure = ask(&server, acquire("a")).unwrap_err();
    assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::Timeout, true));
    assert_eq!(ask(&server, acquire("b")).unwrap().verdict, Verdict::Vote);
}

#[test]
fn close_and_drop_end_what_is_unanswered() {
    let server = ScriptedServer::new("t");
    server.set_response_timeout(LONG * 2);
    server.play("acquire: silence\n acquire: granted delay=15000").unwrap();
    let silent = submit(&server, acquire("a"));
    server.close();
    assert_eq!(silent.recv_timeout(LONG).unwrap().unwrap_err().kind, FailureKind::Closed);
    let late = submit(&server, acquire("a"));
    drop(server);
    assert_eq!(late.recv_timeout(LONG).unwrap().unwrap_err().kind, FailureKind::Closed);
}

#[test]
fn steps_read_back_as_they_are_written() {
    for text in [
        "real",
        "real delay=200",
        "granted",
        "granted fence=7",
        "busy owner=host=web-3%20id=1 ttl=500",
        "busy owner=x ttl=none delay=1",
        "gone",
        "conflict type=list",
        "quarantine ttl=500",
        "mismatch n=5 max_ttl=60000",
        "fail refused",
        "fail disconnected applied delay=5",
        "silence",
        "silence applied",
    ] {
        let step: Step = text.parse().unwrap();
        assert_eq!(step.to_string().parse::<Step>().unwrap(), step, "{text}");
    }
    let busy = Step::busy("host=web-3 id=1", Remaining::For(Duration::from_millis(500)));
    assert_eq!("busy owner=host%3Dweb-3%20id%3D1 ttl=500".parse::<Step>().unwrap(), busy);
}

#[test]
fn what_is_no_script_is_refused() {
    let server = ScriptedServer::new("t");
    for script in [
        "acquire",
        "acquire:",
        "acquire: maybe",
        "acquire: busy ttl=soon",
        "acquire: busy ttl=-1",
        "acquire: busy tll=5",
        "acquire: granted twice",
        "acquire: gone",
        "acquire: fail",
        "acquire: fail somehow",
        "acquire: silence delay=5",
        "release: granted fence=7",
        "release: quarantine",
        "acquires: busy",
        "always: busy",
    ] {
        let error = server.play(script).unwrap_err();
        assert_eq!(error.code(), crate::error::Code::InvalidArgument, "{script}");
    }
    assert_eq!(server.unplayed(), 0);
}

#[test]
fn the_operations_of_a_job_are_scripted_as_any_other() {
    use crate::{Begun, Client, Code};
    let server = ScriptedServer::new("t");
    let client = Client::builder().server(server.clone()).build().unwrap();
    server.play("end: fail refused\nstatus: fail denied\nreset: fail refused").unwrap();
    let Begun::Attempt(attempt) = client.job("mail").begin_blocking().unwrap() else { panic!("nobody has done it") };
    attempt.complete("sent").blocking().unwrap();
    assert_eq!(server.seen().iter().filter(|seen| seen.op == "end").count(), 2, "it is noted again after a failure");
    assert_eq!(client.job("mail").status_blocking().unwrap_err().code(), Code::Denied);
    assert_eq!(client.job("mail").reset_blocking().unwrap_err().code(), Code::Unavailable);
    assert_eq!(server.unplayed(), 0);
    server.play("end: gone").unwrap();
    let Begun::Attempt(attempt) = client.job("other").begin_blocking().unwrap() else { panic!("nobody has done it") };
    assert_eq!(attempt.complete("late").blocking().unwrap_err().code(), Code::LockLost);
}
