//! F11: servers that restart without their data, or with old data.

use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;

use locktender::{Client, Code, FailureKind, LossReason, Outcome};
use locktender_tests::{PATIENCE, RealServer, ServerOptions, TTL, eventually};

use crate::servers::{Ensemble, ms};

fn healed(quorum: &Ensemble, server: usize, key: &str, owner: &str) {
    eventually("healed", ms(3_000), || quorum.value(server, key).as_deref() == Some(owner));
}

/// Two of three forgot their markers: they don't vote, also for locks nobody holds.
fn nobody_is_granted(client: &Client) {
    for name in ["a", "b"] {
        let error = client.lock(name).try_acquire_blocking().unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{error}");
        assert!(error.servers().iter().any(|server| server.kind == FailureKind::Quarantine), "{error}");
        assert!(error.to_string().contains("is new or lost its data, votes in "), "{error}");
    }
}

#[test]
fn f11_a_server_that_restarts_empty_is_repaired_one_renewal_later_and_does_not_vote() {
    let mut quorum = Ensemble::start(3);
    let client = quorum.trusted();
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    quorum.settled(&client, &held);
    for server in [0, 1] {
        quorum.servers[server].restart_empty();
        healed(&quorum, server, "a", held.owner());
    }
    assert!(held.is_valid());
    nobody_is_granted(&client);
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    quorum.left_clean("a");
}

#[test]
fn f11_a_server_that_restarts_from_an_old_snapshot_is_repaired_and_does_not_vote() {
    let mut quorum = Ensemble::start(3);
    let client = quorum.trusted();
    // The snapshot knows another holder, a lower fence, and the marker of the run before.
    let ttl = ms(2_000);
    let earlier = client.lock("a").ttl(ttl).renew(false).acquire_blocking().unwrap();
    quorum.settled(&client, &earlier);
    quorum.servers.iter().for_each(|server| drop(server.command(&["SAVE"])));
    let earlier_owner = earlier.owner().to_owned();
    earlier.release().blocking().unwrap();
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    assert!(held.fence() > earlier.fence());
    quorum.settled(&client, &held);
    for server in [0, 1] {
        quorum.servers[server].kill();
        quorum.servers[server].restart();
        let forgotten = || quorum.value(server, "a").as_deref() != Some(earlier_owner.as_str());
        eventually("the hold of the snapshot ends, and can be repaired", ttl, forgotten);
        healed(&quorum, server, "a", held.owner());
        assert_eq!(quorum.fence(server, "a"), held.fence());
    }
    assert!(held.is_valid());
    nobody_is_granted(&client);
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    quorum.left_clean("a");
}

#[test]
fn f11_a_server_that_kept_its_data_but_restarted_does_not_vote_either() {
    let mut quorum = Ensemble::start(3);
    let client = quorum.trusted();
    let held = client.lock("a").acquire_blocking().unwrap();
    quorum.settled(&client, &held);
    for server in [0, 1] {
        // How much the snapshot lacks nobody can know.
        quorum.servers[server].command(&["SAVE"]);
        quorum.servers[server].restart();
    }
    held.renew_now().blocking().unwrap();
    assert!(held.is_valid(), "{:?}", held.check());
    nobody_is_granted(&client);
}

/// Where a server writes down what it does.
fn append_only_file(server: &RealServer) -> PathBuf {
    let directory = server.socket().parent().unwrap().to_owned();
    let places = ["appendonlydir/appendonly.aof.1.incr.aof", "appendonly.aof"].map(|place| directory.join(place));
    places.into_iter().find(|place| place.is_file()).expect("an append-only file")
}

#[test]
fn f11_a_server_whose_append_only_file_was_cut_is_repaired_and_does_not_vote() {
    let mut quorum = Ensemble::of([(); 3].map(|()| ServerOptions::new().persistent().start()).into());
    let client = quorum.trusted();
    let lengths = [0, 1].map(|server| append_only_file(&quorum.servers[server]).metadata().unwrap().len());
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    quorum.settled(&client, &held);
    for (server, length) in lengths.into_iter().enumerate() {
        quorum.servers[server].kill();
        // The first command of the hold is there in part.
        let file = File::options().write(true).open(append_only_file(&quorum.servers[server])).unwrap();
        file.set_len(length + 7).unwrap();
        quorum.servers[server].restart();
        assert!(quorum.value(server, "{~lt}:marker").is_some(), "what was written before is there");
        healed(&quorum, server, "a", held.owner());
    }
    assert!(held.is_valid(), "{:?}", held.check());
    nobody_is_granted(&client);
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    quorum.left_clean("a");
}

#[test]
fn f11_f29_a_stale_replica_that_is_promoted_in_the_middle_of_a_hold_is_repaired_and_does_not_vote() {
    let mut quorum = Ensemble::start(3);
    let client = quorum.trusted();
    let replicas = [0, 1].map(|server| {
        let primary = format!("replicaof 127.0.0.1 {}", quorum.servers[server].port());
        let replica = ServerOptions::new().config(&primary).start();
        let synchronized = || replica.command(&["EXISTS", "{~lt}:marker"]).int() == 1;
        eventually("the marker is replicated", ms(10_000), synchronized);
        // From here on it lags.
        replica.command(&["REPLICAOF", "NO", "ONE"]);
        replica
    });
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    quorum.settled(&client, &held);
    for (server, replica) in replicas.into_iter().enumerate() {
        assert_eq!(replica.command(&["EXISTS", "a"]).int(), 0);
        quorum.proxies[server].redirect(replica.port());
        quorum.servers[server] = replica;
        healed(&quorum, server, "a", held.owner());
    }
    assert!(held.is_valid(), "{:?}", held.check());
    nobody_is_granted(&client);
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    quorum.left_clean("a");
}

#[test]
fn f11_flushed_servers_are_repaired_and_do_not_vote() {
    let quorum = Ensemble::start(3);
    let client = quorum.trusted();
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    quorum.settled(&client, &held);
    for server in [2, 0] {
        quorum.servers[server].command(&["FLUSHALL"]);
        healed(&quorum, server, "a", held.owner());
    }
    assert!(held.is_valid());
    nobody_is_granted(&client);
}

#[test]
fn f11_where_a_majority_lost_the_hold_nothing_is_repaired() {
    let mut quorum = Ensemble::start(3);
    let client = quorum.trusted();
    let held = client.lock("a").acquire_blocking().unwrap();
    quorum.settled(&client, &held);
    // Long before the first renewal.
    quorum.servers[0].restart_empty();
    quorum.servers[1].restart_empty();
    assert_eq!(held.renew_now().blocking().unwrap_err().code(), Code::LockLost);
    assert_eq!(held.lost().blocking().unwrap().reason, LossReason::Missing);
    std::thread::sleep(ms(600));
    assert_eq!((quorum.value(0, "a"), quorum.value(1, "a")), (None, None));
    let release = held.release().blocking().unwrap();
    assert_eq!(release.outcome, Outcome::Expired);
    quorum.left_clean("a");
}

#[test]
fn a_slow_server_that_lost_its_key_is_repaired_although_it_always_answers_last() {
    let mut quorum = Ensemble::start(3);
    let client = quorum.acquainted();
    let held = client.lock("a").ttl(TTL).acquire_blocking().unwrap();
    quorum.settled(&client, &held);
    quorum.proxies[1].latency(ms(20), ms(20));
    quorum.servers[1].restart_empty();
    healed(&quorum, 1, "a", held.owner());
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    quorum.left_clean("a");
}

#[test]
fn new_servers_vote_after_max_ttl_and_a_waiting_acquire_waits_for_that() {
    let quorum = Ensemble::start(3);
    let client = quorum
        .builder()
        .configure(|options| {
            options.max_ttl = ms(3_000);
            options.lock.ttl = ms(3_000);
            options.unavailable_after = PATIENCE;
        })
        .build()
        .unwrap();
    let start = Instant::now();
    let held = client.lock("a").acquire_blocking().unwrap();
    assert!(start.elapsed() >= ms(3_000) && start.elapsed() < ms(3_000) + ms(1_000), "{:?}", start.elapsed());
    assert!(held.is_valid());
}

#[test]
fn a_restarted_server_votes_again_after_max_ttl() {
    let mut quorum = Ensemble::start(3);
    let client = quorum.trusted_with(|options| {
        options.max_ttl = ms(3_000);
        options.lock.ttl = ms(3_000);
        options.unavailable_after = PATIENCE;
    });
    let first = client.lock("a").acquire_blocking().unwrap();
    first.release().blocking().unwrap();
    let start = Instant::now();
    quorum.servers[0].restart_empty();
    quorum.servers[1].restart_empty();
    let held = client.lock("a").wait(PATIENCE).acquire_blocking().unwrap();
    assert!(start.elapsed() >= ms(3_000) && start.elapsed() < ms(3_000) + ms(1_500), "{:?}", start.elapsed());
    assert!(held.fence() > first.fence(), "the clocks carry the order over");
}
