//! The delivery of wake-ups: to the waiter that a message names, to the next one, to the first of every queue.

use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

use crate::op::{Failure, FailureKind};
use crate::server::Notice;
use crate::session::stub::{Stub, client, warnings};
use crate::{Client, Code, Error, Hold, Wait};

const LONG: Duration = Duration::from_secs(60);

/// A waiter that waits without an end.
fn waits(client: &Client, lock: &str, fair: bool) -> Receiver<Result<Hold, Error>> {
    let (sender, received) = mpsc::channel();
    client.lock(lock).ttl(LONG).wait(Wait::Forever).fair(fair).acquire().then(move |held| drop(sender.send(held)));
    received
}

#[test]
fn each_release_wakes_the_next_waiter_in_order() {
    let stub = Stub::new("order");
    let (client, events) = client(&stub);
    let mut held = client.lock("a").ttl(LONG).acquire_blocking().unwrap();
    let waiters: Vec<_> = (0..5).map(|_| waits(&client, "a", true)).collect();
    for waiter in &waiters {
        assert!(matches!(waiter.try_recv(), Err(TryRecvError::Empty)));
    }
    for (at, waiter) in waiters.iter().enumerate() {
        held.release_blocking().unwrap();
        held = waiter.recv_timeout(LONG).expect("it is woken").unwrap();
        let later = waiters[at + 1..].iter().all(|waiter| matches!(waiter.try_recv(), Err(TryRecvError::Empty)));
        assert!(later, "only the next one is woken");
    }
    assert!(events.lock().iter().any(|event| event.notified_ago.is_some()));
}

#[test]
fn a_long_queue_that_fails_does_not_end_on_the_stack() {
    let stub = Stub::new("stack");
    let (client, _) = client(&stub);
    let _held = client.lock("a").ttl(LONG).acquire_blocking().unwrap();
    let waiters: Vec<_> = (0..5_000).map(|_| waits(&client, "a", false)).collect();
    client.close_blocking().unwrap();
    for waiter in waiters {
        assert_eq!(waiter.recv().unwrap().unwrap_err().code(), Code::Closed);
    }
}

#[test]
fn a_message_for_a_waiter_that_has_left_takes_its_entry_off_the_queue_once_in_a_claim_window() {
    let stub = Stub::new("gone");
    let (client, _) = client(&stub);
    let _held = client.lock("a").ttl(LONG).acquire_blocking().unwrap();
    let _waiter = waits(&client, "a", false);
    let before = stub.submitted();
    for _ in 0..3 {
        assert!(stub.publish(Notice::Message("free 200 b999 a".to_owned())));
    }
    assert_eq!(stub.submitted() - before, 1);
    for nonsense in ["", "free", "later 200 b1 a", "free 200 b1 another prefix's"] {
        assert!(stub.publish(Notice::Message(nonsense.to_owned())));
    }
    assert!(stub.submitted() - before <= 2, "a message of a lock without waiters costs no more than one operation");
}

#[test]
fn a_server_that_refuses_to_answer_is_warned_of_and_one_that_broke_is_not() {
    let stub = Stub::new("not-listening");
    let (client, events) = client(&stub);
    let _held = client.lock("a").ttl(LONG).acquire_blocking().unwrap();
    let _waiter = waits(&client, "a", false);
    stub.publish(Notice::NotListening(Failure::unknown(FailureKind::Disconnected, "the connection broke")));
    assert_eq!(warnings(&events), Vec::<String>::new());
    stub.publish(Notice::NotListening(Failure::unknown(FailureKind::Denied, "no right to subscribe")));
    let received = warnings(&events);
    assert!(received.len() == 1 && received[0].starts_with("waiters poll"), "{received:?}");
}

#[test]
fn the_first_waiter_looks_for_itself_when_messages_begin_or_end() {
    let stub = Stub::new("looks");
    let (client, _) = client(&stub);
    let _held = client.lock("a").ttl(LONG).acquire_blocking().unwrap();
    let _waiters = [waits(&client, "a", false), waits(&client, "a", false)];
    for notice in [Notice::NotListening(Failure::unknown(FailureKind::Disconnected, "broke")), Notice::Listening] {
        let before = stub.submitted();
        stub.publish(notice.clone());
        assert!(stub.submitted() - before <= 1, "{notice:?}: one looks for all");
    }
}

#[test]
fn a_server_that_publishes_nothing_is_polled() {
    let stub = Stub::silent("polled");
    let (client, _) = client(&stub);
    let held = client.lock("a").ttl(LONG).acquire_blocking().unwrap();
    let waiter = waits(&client, "a", false);
    held.release_blocking().unwrap();
    assert!(waiter.recv_timeout(LONG).expect("it polls").is_ok());
}
