//! A forked child with its parent's process id, in a separate namespace: the count of forks distinguishes the two.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use locktender::host::Process;
use locktender::{Client, Code, Outcome};
use locktender_tests::{RealServer, TTL};

/// Alone in its process: all that the others have made would be a parent's.
#[test]
fn what_a_parent_made_is_not_its_childs_also_under_the_same_process_id() {
    let server = RealServer::start();
    let here = Client::open(server.url()).unwrap();
    let memory = Client::open("memory://forked").unwrap();
    let held = here.lock("a").ttl(TTL).acquire_blocking().unwrap();
    let of_memory = memory.lock("a").acquire_blocking().unwrap();
    assert!(held.is_valid() && of_memory.is_valid());
    let waiters = || here.lock("a").inspect().blocking().unwrap().unwrap().waiters;
    let mut waiting = Box::pin(here.lock("a").fair(true).acquire());
    assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    while waiters() == 0 {}

    // What the interpreter's hook does in a child.
    Process::was_forked();

    for held in [&held, &of_memory] {
        assert!(!held.is_valid());
        assert_eq!(held.remaining(), Duration::ZERO);
        assert_eq!(held.check().unwrap_err().code(), Code::Forked);
        assert_eq!(held.extend(TTL).blocking().unwrap_err().code(), Code::Forked);
        assert_eq!(held.release().blocking().unwrap_err().code(), Code::Forked);
    }
    assert!(here.lock("a").try_acquire_blocking().unwrap().is_none(), "it is the parent's");
    drop(held);
    assert!(here.lock("a").try_acquire_blocking().unwrap().is_none(), "a child's copy gives nothing back");
    drop(waiting);
    assert_eq!(waiters(), 1, "nor does it give up what its parent waits for");
    let own = here.lock("b").acquire_blocking().unwrap();
    assert_eq!(own.release().blocking().unwrap().outcome, Outcome::Released);
    assert!(memory.lock("a").try_acquire_blocking().unwrap().is_some(), "a child begins with an empty memory");
}
