//! Hand-over from one client to another on a quorum.

use locktender::{Code, Outcome};
use locktender_tests::{PATIENCE, PROMPTLY, eventually};

use crate::servers::{Ensemble, ms};

#[test]
fn a_hold_moves_to_another_client_while_a_third_waits() {
    let quorum = Ensemble::start(3);
    let (from, to, third) = (quorum.acquainted(), quorum.acquainted(), quorum.acquainted());
    let held = from.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    eventually("every server has it", PROMPTLY, || quorum.count("a", held.owner()) == 3);
    let waiter = std::thread::spawn(move || third.lock("a").acquire_blocking().unwrap().fence());
    let ticket = held.hand_over().unwrap();
    assert!(!held.is_valid());
    assert_eq!(held.release().blocking().unwrap_err().code(), Code::NotHeld);
    let adopted = to.adopt(&ticket).blocking().unwrap();
    assert!(adopted.fence() > held.fence() && adopted.owner() != held.owner());
    assert!(adopted.remaining() > ms(59_000));
    eventually("every server has the new one", PROMPTLY, || quorum.count("a", adopted.owner()) == 3);
    drop(held);
    assert!(!waiter.is_finished() && adopted.is_valid());
    assert_eq!(adopted.release().blocking().unwrap().outcome, Outcome::Released);
    assert!(waiter.join().unwrap() > adopted.fence());
    quorum.left_clean("a");
}

#[test]
fn a_ticket_is_good_once_and_with_a_minority_down() {
    let mut quorum = Ensemble::start(5);
    let (from, to) = (quorum.acquainted(), quorum.acquainted());
    let held = from.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    eventually("every server has it", PROMPTLY, || quorum.count("a", held.owner()) == 5);
    let ticket = held.hand_over().unwrap();
    quorum.servers[0].kill();
    quorum.proxies[1].black_hole();
    let adopted = to.adopt(&ticket).blocking().unwrap();
    let again = from.adopt(&ticket).blocking().unwrap_err();
    assert_eq!(again.code(), Code::LockLost, "three servers show the new holder");
    assert_eq!(again.loss().and_then(|loss| loss.next_owner.as_deref()), Some(adopted.owner()));
    quorum.proxies[1].restore();
    quorum.servers[0].restart_empty();
    assert_eq!(adopted.release().blocking().unwrap().outcome, Outcome::Released);
    quorum.left_clean("a");
}

#[test]
fn a_ticket_whose_hold_has_expired_is_lost_and_an_ordinary_acquire_only_if_asked_for() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted();
    let held = client.lock("a").ttl(ms(2_000)).acquire_blocking().unwrap();
    let ticket = held.hand_over().unwrap();
    eventually("expired", PATIENCE, || quorum.values("a").iter().all(Option::is_none));
    assert_eq!(client.adopt(&ticket).blocking().unwrap_err().code(), Code::LockLost);
    assert!(quorum.values("a").iter().all(Option::is_none), "and nothing is taken");
    let adopted = client.adoption(&ticket).unwrap().or_acquire(true).acquire_blocking().unwrap();
    assert!(adopted.fence() > held.fence());
}
