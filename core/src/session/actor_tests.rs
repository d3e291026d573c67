//! The actor of one acquisition: order of inputs, callers that leave, ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::session::stub::{Stub, client};
use crate::{Code, Error, EventKind, LossReason, Wait};

const LONG: Duration = Duration::from_secs(60);

/// Runs `then` when the call has ended; gives the receiver of the result.
fn result<T: Send + 'static>(call: crate::Call<T>) -> mpsc::Receiver<Result<T, Error>> {
    let (sender, received) = mpsc::channel();
    call.then(move |result| drop(sender.send(result)));
    received
}

#[test]
fn an_answer_inside_submit_is_an_answer_like_any_other() {
    let stub = Stub::new("inside");
    let (client, _) = client(&stub);
    let held = client.lock("a").ttl(LONG).acquire_blocking().unwrap();
    assert!(held.is_valid());
    assert_eq!(held.release_blocking().unwrap().outcome, crate::Outcome::Released);
    assert_eq!(held.check().unwrap_err().code(), Code::NotHeld);
}

#[test]
fn a_grant_whose_caller_has_left_is_given_back() {
    let stub = Stub::new("left");
    let (client, _) = client(&stub);
    stub.hold_back();
    let call = client.lock("a").ttl(LONG).acquire();
    let cancel = call.then(|_| panic!("nobody is called after a cancellation"));
    cancel.cancel();
    // The acquire, then its removal: each is executed, and nothing is left.
    while stub.waiting() > 0 {
        stub.answer();
    }
    let free = result(client.lock("a").try_acquire());
    stub.answer();
    assert!(free.recv().unwrap().unwrap().is_some(), "the lock is free");
}

#[test]
fn a_handle_that_is_dropped_gives_the_lock_back() {
    let stub = Stub::new("dropped");
    let (client, events) = client(&stub);
    drop(client.lock("a").ttl(LONG).acquire_blocking().unwrap());
    assert!(client.lock("a").ttl(LONG).try_acquire_blocking().unwrap().is_some());
    assert!(events.lock().iter().any(|event| event.kind == EventKind::Released));
}

#[test]
fn an_acquisition_has_one_alarm_and_none_when_it_has_ended() {
    let stub = Stub::new("alarms");
    let (client, _) = client(&stub);
    let held = client.lock("a").ttl(LONG).acquire_blocking().unwrap();
    let session = client.session().unwrap();
    let id = session.registry.all()[0].id;
    let alarms = || session.runtime().timers().count(id);
    assert_eq!(alarms(), 1, "for the renewal");
    stub.hold_back();
    let released = result(held.release());
    assert_eq!(alarms(), 1, "for a release without an answer");
    stub.answer();
    released.recv().unwrap().unwrap();
    assert_eq!(alarms(), 0);
}

#[test]
fn inputs_of_many_threads_are_handled_one_at_a_time_and_each_has_its_result() {
    let stub = Stub::new("threads");
    let (client, _) = client(&stub);
    let held = Arc::new(client.lock("a").ttl(LONG).acquire_blocking().unwrap());
    let done = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (held, done) = (Arc::clone(&held), Arc::clone(&done));
            thread::spawn(move || {
                for _ in 0..50 {
                    held.renew_now().then({
                        let done = Arc::clone(&done);
                        move |result| {
                            result.unwrap();
                            done.fetch_add(1, Ordering::SeqCst);
                        }
                    });
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(done.load(Ordering::SeqCst), 400, "the server answers inside submit, so nothing is under way");
    assert!(held.is_valid());
}

#[test]
fn a_watcher_learns_of_a_loss_once_and_one_that_comes_late_at_once() {
    let stub = Stub::new("watchers");
    let (client, _) = client(&stub);
    let held = client.lock("a").ttl(LONG).renew(false).max_hold(Duration::from_millis(20)).acquire_blocking().unwrap();
    let first = held.lost_blocking(LONG).unwrap().expect("the hold ends by itself");
    let again = held.lost_blocking(Duration::ZERO).unwrap().expect("it is known by now");
    assert_eq!((first.reason, again.reason), (LossReason::MaxHold, LossReason::MaxHold));
}

#[test]
fn a_close_ends_the_acquires_under_way_and_one_that_begins_meanwhile() {
    let stub = Stub::new("closing");
    let (client, _) = client(&stub);
    let held = client.lock("a").ttl(LONG).acquire_blocking().unwrap();
    let waits = result(client.lock("a").ttl(LONG).wait(Wait::Forever).acquire());
    client.close_blocking().unwrap();
    assert_eq!(waits.recv().unwrap().unwrap_err().code(), Code::Closed);
    assert_eq!(held.check().unwrap_err().loss().unwrap().reason, LossReason::Closed);
    assert_eq!(client.lock("b").acquire_blocking().unwrap_err().code(), Code::Closed);
}

#[test]
fn a_round_without_an_answer_is_undone_and_another_one_is_granted() {
    let stub = Stub::new("failed");
    let (client, _) = client(&stub);
    stub.hold_back();
    let ended = result(client.lock("a").ttl(LONG).acquire());
    assert_eq!(stub.submitted(), 1);
    stub.refuse();
    let held = loop {
        // The removal, then the acquire of the next round, which a timer starts.
        if stub.waiting() > 0 {
            stub.answer();
        }
        match ended.recv_timeout(Duration::from_millis(1)) {
            Ok(held) => break held.unwrap(),
            Err(error) => assert_eq!(error, RecvTimeoutError::Timeout),
        }
    };
    assert!(held.is_valid());
    assert!(stub.submitted() >= 3, "acquire, removal, acquire");
}

#[test]
fn a_hold_is_released_for_good_once_its_holder_knows_the_outcome() {
    let stub = Stub::new("for-good");
    let (client, _) = client(&stub);
    let held = client.lock("a").ttl(LONG).acquire_blocking().unwrap();
    stub.hold_back();
    let released = result(held.release());
    assert!(!held.is_released(), "the release is under way");
    stub.answer();
    released.recv().unwrap().unwrap();
    assert!(held.is_released());
    let expected = Error::released("a").to_string();
    assert_eq!(held.check().unwrap_err().to_string(), expected);
    assert_eq!(result(held.release()).recv().unwrap().unwrap_err().to_string(), expected);
}

#[test]
fn a_hold_that_was_lost_or_handed_over_is_not_released_for_good() {
    let stub = Stub::new("not-for-good");
    let (client, _) = client(&stub);
    let lost = client.lock("lost").ttl(LONG).acquire_blocking().unwrap();
    let moved = client.lock("moved").ttl(LONG).acquire_blocking().unwrap();
    moved.hand_over().unwrap();
    client.close_blocking().unwrap();
    let _ = lost.release_blocking();
    assert_eq!((lost.is_released(), moved.is_released()), (false, false));
}
