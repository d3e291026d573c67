//! Roles: a replica is not a server for locks, whatever it would answer.

use std::thread::sleep;
use std::time::Instant;

use locktender::{Code, EventKind, FailureKind};
use locktender_tests::{Events, PATIENCE, TTL};

use crate::pair::{Pair, ms};
use crate::peer::{Subject, acquire, extend, release};

#[test]
fn a_replica_that_lags_never_answers_for_the_primary() {
    let mut pair = Pair::start();
    pair.cut_link();
    let (client, events) = Events::of(pair.builder());
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    events.at_least(EventKind::Renewed, 1);
    // The replica doesn't know the lock: it would answer that the lock is nobody's.
    pair.address.redirect(pair.replica.port());
    events.at_least(EventKind::ServerFailed, 1);
    assert!(held.is_valid(), "{:?}", held.check());
    pair.address.redirect(pair.primary.port());
    events.next_renewal();
    assert!(held.is_valid(), "{:?}", held.check());
    assert_eq!(events.count(EventKind::Lost), 0);
}

#[test]
fn nothing_is_sent_to_a_replica_and_the_address_is_asked_for_again_without_haste() {
    let pair = Pair::start();
    let mut address = locktender_tests::Proxy::to(pair.replica.port());
    let subject = Subject::new(&address.url(), PATIENCE);
    for op in [acquire("a", "b"), extend("a", "b", 1)] {
        let failure = subject.ask(op).unwrap_err();
        assert_eq!((failure.kind, failure.maybe_applied), (FailureKind::ReadOnly, false), "{failure}");
        assert!(failure.message.contains("replica"), "{failure}");
    }
    let (begun, before) = (Instant::now(), address.connections());
    let waiting = subject.submit(release("a", "b"));
    sleep(ms(2_000));
    // Pauses of 25 to 500 ms, which double: a dozen attempts in two seconds at most.
    let attempts = address.connections() - before;
    let most = 6 + usize::try_from(begun.elapsed().as_millis() / 250).unwrap();
    assert!((3..=most).contains(&attempts), "{attempts} attempts in {:?}", begun.elapsed());
    address.redirect(pair.primary.port());
    waiting.wait().unwrap();
}

#[test]
fn an_acquire_says_that_only_a_replica_was_found() {
    let pair = Pair::start();
    let address = locktender_tests::Proxy::to(pair.replica.port());
    let client = locktender::Client::builder().url(address.url()).unavailable_after(ms(300)).build().unwrap();
    let error = client.lock("a").acquire_blocking().unwrap_err();
    assert_eq!((error.code(), error.servers()[0].kind), (Code::Unavailable, FailureKind::ReadOnly), "{error}");
    assert!(error.to_string().contains(&format!("this is a replica of 127.0.0.1:{}", pair.primary.port())), "{error}");
}
