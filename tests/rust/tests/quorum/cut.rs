//! F13 on a quorum: a cut link, or a caller that has ended, leaves no key.

use std::time::Instant;

use locktender::{Client, Code, Outcome};
use locktender_tests::{Fault, PROMPTLY, eventually};

use crate::ensemble::{Ensemble, TIDY, ms};

/// Waits until the client has noticed what befell its links, and has replaced them.
fn every_link_works(client: &Client) {
    let works = || client.check_servers().blocking().unwrap().iter().all(|report| report.failure.is_none());
    eventually("every link works", TIDY, works);
}

const FAULTS: [Fault; 3] = [Fault::CutBeforeApply, Fault::CutAfterApply, Fault::SilenceAfterApply];

#[test]
fn f13_a_link_that_fails_on_any_one_server_delays_nothing_and_leaves_nothing() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted_with(|options| options.response_timeout = Some(ms(300)));
    for fault in FAULTS {
        for server in 0..3 {
            let name = format!("{fault:?}{server}");
            every_link_works(&client);
            quorum.proxies[server].fault(fault, 1, &format!("{{{name}}}:~lt:fence"));
            let start = Instant::now();
            let held = client.lock(&name).ttl(ms(60_000)).acquire_blocking().unwrap();
            assert!(start.elapsed() < ms(200), "{name}: {:?}", start.elapsed());
            eventually("the fault came", ms(500), || quorum.proxies[server].faults_left() == 0);
            assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
            quorum.left_clean(&name);
        }
    }
}

#[test]
fn f13_links_that_fail_on_a_majority_fail_the_attempt_and_leave_nothing() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted_with(|options| options.response_timeout = Some(ms(1_000)));
    for fault in FAULTS {
        let name = format!("{fault:?}");
        every_link_works(&client);
        for proxy in &quorum.proxies[1..] {
            proxy.fault(fault, 1, &format!("{{{name}}}:~lt:fence"));
        }
        let error = client.lock(&name).ttl(ms(60_000)).try_acquire_blocking().unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{error}");
        quorum.left_clean(&name);
        // Waiting, the same is only a delay.
        every_link_works(&client);
        for proxy in &quorum.proxies[1..] {
            proxy.fault(fault, 1, &format!("{{{name}}}:~lt:fence"));
        }
        let held = client.lock(&name).ttl(ms(60_000)).wait(ms(5_000)).acquire_blocking().unwrap();
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
        quorum.left_clean(&name);
    }
}

#[test]
fn f13_a_link_that_fails_during_the_release_only_delays_it_there() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted_with(|options| options.response_timeout = Some(ms(1_000)));
    for fault in FAULTS {
        for servers in [0..1, 1..3] {
            let name = format!("{fault:?}{}", servers.len());
            every_link_works(&client);
            let held = client.lock(&name).ttl(ms(60_000)).acquire_blocking().unwrap();
            eventually("every server has it", PROMPTLY, || quorum.count(&name, held.owner()) == 3);
            for proxy in &quorum.proxies[servers] {
                proxy.fault(fault, 1, &format!("{{{name}}}:~lt:fence"));
            }
            assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released, "{name}");
            quorum.left_clean(&name);
        }
    }
}

#[test]
fn f13_an_acquire_dropped_at_any_moment_leaves_no_key_on_any_server() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted();
    for (n, proxy) in quorum.proxies.iter().enumerate() {
        proxy.latency(ms(1 + n as u64), ms(2 * n as u64));
    }
    // Counters that differ make half of the rounds need a second one.
    for n in (0..120).step_by(2) {
        quorum.set_fence(n % 3, &format!("drop:{n}"), crate::ensemble::wall_us() + 60_000_000);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut rng = fastrand::Rng::with_seed(13);
    let mut granted = 0;
    runtime.block_on(async {
        // One that connects, and one that shows how long an acquire takes on this machine.
        drop(client.lock("first").acquire().await.unwrap());
        let start = Instant::now();
        drop(client.lock("second").acquire().await.unwrap());
        let usual = start.elapsed();
        for n in 0..120 {
            let lock = client.lock(format!("drop:{n}")).ttl(ms(60_000));
            let patience = usual.mul_f64(2.0 * rng.f64());
            if tokio::time::timeout(patience, lock.acquire()).await.is_ok() {
                granted += 1;
            }
        }
    });
    assert!(granted > 0 && granted < 120, "{granted}: both must happen");
    let left = || (0..120).filter(|n| quorum.values(&format!("drop:{n}")).iter().any(Option::is_some)).count();
    eventually("every key is gone", TIDY, || left() == 0);
    client.lock("usable").acquire_blocking().unwrap();
}

#[test]
fn f24_a_release_that_is_dropped_continues() {
    let quorum = Ensemble::start(3);
    let client = quorum.acquainted();
    for proxy in &quorum.proxies {
        proxy.latency(ms(5), ms(5));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for n in 0..20 {
            let held = client.lock(format!("{n}")).ttl(ms(60_000)).acquire().await.unwrap();
            let _ = tokio::time::timeout(ms(n), held.release()).await;
        }
    });
    for n in 0..20 {
        quorum.left_clean(&format!("{n}"));
    }
}
