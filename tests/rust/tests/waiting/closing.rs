//! A client that closes while it joins a queue: nothing remains of its earlier requests.

use std::thread::JoinHandle;
use std::time::Duration;

use locktender::{Code, EventKind, Lock};
use locktender_tests::{PATIENCE, Proxy, RealServer, eventually};

use crate::{Watched, entries, ms};

/// Long before a server takes the waiters of a client that is gone for dead, and drops them.
const PROMPTLY: Duration = ms(1_500);

/// A client whose own thread has a connection through the proxy already, and a lock that is held for a minute.
struct Scene {
    server: RealServer,
    proxy: Proxy,
    client: Watched,
    _holder: Watched,
}

impl Scene {
    fn new() -> Self {
        let server = RealServer::start();
        let proxy = Proxy::to(server.port());
        let (holder, client) = (Watched::open(&server.url()), Watched::open(&proxy.url()));
        std::mem::forget(holder.client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap());
        // What the two scripts are is known to the server, and the thread's connection is there.
        client.client.lock("b").fair(true).acquire_blocking().unwrap().release().blocking().unwrap();
        Self { server, proxy, client, _holder: holder }
    }

    fn wait_in_queue(&self) -> JoinHandle<Code> {
        let lock: Lock = self.client.client.lock("a").fair(true);
        std::thread::spawn(move || lock.acquire_blocking().unwrap_err().code())
    }
}

#[test]
fn f28_a_close_takes_a_waiter_out_also_if_it_first_has_to_connect() {
    let mut scene = Scene::new();
    scene.proxy.hold_answers();
    let waiter = scene.wait_in_queue();
    eventually("it is in the queue", PATIENCE, || entries(&scene.server, "a") == 1);
    // The connection in the background, on which it leaves the queue, isn't there yet.
    scene.proxy.refuse();
    scene.proxy.let_answers_go();
    scene.client.events.at_least(EventKind::ServerFailed, 1);
    scene.client.client.close_blocking().unwrap();
    assert_eq!(waiter.join().unwrap(), Code::Closed);
    scene.proxy.accept();
    eventually("nobody waits", PROMPTLY, || entries(&scene.server, "a") == 0);
}

#[test]
fn f28_a_close_takes_a_waiter_out_that_the_server_enqueues_later() {
    let scene = Scene::new();
    let enqueued = || scene.server.command(&["INFO", "commandstats"]).text().unwrap().contains("cmdstat_zadd");
    assert!(!enqueued());
    // Later than a close has patience; whatever goes another way arrives before it.
    scene.proxy.latency(ms(2_000), Duration::ZERO);
    let sent = scene.proxy.client_reads();
    let waiter = scene.wait_in_queue();
    eventually("it has asked", PATIENCE, || scene.proxy.client_reads() > sent);
    scene.proxy.latency(Duration::ZERO, Duration::ZERO);
    scene.client.client.close_blocking().unwrap();
    assert_eq!(waiter.join().unwrap(), Code::Closed);
    assert!(!enqueued(), "the server has not read it yet");
    eventually("the server has read it", PATIENCE, enqueued);
    eventually("nobody waits", PROMPTLY, || entries(&scene.server, "a") == 0);
}
