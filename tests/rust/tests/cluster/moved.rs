//! Slots that are moved while their locks are used.

use std::time::Duration;

use locktender::{Begun, Client, Hold, JobState};
use locktender_tests::{Cluster, ClusterOptions, ServerOptions, TTL};

fn client(cluster: &Cluster) -> Client {
    Client::builder().url(cluster.url()).ttl(TTL).build().unwrap()
}

/// Each version whose slots are moved key by key: the oldest and the newest.
fn each(test: impl Fn(&Cluster)) {
    for binary in locktender_tests::Binary::ends() {
        test(&ClusterOptions::new().node(ServerOptions::new().binary(&binary)).start());
    }
}

#[test]
fn a_slot_that_was_moved_is_found_at_its_new_node() {
    each(|cluster| {
        let client = client(cluster);
        let held = client.lock("{tag}a").acquire_blocking().unwrap();
        let slot = cluster.slot("{tag}a");
        let from = cluster.primary(slot);
        cluster.move_slot(slot, (from + 1) % 3);
        held.extend_blocking(Duration::from_secs(60)).unwrap();
        let other = client.lock("{tag}b").acquire_blocking().unwrap();
        for held in [held, other] {
            held.release_blocking().unwrap();
        }
    });
}

/// Everything that can be done with a lock that is free.
fn used(client: &Client, name: &str) {
    let lock = client.lock(name);
    let held = lock.acquire_blocking().unwrap();
    let fence = held.fence();
    assert!(client.lock(name).try_acquire_blocking().unwrap().is_none(), "{name}");
    held.extend_blocking(2 * TTL).unwrap();
    // A lock shows its fence from its first renewal on.
    let seen = lock.inspect_blocking().unwrap().unwrap();
    assert_eq!((seen.fence, &*seen.owner), (Some(fence), held.owner()), "{name}");
    held.renew_now_blocking().unwrap();
    held.release_blocking().unwrap();
    let next = lock.acquire_blocking().unwrap();
    assert!(next.fence() > fence, "{name}: {} after {fence}", next.fence());
    next.release_blocking().unwrap();
    assert!(lock.inspect_blocking().unwrap().is_none(), "{name}");
}

/// Everything that can be done with a job that nobody has begun.
fn worked(client: &Client, name: &str) {
    let job = client.job(name).max_attempts(3).retry_delay(Duration::ZERO);
    let begin = || match job.begin_blocking().unwrap() {
        Begun::Attempt(attempt) => attempt,
        over => panic!("{name}: {over:?}"),
    };
    let first = begin();
    assert_eq!(first.number(), 1, "{name}");
    first.fail("not yet").blocking().unwrap();
    begin().release().blocking().unwrap();
    let second = begin();
    assert_eq!((second.number(), job.status_blocking().unwrap().state), (2, JobState::Running), "{name}");
    second.complete("sent").blocking().unwrap();
    assert!(matches!(job.begin_blocking().unwrap(), Begun::Over(_)), "{name}");
    assert_eq!(job.status_blocking().unwrap().state, JobState::Done, "{name}");
    assert!(job.reset_blocking().unwrap(), "{name}");
    begin().complete("again").blocking().unwrap();
}

#[test]
fn while_a_slot_moves_its_locks_and_jobs_can_be_used() {
    each(|cluster| {
        let client = client(cluster);
        let name = |number: usize| format!("{{tag}}{number}");
        let slot = cluster.slot(&name(0));
        let to = (cluster.primary(slot) + 1) % 3;
        let held: Vec<Hold> = (0..20).map(|number| client.lock(name(number)).acquire_blocking().unwrap()).collect();
        // Locks and jobs with a past: some of their keys move before the others.
        for number in 20..30 {
            used(&client, &name(number));
            worked(&client, &format!("{{tag}}job{number}"));
            assert!(client.job(format!("{{tag}}job{number}")).reset_blocking().unwrap());
        }
        cluster.begin_move(slot, to);
        for part in 0..4 {
            for number in 20..30 {
                used(&client, &name(number));
                let job = format!("{{tag}}job{number}");
                worked(&client, &job);
                assert!(client.job(job).reset_blocking().unwrap());
            }
            used(&client, &name(100 + part));
            worked(&client, &format!("{{tag}}job{}", 100 + part));
            for held in &held {
                held.renew_now_blocking().unwrap();
            }
            cluster.move_keys(slot, to, 15);
        }
        while cluster.move_keys(slot, to, 100) > 0 {}
        used(&client, &name(200));
        worked(&client, "{tag}job200");
        cluster.finish_move(slot, to);
        for held in held {
            held.release_blocking().unwrap();
        }
        used(&client, &name(0));
    });
}
