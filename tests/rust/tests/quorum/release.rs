//! Releases and closes while servers are down.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use locktender::{ClientOptions, Code, EventKind, LossReason, Outcome};
use locktender_tests::{PROMPTLY, RealServer, TOLERANCE, eventually};

use crate::ensemble::{Ensemble, ms};

#[test]
fn a_release_that_reaches_no_majority_is_unknown_continues_and_can_be_asked_again() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted_with(|options| {
        options.response_timeout = Some(ms(1_000));
        options.unavailable_after = ms(3_000);
    });
    let held = client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    eventually("every server has it", PROMPTLY, || quorum.count("a", held.owner()) == 3);
    quorum.servers[1..].iter().for_each(RealServer::pause);
    let start = Instant::now();
    let error = held.release().blocking().unwrap_err();
    assert_eq!((error.code(), error.servers().len()), (Code::Unavailable, 2), "{error}");
    assert!(start.elapsed() >= ms(3_000) && start.elapsed() < ms(3_000) + ms(250), "{:?}", start.elapsed());
    assert!(!held.is_valid());
    assert_eq!(quorum.value(0, "a"), None, "where it could it was released");
    quorum.servers[1..].iter().for_each(RealServer::resume);
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    assert_eq!(held.release().blocking().unwrap_err().code(), Code::NotHeld);
    quorum.left_clean("a");
}

#[test]
fn leaving_a_body_with_a_majority_down_is_no_error_and_the_release_follows() {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let quorum = Ensemble::start(3);
    drop(quorum.trusted());
    let seen = Arc::clone(&warnings);
    let sink = move |event: &locktender::LockEvent| {
        if event.kind == EventKind::Warning {
            seen.lock().unwrap().push(event.message.clone().unwrap_or_default());
        }
    };
    // Leaving waits for an answer, and not for as long as a release does.
    let change = |options: &mut ClientOptions| {
        options.response_timeout = Some(ms(1_000));
        options.unavailable_after = ms(60_000);
    };
    let client = quorum.builder().configure(change).sink(Arc::new(sink)).build().unwrap();
    let start = client
        .lock("a")
        .ttl(ms(60_000))
        .with_blocking(|_| {
            quorum.servers[..2].iter().for_each(RealServer::pause);
            Ok::<_, locktender::Error>(Instant::now())
        })
        .unwrap();
    assert!(start.elapsed() < ms(1_000) + ms(200), "{:?}", start.elapsed());
    assert!(warnings.lock().unwrap().iter().any(|warning| warning.contains("not confirmed")), "{:?}", warnings.lock().unwrap());
    quorum.servers[..2].iter().for_each(RealServer::resume);
    quorum.left_clean("a");
}

#[test]
fn a_release_after_the_loss_reports_the_next_owner_and_leaves_it_alone() {
    let quorum = Ensemble::start(3);
    let (client, other) = (quorum.acquainted(), quorum.acquainted());
    let held = client.lock("a").ttl(ms(400)).renew(false).acquire_blocking().unwrap();
    assert_eq!(held.lost().blocking().unwrap().reason, LossReason::Expired);
    let rival = other.lock("a").wait(ms(2_000)).acquire_blocking().unwrap();
    let release = held.release().blocking().unwrap();
    assert_eq!((release.outcome, release.next_owner.as_deref()), (Outcome::Taken, Some(rival.owner())));
    assert!(release.overrun > ms(0));
    assert!(rival.is_valid() && quorum.count("a", rival.owner()) >= 2);
}

#[test]
fn a_release_of_what_a_majority_lost_is_expired() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted();
    let held = client.lock("a").ttl(ms(30_000)).acquire_blocking().unwrap();
    eventually("every server has it", PROMPTLY, || quorum.count("a", held.owner()) == 3);
    for server in &quorum.servers[..2] {
        server.command(&["DEL", "a"]);
    }
    let release = held.release().blocking().unwrap();
    assert_eq!((release.outcome, release.next_owner), (Outcome::Expired, None));
    quorum.left_clean("a");
}

#[test]
fn f28_close_with_servers_down_releases_on_the_others_and_ends_in_time() {
    let mut quorum = Ensemble::start(5);
    let client = quorum.acquainted_with(|options| {
        options.response_timeout = Some(ms(1_000));
        options.unavailable_after = ms(60_000);
    });
    let held: Vec<_> = (0..5).map(|n| client.lock(format!("a{n}")).ttl(ms(60_000)).acquire_blocking().unwrap()).collect();
    eventually("every server has them", PROMPTLY, || (0..5).all(|n| quorum.count(&format!("a{n}"), held[n].owner()) == 5));
    let waiting = {
        let client = client.clone();
        std::thread::spawn(move || client.lock("a0").acquire_blocking().unwrap_err().code())
    };
    quorum.servers[0].kill();
    quorum.servers[1].pause();
    quorum.proxies[2].black_hole();
    let start = Instant::now();
    client.close_blocking().unwrap();
    assert!(start.elapsed() < ms(1_000) + TOLERANCE, "{:?}", start.elapsed());
    assert_eq!(waiting.join().unwrap(), Code::Closed);
    for held in &held {
        assert_eq!(held.check().unwrap_err().loss().unwrap().reason, LossReason::Closed);
    }
    for server in [3, 4] {
        eventually("released", PROMPTLY, || (0..5).all(|n| quorum.value(server, &format!("a{n}")).is_none()));
    }
    quorum.servers[1].resume();
    assert_eq!(client.lock("b").acquire_blocking().unwrap_err().code(), Code::Closed);
    assert_eq!(client.check_servers().blocking().unwrap_err().code(), Code::Closed);
}
