//! Chaos: all faults at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use locktender::{Client, ClientOptions, Outcome};
use locktender_tests::{PATIENCE, TTL, eventually};

use crate::ensemble::{Ensemble, ms};
use crate::journal::Journal;

#[test]
#[ignore = "long: the simulation draws the same faults"]
fn a_hold_survives_one_fault_after_another_while_others_want_it() {
    let mut quorum = Ensemble::start(5);
    let client = quorum.acquainted_with(|options| options.response_timeout = Some(ms(1_000)));
    let rival = quorum.acquainted_with(|options| options.response_timeout = Some(ms(1_000)));
    let held = client.lock("a").ttl(2 * TTL).acquire_blocking().unwrap();
    quorum.settled(&client, &held);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                // Busy, or too many servers in quarantine: never granted.
                assert!(!matches!(rival.lock("a").try_acquire_blocking(), Ok(Some(_))));
                std::thread::sleep(ms(10));
            }
        });
        // Two at most are away or repaired at any time; a slow one comes on top.
        for round in 0..3 {
            let (first, second, third) = (round % 5, (round + 1) % 5, (round + 2) % 5);
            quorum.proxies[third].latency(ms(15), ms(15));
            quorum.servers[second].pause();
            quorum.servers[first].restart_empty();
            quorum.servers[third].command(&["SCRIPT", "FLUSH"]);
            eventually("healed", PATIENCE, || quorum.value(first, "a").as_deref() == Some(held.owner()));
            assert!(held.is_valid(), "{:?}", held.check());
            quorum.servers[second].resume();
            quorum.servers[third].command(&["SAVE"]);
            quorum.servers[third].restart();
            quorum.proxies[third].latency(ms(0), ms(0));
            quorum.proxies[second].cut();
            let fence = held.fence();
            eventually("all is well", PATIENCE, || {
                (0..5).all(|server| quorum.fence(server, "a") == fence && quorum.value(server, "a").is_some())
            });
            assert!(held.is_valid(), "{:?}", held.check());
        }
        done.store(true, Ordering::SeqCst);
    });
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    quorum.left_clean("a");
}

#[test]
#[ignore = "long: the simulation draws the same faults"]
fn no_two_hold_at_once_whatever_befalls_the_servers() {
    let mut quorum = Ensemble::start(5);
    let change = |options: &mut ClientOptions| {
        options.max_ttl = ms(600);
        options.unavailable_after = ms(300);
        options.response_timeout = Some(ms(150));
        options.lock.ttl = ms(500);
    };
    drop(quorum.trusted_with(change));
    let clients: Vec<Client> = (0..4).map(|_| quorum.builder().configure(change).build().unwrap()).collect();
    let (journal, done) = (Journal::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for (seed, client) in clients.iter().enumerate() {
            let (journal, done) = (&journal, &done);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed as u64);
                while !done.load(Ordering::SeqCst) {
                    // Nobody is promised the lock here; its holder is promised to be alone.
                    let Ok(held) = client.lock("a").wait(ms(500)).acquire_blocking() else { continue };
                    let ends = Instant::now() + ms(if rng.u8(..4) == 0 { rng.u64(200..800) } else { rng.u64(..20) });
                    journal.record(&held, || {
                        std::thread::sleep(ms(1));
                        Instant::now() < ends
                    });
                    if rng.bool() {
                        let _ = held.release().blocking();
                    }
                }
            });
        }
        torment(&mut quorum, ms(8_000), || journal.len() >= 20);
        done.store(true, Ordering::SeqCst);
    });
    journal.check();
    let patient = |options: &mut ClientOptions| {
        change(options);
        options.response_timeout = Some(ms(1_000));
        options.unavailable_after = PATIENCE;
    };
    let client = quorum.builder().configure(patient).build().unwrap();
    let held = client.lock("a").wait(ms(5_000)).acquire_blocking();
    let held = held.unwrap_or_else(|error| panic!("all servers are back: {error}"));
    held.release().blocking().unwrap();
    quorum.left_clean("a");
}

/// One fault after the other, several at a time, for `span` and until it is `enough`; in the end all servers are as they
/// should be.
fn torment(quorum: &mut Ensemble, span: std::time::Duration, enough: impl Fn() -> bool) {
    let mut rng = fastrand::Rng::with_seed(5);
    let start = Instant::now();
    let mut paused = [false; 5];
    let resume = |quorum: &Ensemble, paused: &mut [bool; 5], server: usize| {
        if std::mem::take(&mut paused[server]) {
            quorum.servers[server].resume();
        }
    };
    while start.elapsed() < span || !enough() {
        assert!(start.elapsed() < span + 3 * PATIENCE, "hardly anybody gets the lock");
        let server = rng.usize(..5);
        resume(quorum, &mut paused, server);
        match rng.u8(..16) {
            0 => quorum.servers[server].restart_empty(),
            1 => drop(quorum.servers[server].command(&["SAVE"])),
            // With the snapshot of some time ago, if there is one.
            2 => quorum.servers[server].restart(),
            3 => {
                quorum.servers[server].pause();
                paused[server] = true;
            }
            4 => drop(quorum.servers[server].command(&["SCRIPT", "FLUSH"])),
            5 => drop(quorum.servers[server].command(&["FLUSHALL"])),
            6 => quorum.proxies[server].cut(),
            7 => quorum.proxies[server].cut_after_apply(2, "~lt:fence"),
            8 => quorum.proxies[server].black_hole(),
            9 => quorum.proxies[server].latency(ms(rng.u64(..60)), ms(rng.u64(..60))),
            _ => {
                quorum.proxies[server].restore();
                quorum.proxies[server].latency(ms(0), ms(rng.u64(..5)));
            }
        }
        std::thread::sleep(ms(rng.u64(..120)));
    }
    for server in 0..5 {
        resume(quorum, &mut paused, server);
        quorum.proxies[server].fault(locktender_tests::Fault::CutAfterApply, 0, "");
        quorum.proxies[server].restore();
        quorum.proxies[server].latency(ms(0), ms(0));
    }
}
