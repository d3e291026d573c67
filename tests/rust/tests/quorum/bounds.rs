//! `max_ttl` on every path, and quorums of an even number.

use locktender::{Code, Outcome};
use locktender_tests::{PATIENCE, TTL, eventually};

use crate::servers::{Ensemble, ms};

#[test]
fn no_hold_ever_remains_longer_than_max_ttl() {
    let mut quorum = Ensemble::start(3);
    let client = quorum.acquainted_with(|options| {
        options.max_ttl = ms(20_000);
        options.lock.ttl = ms(15_000);
    });
    let over = |result: Result<(), locktender::Error>| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(error.to_string().contains("max_ttl") && error.to_string().contains("20s"), "{error}");
    };
    over(client.lock("a").ttl(ms(20_001)).acquire_blocking().map(drop));
    over(client.lock("a").ttl(ms(20_000) + std::time::Duration::from_micros(1)).acquire_blocking().map(drop));
    let held = client.lock("a").ttl(ms(20_000)).acquire_blocking().unwrap();
    quorum.settled(&client, &held);
    over(held.extend(ms(20_001)).blocking());
    over(held.extend_by(ms(20_000)).blocking());
    held.extend(ms(20_000)).blocking().unwrap();
    assert!(held.is_valid(), "what was refused changed nothing");
    let kept = |quorum: &Ensemble, server: usize| quorum.servers[server].command(&["PTTL", "a"]).int();
    quorum.servers[0].restart_empty();
    eventually("healed", PATIENCE, || kept(&quorum, 0) > 0);
    assert!((0..3).all(|server| kept(&quorum, server) <= 20_000));
    let ticket = held.hand_over().unwrap();
    over(client.adoption(&ticket).unwrap().ttl(ms(20_001)).acquire_blocking().map(drop));
    let long = ticket.replace(" ttl=20000 ", " ttl=20001 ");
    assert_ne!(long, ticket);
    over(client.adopt(&long).blocking().map(drop));
    client.adopt(&ticket).blocking().unwrap();
}

#[test]
fn a_default_ttl_above_max_ttl_is_refused_before_anything_is_acquired() {
    let quorum = Ensemble::start(3);
    let above = quorum.builder().max_ttl(ms(5_000)).ttl(ms(5_001)).build();
    let error = above.unwrap_err();
    assert_eq!((error.code(), error.argument()), (Code::InvalidArgument, Some("max_ttl")), "{error}");
    let client = quorum.trusted_with(|options| {
        options.max_ttl = ms(5_000);
        options.lock.ttl = ms(5_000);
    });
    client.lock("a").acquire_blocking().unwrap();
}

#[test]
fn two_servers_need_both_and_four_need_three() {
    for (count, spare) in [(2, 0), (4, 1)] {
        let mut quorum = Ensemble::start(count);
        let (client, events) = quorum.watched_with(|options| options.unavailable_after = ms(2_000));
        for down in 0..spare {
            quorum.servers[down].kill();
        }
        let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
        events.next_renewal();
        assert!(held.is_valid(), "{count} servers: {:?}", held.check());
        assert!(client.lock("a").try_acquire_blocking().unwrap().is_none());
        quorum.servers[spare].kill();
        held.lost().wait_for(TTL).expect("no majority is left").unwrap();
        assert_eq!(client.lock("a").acquire_blocking().unwrap_err().code(), Code::Unavailable, "{count} servers");
        quorum.servers[spare].restart_empty();
        if spare == 1 {
            // Down to three servers, one of which doesn't vote.
            assert_eq!(client.lock("a").try_acquire_blocking().unwrap_err().code(), Code::Unavailable);
            quorum.servers[0].restart_empty();
        }
        client.initialize_quorum().blocking().unwrap();
        let held = client.lock("a").wait(2 * TTL).acquire_blocking().unwrap();
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
        quorum.left_clean("a");
    }
}
