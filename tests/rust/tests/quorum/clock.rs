//! Servers whose clocks jump: the machine of the core by a clock of the test, and real servers by one that a test can set.

use std::time::Instant;

use locktender::{EventKind, LossReason, Outcome};
use locktender_tests::{RealServer, ServerOptions, TTL};

use crate::ensemble::{Ensemble, ms};
use crate::jumpy::{JumpyServer, watched};
use crate::votes::scripts_run;

const HOUR: std::time::Duration = ms(3_600_000);

#[test]
fn a_jump_on_a_minority_costs_nothing() {
    let servers = JumpyServer::several(5);
    let (client, events) = watched(&servers);
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    servers[0].jump(HOUR);
    servers[3].jump(HOUR);
    events.next_renewal();
    assert!(held.is_valid(), "{:?}", held.check());
    assert_eq!((servers[0].count("heal"), servers[1].count("heal")), (1, 0), "their keys expired, and were written again");
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    let next = client.lock("a").acquire_blocking().unwrap();
    assert!(next.fence() > held.fence());
}

#[test]
fn a_server_that_jumped_counts_once_it_has_confirmed_again() {
    let servers = JumpyServer::several(5);
    let (client, events) = watched(&servers);
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    events.more(EventKind::Renewed, 1);
    let before = servers[4].count("extend");
    // Less than remains, so no key is lost; but each is gone a third of a second before its holder believes.
    servers[..3].iter().for_each(|server| server.jump(ms(330)));
    events.more(EventKind::Renewed, 1);
    assert_eq!(servers[4].count("extend") - before, 2, "the first round found the jump, the second confirmed");
    assert!(held.is_valid());
    events.more(EventKind::Renewed, 1);
    assert_eq!(servers[4].count("extend") - before, 3, "and all is as before");
}

#[test]
fn a_jump_that_expires_a_majority_is_a_loss_and_fences_continue_to_rise() {
    let servers = JumpyServer::several(3);
    let (client, _) = watched(&servers);
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    servers[0].jump(HOUR);
    servers[1].jump(2 * HOUR);
    let loss = held.lost().wait_for(TTL).expect("the next renewal finds it").unwrap();
    assert_eq!(loss.reason, LossReason::Missing);
    let mut last = held.fence();
    for _ in 0..5 {
        let held = client.lock("a").wait(ms(2_000)).acquire_blocking().unwrap();
        assert!(held.fence() > last);
        last = held.fence();
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    }
}

/// So many real servers, the first of them with clocks that can be set.
fn of_which_jump(count: usize, jumping: usize) -> Ensemble {
    let server = |n| if n < jumping { ServerOptions::new().clock().start() } else { RealServer::start() };
    Ensemble::of((0..count).map(server).collect())
}

#[test]
fn a_real_server_that_jumps_expires_its_key_and_nobody_else_is_granted_the_lock() {
    let quorum = of_which_jump(5, 1);
    let (client, rival) = (quorum.acquainted(), quorum.acquainted());
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    quorum.settled(&client, &held);
    quorum.servers[0].jump(HOUR);
    // The key is an hour old there. The rival gets that one vote, or comes after the next renewal, which writes the key again.
    let until = Instant::now() + TTL;
    while Instant::now() < until {
        assert!(rival.lock("a").try_acquire_blocking().unwrap().is_none());
        assert!(held.is_valid(), "{:?}", held.check());
    }
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    let next = rival.lock("a").wait(ms(5_000)).acquire_blocking().unwrap();
    assert!(next.fence() > held.fence());
    assert_eq!(next.release().blocking().unwrap().outcome, Outcome::Released);
    quorum.left_clean("a");
}

#[test]
fn a_real_server_that_jumped_does_not_count_until_it_has_confirmed_again() {
    let quorum = of_which_jump(3, 2);
    let (client, events) = quorum.watched();
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    quorum.settled(&client, &held);
    // A check is answered behind everything that was sent before it, and is a script itself.
    let scripts = || {
        client.check_servers().blocking().unwrap();
        scripts_run(&quorum.servers[2])
    };
    let extensions = || {
        let before = scripts();
        events.more(EventKind::Renewed, 1);
        scripts() - before - 1
    };
    // From here on every server knows the scripts.
    events.more(EventKind::Renewed, 1);
    assert_eq!(extensions(), 1);
    // Less than remains, so no key is lost; but two of three are gone a second before their holder believes.
    quorum.servers[..2].iter().for_each(|server| server.jump(ms(1_000)));
    assert_eq!(extensions(), 2, "the first round found the jumps, the second confirmed");
    assert!(held.is_valid());
    assert_eq!(extensions(), 1, "and all is as before");
}

#[test]
fn a_jump_is_reported_once_however_many_holds_see_it() {
    let quorum = of_which_jump(3, 1);
    let (client, events) = quorum.watched();
    let names = ["a", "b", "c"];
    let holds = names.map(|name| client.lock(name).ttl(TTL).acquire_blocking().unwrap());
    for count in 1..=2 {
        // Every hold has the clock before the jump, and sees the one after it.
        events.more(EventKind::Renewed, 2 * names.len());
        quorum.servers[0].jump(HOUR);
        events.more(EventKind::Renewed, 3 * names.len());
        let warning = events.last(EventKind::Warning).unwrap();
        assert_eq!(events.count(EventKind::Warning), count, "{warning:?}");
        assert_eq!(warning.server.as_deref(), Some(&*quorum.proxies[0].url()));
        let message = warning.message.unwrap();
        assert!(message.contains("clock jumped forward by 3600.") || message.contains("by 3599."), "{message}");
    }
    assert!(holds.iter().all(locktender::Hold::is_valid));
}
