//! Fair locks: first come, first served.

use std::sync::mpsc;
use std::time::Instant;

use locktender::{Client, Code, Outcome};
use locktender_tests::{PATIENCE, RealServer, eventually};

use crate::{Watched, acquire, ms, pass_through, queue_length};

#[test]
fn fair_waiters_of_several_clients_are_served_in_the_order_in_which_they_came() {
    let server = RealServer::start();
    let clients: Vec<Watched> = (0..3).map(|_| Watched::open(&server.url())).collect();
    let fair = |client: usize| clients[client].client.lock("a").fair(true);
    let held = fair(0).acquire_blocking().unwrap();
    let (order, served) = mpsc::channel();
    let mut came = [0; 3];
    let waiters: Vec<_> = (0..30)
        .map(|who| {
            let client = who * 7 % 3;
            let waiter = pass_through(fair(client), who, ms(1), &order);
            came[client] += 1;
            clients[client].queued(came[client]);
            waiter
        })
        .collect();
    held.release().blocking().unwrap();
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    assert_eq!(served.try_iter().collect::<Vec<_>>(), (0..30).collect::<Vec<_>>());
    eventually("nobody is left in the queue", PATIENCE, || queue_length(&server, "a") == 0);
}

#[test]
fn a_newcomer_queues_up_while_a_fair_waiter_lives() {
    let server = RealServer::start();
    let (one, two) = (Watched::open(&server.url()), Watched::open(&server.url()));
    let held = one.client.lock("a").acquire_blocking().unwrap();
    let waiter = acquire(two.client.lock("a").fair(true));
    two.queued(1);
    // The lock is kept for the waiter from that moment on: asked in one breath, for it is kept only for a moment.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lock = one.client.lock("a");
    let both = async { tokio::join!(held.release(), lock.try_acquire()) };
    let (released, tried) = runtime.block_on(both);
    assert_eq!(released.unwrap().outcome, Outcome::Released);
    assert!(tried.unwrap().is_none());
    let held = waiter.join().unwrap();
    assert!(one.client.lock("a").fair(true).try_acquire_blocking().unwrap().is_none());
    held.release().blocking().unwrap();
    assert!(one.client.lock("a").fair(true).try_acquire_blocking().unwrap().is_some());
}

#[test]
fn f20_a_dead_head_costs_one_claim_and_not_a_ttl() {
    let server = RealServer::start();
    let (one, two) = (Watched::open(&server.url()), Watched::open(&server.url()));
    let held = one.client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    // A fair waiter whose process has just been killed: its client still counts as alive.
    let Some(now) =
        server.command(&["EVAL", "local t = redis.call('TIME') return t[1] .. string.format('%06d', t[2])", "0"]).text()
    else {
        panic!("no time")
    };
    let life = format!("-{}", now.parse::<u64>().unwrap() + 60_000_000);
    server.command(&["ZADD", "{a}:~lt:queue", &now, "f:dead:1 pid=1", &life, "dead"]);
    let waiter = acquire(two.client.lock("a").ttl(ms(60_000)).fair(true));
    two.queued(1);
    let start = Instant::now();
    held.release().blocking().unwrap();
    waiter.join().unwrap();
    let took = start.elapsed();
    assert!(took >= ms(190) && took < ms(700), "{took:?}");
}

#[test]
fn independent_servers_cannot_agree_on_who_is_first() {
    let client = Client::builder().url("memory://fair-1").url("memory://fair-2").url("memory://fair-3").build().unwrap();
    let error = client.lock("a").fair(true).try_acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.to_string().contains("fair"), "{error}");
}
