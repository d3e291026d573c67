//! Servers whose clocks jump.

use std::sync::{Arc, mpsc};

use locktender::{EventKind, LossReason, Outcome};

use crate::ensemble::ms;
use crate::jumpy::{JumpyServer, trusted};

const HOUR: std::time::Duration = ms(3_600_000);

#[test]
fn a_jump_on_a_minority_costs_nothing() {
    let servers = JumpyServer::several(5);
    let client = trusted(&servers, |_| ());
    let held = client.lock("a").ttl(ms(900)).acquire_blocking().unwrap();
    servers[0].jump(HOUR);
    servers[3].jump(HOUR);
    std::thread::sleep(ms(1_500));
    assert!(held.is_valid(), "{:?}", held.check());
    assert_eq!((servers[0].count("heal"), servers[1].count("heal")), (1, 0), "their keys expired, and were written again");
    assert_eq!(held.release().wait().unwrap().outcome, Outcome::Released);
    let next = client.lock("a").acquire_blocking().unwrap();
    assert!(next.fence() > held.fence());
}

#[test]
fn a_server_that_jumped_counts_once_it_has_confirmed_again() {
    let servers = JumpyServer::several(5);
    let (renewed, renewals) = mpsc::channel();
    let renewed = std::sync::Mutex::new(renewed);
    let sink = move |event: &locktender::Event| {
        if event.kind == EventKind::Renewed {
            let _ = renewed.lock().unwrap().send(());
        }
    };
    let builder = servers.iter().fold(locktender::Client::builder(), |builder, server| builder.server(Arc::clone(server) as _));
    let client = builder.sink(Arc::new(sink)).build().unwrap();
    client.initialize_quorum().wait().unwrap();
    let held = client.lock("a").ttl(ms(1_500)).acquire_blocking().unwrap();
    renewals.recv_timeout(ms(1_500)).unwrap();
    let before = servers[4].count("extend");
    // Less than remains, so no key is lost; but each is gone a third of a second before its holder believes.
    servers[..3].iter().for_each(|server| server.jump(ms(330)));
    renewals.recv_timeout(ms(1_500)).unwrap();
    assert_eq!(servers[4].count("extend") - before, 2, "the first round found the jump, the second confirmed");
    assert!(held.is_valid());
    renewals.recv_timeout(ms(1_500)).unwrap();
    assert_eq!(servers[4].count("extend") - before, 3, "and all is as before");
}

#[test]
fn a_jump_that_expires_a_majority_is_a_loss_and_fences_go_on_rising() {
    let servers = JumpyServer::several(3);
    let client = trusted(&servers, |_| ());
    let held = client.lock("a").ttl(ms(900)).acquire_blocking().unwrap();
    servers[0].jump(HOUR);
    servers[1].jump(2 * HOUR);
    let loss = held.lost().wait_for(ms(900)).expect("the next beat finds it").unwrap();
    assert_eq!(loss.reason, LossReason::Missing);
    let mut last = held.fence();
    for _ in 0..5 {
        let held = client.lock("a").wait(ms(2_000)).acquire_blocking().unwrap();
        assert!(held.fence() > last);
        last = held.fence();
        assert_eq!(held.release().wait().unwrap().outcome, Outcome::Released);
    }
}
