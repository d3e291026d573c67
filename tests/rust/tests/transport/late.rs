//! Requests that come late: a connection stands still with an acquire in it, and the server reads that when everybody is done.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails where it can't go on")]

use std::time::Duration;

use locktender::{Client, ClientBuilder, Hold};
use locktender_tests::{PATIENCE, PROMPTLY, Proxy, RealServer, certificate, eventually};

use crate::peer::tls::terminate;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A client that gives a silent connection up soon, and whose locks last longer than the test.
fn client(builder: ClientBuilder) -> Client {
    let hasty = |options: &mut locktender::ClientOptions| {
        options.response_timeout = Some(ms(300));
        options.lock.ttl = ms(60_000);
        options.lock.wait = locktender::Wait::For(PATIENCE);
    };
    let client = builder.configure(hasty).build().unwrap();
    client.lock("warm").acquire_blocking().unwrap().release().blocking().unwrap();
    client
}

fn exists(server: &RealServer, key: &str) -> bool {
    server.command(&["EXISTS", key]).int() == 1
}

/// What the clocks of a server have given last, in the sum.
fn given(server: &RealServer) -> u64 {
    const GIVEN: &str = "local sum = 0 for _, key in ipairs(redis.call('KEYS', '*:~lt:clock')) do \
        local info = redis.call('XINFO', 'STREAM', key) \
        for at = 1, #info, 2 do if info[at] == 'last-generated-id' then \
            local ms, count = string.match(info[at + 1], '(%d+)-(%d+)') sum = sum + ms * 1000 + count \
        end end end return sum";
    u64::try_from(server.command(&["EVAL", GIVEN, "0"]).int()).unwrap()
}

/// The fence of a lock on a server of a quorum.
fn fence(server: &RealServer, name: &str) -> u64 {
    let fence = server.command(&["GET", &format!("{{{name}}}:~lt:fence")]).text();
    fence.map_or(0, |fence| fence.trim_end_matches('q').parse().unwrap())
}

/// The number of waiters in the queue, which has the signs of life of their clients, too.
fn waiters(server: &RealServer, name: &str) -> i64 {
    server.command(&["ZCOUNT", &format!("{{{name}}}:~lt:queue"), "(0", "+inf"]).int()
}

/// Holds the first acquire of `name` back until a later one was granted and released; then nothing of it may stay.
fn nothing_stays_of_a_late_acquire(server: &RealServer, proxy: &Proxy, name: &str, hold: impl FnOnce(&str) -> Hold) {
    proxy.stall(1, &format!("\r\n{name}\r\n"));
    let held = hold(name);
    assert_eq!(proxy.faults_left(), 0, "the first one stands still");
    held.release().blocking().unwrap();
    assert!(!exists(server, name));
    let before = given(server);
    proxy.end_stalls();
    eventually("the first one was read and undone", PROMPTLY, || given(server) > before && !exists(server, name));
    eventually("nobody is in the queue", PROMPTLY, || waiters(server, name) == 0);
}

#[test]
fn f13_an_acquire_that_comes_late_is_undone_on_every_thread_that_does_the_io() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let client = client(Client::builder().url(proxy.url()));
    nothing_stays_of_a_late_acquire(&server, &proxy, "blocking", |name| client.lock(name).acquire_blocking().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (caller, (done, until_done)) = (runtime.handle().clone(), tokio::sync::oneshot::channel::<()>());
    let runs = std::thread::spawn(move || runtime.block_on(until_done));
    caller.block_on(client.lock("warm").acquire()).unwrap().release().blocking().unwrap();
    nothing_stays_of_a_late_acquire(&server, &proxy, "async", |name| {
        caller.block_on(client.lock(name).acquire().into_future()).unwrap()
    });
    done.send(()).unwrap();
    runs.join().unwrap().unwrap();
}

#[test]
fn f13_an_acquire_that_comes_late_over_tls_is_undone() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let trusting = |options: &mut locktender::ClientOptions| options.tls_ca = Some(certificate("ca.pem").display().to_string());
    let client = client(Client::builder().url(terminate(proxy.port(), "server", false)).configure(trusting));
    nothing_stays_of_a_late_acquire(&server, &proxy, "tls", |name| client.lock(name).acquire_blocking().unwrap());
}

#[test]
fn f13_a_waiter_that_is_enqueued_late_does_not_stay_in_the_queue() {
    let server = RealServer::start();
    let proxy = Proxy::to(server.port());
    let (waits, holds) = (client(Client::builder().url(proxy.url())), client(Client::builder().url(server.url())));
    proxy.stall(1, "{line}:~lt:queue");
    waits.lock("line").fair(true).acquire_blocking().unwrap().release().blocking().unwrap();
    let _held = holds.lock("line").acquire_blocking().unwrap();
    let reads = proxy.client_reads();
    // On the new connection, and behind the acquire that stands still.
    eventually("it is taken out of the queue", PATIENCE, || proxy.client_reads() >= reads + 2);
    proxy.end_stalls();
    eventually("the late one is answered", PROMPTLY, || server.command(&["EXISTS", "{line}:~lt:queue"]).int() == 1);
    eventually("nobody is in the queue", PROMPTLY, || waiters(&server, "line") == 0);
}

#[test]
fn f13_an_acquire_that_one_server_of_three_reads_late_is_undone_there_and_not_before_the_hold_ends() {
    let servers: Vec<_> = (0..3).map(|_| RealServer::start()).collect();
    let proxies: Vec<_> = servers.iter().map(|server| Proxy::to(server.port())).collect();
    let urls: Vec<_> = proxies.iter().map(Proxy::url).collect();
    let quorum = Client::builder().urls(urls).configure(|options| {
        options.response_timeout = Some(ms(300));
        options.lock.ttl = ms(60_000);
    });
    let client = quorum.build().unwrap();
    client.initialize_quorum().blocking().unwrap();
    client.lock("warm").acquire_blocking().unwrap().release().blocking().unwrap();
    for ends_first in [false, true] {
        let name = format!("ends_first={ends_first}");
        proxies[2].stall(1, &format!("{{{name}}}:~lt:queue"));
        let held = client.lock(&name).acquire_blocking().unwrap();
        eventually("the third request stands still", PROMPTLY, || proxies[2].faults_left() == 0);
        let connections = proxies[2].connections();
        // The connection that stands still is left, and another one is made for what follows.
        eventually("its connection is left", PATIENCE, || {
            held.extend(ms(60_000)).blocking().unwrap();
            proxies[2].connections() > connections
        });
        if ends_first {
            held.release().blocking().unwrap();
            eventually("the release has arrived", PROMPTLY, || !exists(&servers[0], &name) && !exists(&servers[1], &name));
            proxies[2].end_stalls();
            eventually("it was read and undone", PROMPTLY, || fence(&servers[2], &name) > 0 && !exists(&servers[2], &name));
        } else {
            proxies[2].end_stalls();
            eventually("it was read", PROMPTLY, || exists(&servers[2], &name));
            assert!(held.is_valid() && held.extend(ms(60_000)).blocking().is_ok());
            held.release().blocking().unwrap();
            eventually("no server has it", PROMPTLY, || servers.iter().all(|server| !exists(server, &name)));
        }
    }
}
