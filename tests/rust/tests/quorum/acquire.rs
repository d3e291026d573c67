//! Acquires while servers are refused, silent, slow or split.

use std::net::TcpListener;
use std::time::Instant;

use locktender::{Client, ClientOptions, Code, FailureKind, Outcome};
use locktender_tests::{PATIENCE, PROMPTLY, TOLERANCE, TTL, eventually};

use crate::ensemble::{Ensemble, ms};

#[test]
fn f17_five_servers_with_one_refused_and_one_black_holed_answer_as_fast_as_the_third() {
    let mut quorum = Ensemble::start(5);
    let client = quorum.acquainted();
    quorum.servers[3].kill();
    quorum.proxies[4].black_hole();
    for (n, delay) in [10, 20, 30].into_iter().enumerate() {
        quorum.proxies[n].latency(ms(0), ms(delay));
    }
    for n in 0..10 {
        let start = Instant::now();
        let held = client.lock(format!("a{n}")).acquire_blocking().unwrap();
        let granted = start.elapsed();
        assert!(granted >= ms(30) && granted < ms(130), "{granted:?}");
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
        assert!(start.elapsed() < ms(230), "{:?}", start.elapsed());
    }
}

#[test]
fn f17_one_stopped_server_delays_nobody() {
    let quorum = Ensemble::start(5);
    let client = quorum.acquainted();
    quorum.servers[0].pause();
    for n in 0..10 {
        let start = Instant::now();
        let held = client.lock(format!("a{n}")).acquire_blocking().unwrap();
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
        assert!(start.elapsed() < ms(150), "{:?}", start.elapsed());
    }
    quorum.servers[0].resume();
    for n in 0..10 {
        quorum.left_clean(&format!("a{n}"));
    }
}

#[test]
fn waiting_for_every_server_does_not_use_a_short_ttl_up() {
    let quorum = Ensemble::start(3);
    drop(quorum.trusted());
    quorum.proxies[0].black_hole();
    let client = quorum.builder().configure(|options| options.response_timeout = None).build().unwrap();
    let start = Instant::now();
    let held = client.lock("a").ttl(ms(150)).wait(ms(0)).acquire_blocking().unwrap();
    assert!(held.is_valid() && start.elapsed() < ms(150), "{:?}", start.elapsed());
}

#[test]
fn f14_the_undo_of_a_round_never_touches_a_later_one() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted();
    for n in 0..12 {
        let name = format!("undo:{n}");
        quorum.proxies[n % 3].cut_after_apply(1, "~lt:fence");
        quorum.proxies[(n + 1) % 3].cut_after_apply(1, "~lt:fence");
        let held = client.lock(&name).ttl(ms(60_000)).wait(ms(10_000)).acquire_blocking().unwrap();
        // Undos of the failed round go on for half a second after the cut.
        if n % 6 == 0 {
            std::thread::sleep(ms(700));
        }
        assert!(quorum.count(&name, held.owner()) >= 2, "{:?}", quorum.values(&name));
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
        quorum.left_clean(&name);
    }
}

#[test]
fn f15_answers_slower_than_the_ttl_are_no_success_and_are_undone() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted();
    for proxy in &quorum.proxies[..2] {
        proxy.latency(ms(0), ms(300));
    }
    let error = client.lock("a").ttl(ms(200)).wait(ms(0)).acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.to_string().contains("later than the ttl allows"), "{error}");
    for proxy in &quorum.proxies {
        proxy.latency(ms(0), ms(0));
    }
    quorum.left_clean("a");
}

#[test]
fn f15_an_acquire_that_waited_longer_than_its_ttl_has_full_validity() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted();
    let first = client.lock("a").acquire_blocking().unwrap();
    let waiter = {
        let client = client.clone();
        std::thread::spawn(move || client.lock("a").ttl(TTL).acquire_blocking().unwrap().remaining())
    };
    std::thread::sleep(TTL + ms(100));
    first.release().blocking().unwrap();
    let remaining = waiter.join().unwrap();
    assert!(remaining > TTL / 3, "{remaining:?}");
}

#[test]
fn f18_a_majority_that_cannot_be_reached_takes_no_longer_than_the_wait_and_a_response_timeout() {
    let mut quorum = Ensemble::start(5);
    drop(quorum.trusted());
    quorum.servers[0].kill();
    quorum.servers[1].pause();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("redis://{}", silent.local_addr().unwrap());
    let urls = [quorum.proxies[0].url(), quorum.proxies[1].url(), silent, quorum.proxies[3].url(), quorum.proxies[4].url()];
    let client = |unavailable_after| {
        let builder = urls.iter().fold(Client::builder(), |builder, url| builder.url(url.as_str()));
        let change = |options: &mut ClientOptions| {
            options.connect_timeout = PATIENCE;
            options.response_timeout = Some(ms(1_000));
            options.unavailable_after = unavailable_after;
            options.lock.ttl = ms(60_000);
        };
        builder.configure(change).build().unwrap()
    };
    let patient = client(ms(60_000));
    for wait in [0, 400] {
        let start = Instant::now();
        let error = patient.lock("a").wait(ms(wait)).acquire_blocking().unwrap_err();
        assert_eq!((error.code(), error.servers().len()), (Code::Unavailable, 3), "{error}");
        assert!(start.elapsed() < ms(wait + 1_000) + TOLERANCE, "{:?}", start.elapsed());
    }
    let start = Instant::now();
    assert_eq!(patient.lock("a").try_acquire_blocking().unwrap_err().code(), Code::Unavailable);
    assert!(start.elapsed() < ms(1_000) + TOLERANCE, "{:?}", start.elapsed());
    let start = Instant::now();
    let error = client(ms(1_500)).lock("a").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(start.elapsed() >= ms(1_500) && start.elapsed() < ms(1_500 + 1_000) + ms(250), "{:?}", start.elapsed());
    assert!(
        error.servers().iter().any(|server| server.kind == FailureKind::Disconnected || server.kind == FailureKind::Refused),
        "{error}"
    );
    for server in [3, 4] {
        eventually("the attempts were undone", ms(2_000), || quorum.value(server, "a").is_none());
    }
    quorum.servers[1].resume();
    eventually("also on the stopped one", ms(2_000), || quorum.value(1, "a").is_none());
}

#[test]
fn a_majority_that_comes_back_while_a_client_waits_is_only_a_delay() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted_with(|options| options.response_timeout = Some(ms(300)));
    quorum.servers[..2].iter().for_each(locktender_tests::RealServer::pause);
    let start = Instant::now();
    let waiter = std::thread::spawn(move || {
        let held = client.lock("a").wait(ms(5_000)).acquire_blocking().unwrap();
        (start.elapsed(), held)
    });
    std::thread::sleep(ms(900));
    quorum.servers[..2].iter().for_each(locktender_tests::RealServer::resume);
    let (waited, held) = waiter.join().unwrap();
    assert!(waited >= ms(900) && waited < ms(2_400), "{waited:?}");
    // The requests of the failed rounds reach the servers that were stopped; only the last hold stays.
    std::thread::sleep(ms(800));
    assert!(quorum.count("a", held.owner()) >= 2, "{:?}", quorum.values("a"));
    held.release().blocking().unwrap();
    quorum.left_clean("a");
}

#[test]
fn a_foreign_key_on_one_server_is_no_conflict_and_on_a_majority_it_is() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted();
    quorum.servers[0].command(&["RPUSH", "a", "x"]);
    let held = client.lock("a").acquire_blocking().unwrap();
    assert_eq!(client.lock("a").inspect_blocking().unwrap().unwrap().owner, held.owner());
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    assert!(client.lock("a").inspect_blocking().unwrap().is_none());
    quorum.servers[1].command(&["RPUSH", "a", "x"]);
    for error in [client.lock("a").acquire_blocking().unwrap_err(), client.lock("a").inspect_blocking().unwrap_err()] {
        assert_eq!(error.code(), Code::KeyConflict, "{error}");
    }
    eventually("nothing of ours is left", PROMPTLY, || quorum.value(2, "a").is_none());
    assert_eq!(quorum.servers[0].command(&["LLEN", "a"]).int(), 1, "and what was there is");
}
