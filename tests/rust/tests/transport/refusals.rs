//! Refusals: the errors of every server version that can't serve, and that it has then done nothing if that is promised.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a broken fixture fails its test at once")]

use crate::peer::{PATIENCE, Subject, acquire, extend, named, release};
use locktender::op::{FailureKind, Op, Verdict};
use locktender_tests::{Binary, RealServer, Reply, ServerOptions};

/// Every kind of write, of which each must be refused in the same way.
fn writes() -> [Op; 3] {
    [acquire("a", "me"), extend("held", "me", u64::from(u32::MAX)), release("held", "me")]
}

/// A server with a lock of ours, then `break_it`; every write is refused with `kind` and changes nothing.
fn refuses(binary: &Binary, kind: FailureKind, maybe_applied: bool, writes: &[Op], break_it: impl Fn(&RealServer)) {
    let server = ServerOptions::new().binary(binary).start();
    server.command(&["SET", "held", &named("me"), "PX", "1000000"]);
    let subject = Subject::new(&server.unix_url(), PATIENCE);
    subject.ask(Op::inspect(crate::peer::keys("a"))).unwrap();
    break_it(&server);
    for op in writes {
        let failure = subject.ask(op.clone()).unwrap_err();
        assert_eq!((failure.kind, failure.maybe_applied), (kind, maybe_applied), "{} on {op:?}: {failure}", binary.name);
    }
    assert_eq!(server.command(&["GET", "held"]).text().as_deref(), Some(&*named("me")));
    assert_eq!(server.command(&["DBSIZE"]), Reply::Int(1), "{}", binary.name);
}

#[test]
fn a_server_out_of_memory_refuses_what_needs_some() {
    for binary in Binary::all() {
        refuses(&binary, FailureKind::OutOfMemory, false, &writes()[..1], |server| {
            server.command(&["CONFIG", "SET", "maxmemory", "1"]);
        });
    }
}

#[test]
fn a_full_server_extends_and_releases_what_is_held() {
    for binary in Binary::all() {
        let server = ServerOptions::new().binary(&binary).start();
        let subject = Subject::new(&server.unix_url(), PATIENCE);
        let fence = subject.ask(acquire("held", "me")).unwrap().fence;
        server.command(&["CONFIG", "SET", "maxmemory", "1"]);
        for op in [extend("held", "me", fence), release("held", "me")] {
            let verdict = subject.ask(op.clone()).map(|reply| reply.verdict);
            assert_eq!(verdict, Ok(Verdict::Ok), "{} on {op:?}", binary.name);
        }
    }
}

#[test]
fn a_replica_refuses_every_write() {
    for binary in Binary::all() {
        // A release waits for the primary.
        refuses(&binary, FailureKind::ReadOnly, false, &writes()[..2], |server| {
            server.command(&["REPLICAOF", "127.0.0.1", "1"]);
        });
    }
}

#[test]
fn a_server_that_can_t_persist_refuses_every_write() {
    for binary in Binary::all() {
        refuses(&binary, FailureKind::Misconfigured, false, &writes(), |server| {
            server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
        });
    }
}

#[test]
fn missing_rights_inside_a_script_are_a_denial() {
    for binary in Binary::all() {
        refuses(&binary, FailureKind::Denied, true, &writes(), |server| {
            server.command(&["ACL", "SETUSER", "default", "-mget", "-xadd"]);
        });
    }
}
