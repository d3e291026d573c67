//! Waiting on a quorum: hints of several servers.

use std::sync::mpsc;

use locktender_tests::{PATIENCE, RealServer, eventually};

use crate::{Watched, acquire, ms, pass_through, queue_length};

fn three() -> (Vec<RealServer>, String) {
    let servers: Vec<RealServer> = (0..3).map(|_| RealServer::start()).collect();
    let urls = servers.iter().map(RealServer::url).collect::<Vec<_>>().join(",");
    Watched::open(&urls).client.initialize_quorum().blocking().unwrap();
    (servers, urls)
}

#[test]
fn a_release_hands_the_lock_over_also_while_a_server_is_stopped() {
    let (mut servers, urls) = three();
    let (one, two) = (Watched::open(&urls), Watched::open(&urls));
    for n in 0..6 {
        if n == 3 {
            servers[1].kill();
        }
        let held = one.client.lock("a").acquire_blocking().unwrap();
        let waiter = acquire(two.client.lock("a"));
        two.queued(n + 1);
        held.release().blocking().unwrap();
        waiter.join().unwrap().release().blocking().unwrap();
    }
    assert!(two.events.notified() >= 4, "{}", two.events.notified());
    for server in [&servers[0], &servers[2]] {
        eventually("nobody is left in the queue", PATIENCE, || queue_length(server, "a") == 0);
    }
}

#[test]
fn many_clients_all_get_the_lock() {
    let (_servers, urls) = three();
    let clients: Vec<Watched> = (0..4).map(|_| Watched::open(&urls)).collect();
    let (order, served) = mpsc::channel();
    let waiters: Vec<_> =
        (0..24).map(|who| pass_through(clients[who % 4].client.lock("a").wait(PATIENCE), who, ms(2), &order)).collect();
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    assert_eq!(served.try_iter().count(), 24);
}
