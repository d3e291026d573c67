//! Many clients that want the same lock of five servers.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use locktender::{Client, Outcome};
use locktender_tests::{LENIENT, Proxy};

use crate::beliefs::Journal;
use crate::servers::{Ensemble, ms, through};

/// A client that is near to some servers and far from the others.
struct Corner {
    proxies: Vec<Proxy>,
    client: Client,
}

impl Corner {
    fn of(quorum: &Ensemble, near: &[usize]) -> Self {
        let proxies: Vec<Proxy> = quorum.servers.iter().map(|server| Proxy::to(server.port())).collect();
        let client = through(&proxies).configure(|options| options.response_timeout = Some(LENIENT)).build().unwrap();
        client.lock("acquaintance").acquire_blocking().unwrap().release().blocking().unwrap();
        for (server, proxy) in proxies.iter().enumerate() {
            let way = if near.contains(&server) { 0 } else { 15 };
            proxy.latency(ms(way), ms(way));
        }
        Self { proxies, client }
    }

    fn jitter(&self, rng: &mut fastrand::Rng) {
        for proxy in &self.proxies {
            proxy.latency(Duration::from_micros(rng.u64(..4_000)), Duration::from_micros(rng.u64(..4_000)));
        }
    }
}

#[test]
fn f17_a_split_of_two_two_and_one_leaves_no_residue_and_everybody_wins_in_turn() {
    let quorum = Ensemble::start(5);
    drop(quorum.trusted());
    let corners = [&[0, 1][..], &[2, 3], &[4]].map(|near| Corner::of(&quorum, near));
    for round in 0..5 {
        let (name, journal) = (format!("split:{round}"), Journal::default());
        let start = Instant::now();
        std::thread::scope(|scope| {
            for corner in &corners {
                scope.spawn(|| {
                    let held = corner.client.lock(&name).ttl(ms(60_000)).wait(ms(8_000)).acquire_blocking().unwrap();
                    journal.record(&held, || false);
                    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
                });
            }
        });
        assert_eq!(journal.len(), 3);
        assert!(start.elapsed() < ms(3_000), "{:?}", start.elapsed());
        journal.check();
        quorum.left_clean(&name);
    }
}

#[test]
fn no_two_of_many_clients_hold_at_once_and_fences_rise() {
    const CLIENTS: usize = 6;
    const HOLDS: usize = 200;
    let quorum = Ensemble::start(5);
    drop(quorum.trusted());
    let corners: Vec<Corner> = (0..CLIENTS).map(|_| Corner::of(&quorum, &[0, 1, 2, 3, 4])).collect();
    let journal = Journal::default();
    std::thread::scope(|scope| {
        for (seed, corner) in corners.iter().enumerate() {
            let journal = &journal;
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed as u64);
                while journal.len() < HOLDS {
                    corner.jitter(&mut rng);
                    let held = corner.client.lock("a").ttl(ms(60_000)).wait(ms(15_000)).acquire_blocking().unwrap();
                    let ends = Instant::now() + ms(rng.u64(..8));
                    journal.record(&held, || {
                        std::thread::sleep(ms(1));
                        Instant::now() < ends
                    });
                    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
                }
            });
        }
    });
    journal.check();
    quorum.left_clean("a");
}

#[test]
fn one_attempt_of_many_leaves_at_most_one_winner_and_no_residue() {
    const CLIENTS: usize = 8;
    let quorum = Ensemble::start(5);
    drop(quorum.trusted());
    let clients: Vec<Client> = (0..CLIENTS).map(|_| quorum.acquainted()).collect();
    let mut won = 0;
    for round in 0..20 {
        let name = format!("try:{round}");
        let (sender, results) = channel();
        for client in &clients {
            let sender = sender.clone();
            let _detached = client.lock(&name).ttl(ms(60_000)).try_acquire().then(move |result| drop(sender.send(result)));
        }
        drop(sender);
        let held: Vec<_> = results.iter().filter_map(Result::unwrap).collect();
        assert!(held.len() <= 1, "{held:?}");
        won += held.len();
        drop(held);
        quorum.left_clean(&name);
    }
    assert!(won > 0, "a split vote is rare");
}
