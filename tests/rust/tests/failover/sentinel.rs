//! Sentinel: real sentinels notice the end of a primary, and clients go where they lead.

use std::sync::atomic::Ordering;
use std::{fs, thread};

use locktender::{Client, ClientBuilder, Code, EventKind, Failover, Hold};
use locktender_tests::{Binary, Events, PATIENCE, RealServer, Reply, eventually};

use crate::load::{Resource, under_load};
use crate::oracle::{Oracle, SERVICE};
use crate::primary_with_one::{Pair, ms};
use crate::with_sentinels::{Watched, sentinel};

fn in_both_ends(scene: impl Fn(Watched) + Sync) {
    thread::scope(|scope| {
        for binary in Binary::ends() {
            let scene = &scene;
            scope.spawn(move || scene(Watched::start(&binary)));
        }
    });
}

fn is_primary(node: &RealServer) -> bool {
    matches!(node.command(&["ROLE"]), Reply::Array(role) if role[0] == Reply::Text("master".to_owned()))
}

/// Closes every connection of clients to a node.
fn close_all(node: &RealServer) {
    node.command(&["CLIENT", "KILL", "TYPE", "normal"]);
}

#[test]
fn a_hold_and_a_waiter_live_through_a_failover_and_nobody_goes_back_to_the_old_primary() {
    in_both_ends(|mut watched| {
        let (client, events) = Events::of(watched.builder());
        let held = client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
        watched.has_replicated("a");
        let waiter = watched.builder().unavailable_after(PATIENCE).build().unwrap();
        let waiting = thread::spawn(move || waiter.lock("a").wait(3 * PATIENCE).acquire_blocking());
        let waiters = || watched.nodes[0].command(&["ZCOUNT", "{a}:~lt:queue", "0", "+inf"]).int();
        eventually("one waits", PATIENCE, || waiters() == 1);

        watched.nodes[0].kill();
        events.at_least(EventKind::FailedOver, 1);
        let promoted = watched.promoted();
        let key = || promoted.holder("a");
        assert_eq!((key().as_deref(), held.is_valid()), (Some(held.owner()), true));
        let event = events.last(EventKind::FailedOver).unwrap();
        assert_eq!((event.address, event.server), (Some(format!("127.0.0.1:{}", promoted.port())), Some(watched.url())));
        let fence = held.fence();
        held.release().blocking().unwrap();
        let next = waiting.join().unwrap().unwrap();
        assert!(next.fence() > fence && key().as_deref() == Some(next.owner()));

        let port = promoted.port();
        watched.nodes[0].restart();
        let [old, promoted] =
            [watched.nodes[0].port(), port].map(|port| watched.nodes.iter().find(|node| node.port() == port).unwrap());
        assert!(is_primary(old), "it doesn't know of its successor so far");
        close_all(promoted);
        let again = client.lock("b").acquire_blocking().unwrap();
        let new = watched.builder().build().unwrap().lock("c").acquire_blocking().unwrap();
        for held in [&again, &new, &next] {
            assert_eq!(promoted.holder(held.name()).as_deref(), Some(held.owner()));
            assert!(held.is_valid());
        }
        assert_eq!(events.count(EventKind::FailedOver), 1);
        assert_eq!(old.command(&["CLIENT", "LIST"]).text().unwrap().matches("name=locktender").count(), 0);
    });
}

/// The number of locks that are granted in the stretch that the failover loses.
const COUNT: usize = 5;
const MAX_TTL_MS: u64 = 8_000;

fn quarantined(builder: ClientBuilder) -> ClientBuilder {
    builder.failover(Failover::Quarantine).max_ttl(ms(MAX_TTL_MS)).ttl(ms(MAX_TTL_MS)).unavailable_after(ms(500))
}

/// A failover that loses the last grants, under load; with quarantine.
fn quarantine_keeps_exclusion(mut watched: Watched) {
    let (holder, events) = Events::of(quarantined(watched.builder()));
    holder.initialize_quorum().blocking().unwrap();
    watched.has_replicated("{~lt}:marker");
    for replica in &watched.nodes[1..] {
        replica.command(&["REPLICAOF", "127.0.0.1", "1"]);
    }
    let held: Vec<Hold> = (0..COUNT).map(|number| holder.lock(format!("a{number}")).acquire_blocking().unwrap()).collect();
    let resource = Resource::default();
    let clients = (0..4).map(|_| quarantined(watched.builder())).collect();
    under_load(clients, &resource, || {
        watched.nodes[0].kill();
        events.at_least(EventKind::FailedOver, 1);
        let promoted = watched.promoted();
        let rival = quarantined(watched.builder()).build().unwrap();
        for held in &held {
            let taken = rival.lock(held.name()).try_acquire_blocking().ok().flatten();
            assert!(!(held.is_valid() && taken.as_ref().is_some_and(Hold::is_valid)), "two holders of {}", held.name());
            assert!(taken.is_none_or(|taken| taken.fence() > held.fence()));
        }
        for held in held.iter().filter(|held| held.is_valid()) {
            let key = || promoted.holder(held.name());
            eventually("it is written again", PATIENCE, || !held.is_valid() || key().as_deref() == Some(held.owner()));
        }
        let before = resource.count();
        eventually("it is granted again", PATIENCE, || resource.count() > before);
    });
    assert_eq!((resource.overlaps.load(Ordering::SeqCst), resource.refused.load(Ordering::SeqCst)), (0, 0));
}

#[test]
fn with_quarantine_a_failover_under_load_makes_no_second_holder_and_no_fence_sinks() {
    quarantine_keeps_exclusion(Watched::start(&Binary::preferred()));
}

/// A failover under load, where both replicas confirm each grant.
fn replicas_keep_exclusion(mut watched: Watched) {
    let confirmed = |builder: ClientBuilder| builder.min_replicas(2).ttl(ms(MAX_TTL_MS)).unavailable_after(ms(500));
    let (holder, events) = Events::of(confirmed(watched.builder()));
    let held: Vec<Hold> = (0..COUNT).map(|number| holder.lock(format!("a{number}")).acquire_blocking().unwrap()).collect();
    let resource = Resource::default();
    let clients = (0..4).map(|_| confirmed(watched.builder())).collect();
    under_load(clients, &resource, || {
        watched.nodes[0].kill();
        events.at_least(EventKind::FailedOver, 1);
        let promoted = watched.promoted();
        for held in &held {
            assert!(!held.is_valid() || promoted.holder(held.name()).as_deref() == Some(held.owner()));
        }
        let before = resource.count();
        watched.nodes[0].restart();
        eventually("it is granted again, with two replicas", 3 * PATIENCE, || resource.count() > before + 10);
    });
    assert_eq!((resource.overlaps.load(Ordering::SeqCst), resource.refused.load(Ordering::SeqCst)), (0, 0));
}

#[test]
fn a_planned_failover_is_followed_and_a_hold_is_kept() {
    planned(&Watched::start(&Binary::preferred()));
}

fn planned(watched: &Watched) {
    let (client, events) = Events::of(watched.builder());
    let held = client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    watched.has_replicated("a");
    // A sentinel refuses while it finds both replicas too late, on a busy machine.
    let begin = || watched.sentinels[1].command(&["SENTINEL", "FAILOVER", SERVICE]);
    eventually("the sentinel begins", PATIENCE, || begin() == Reply::Status("OK".to_owned()));
    events.at_least(EventKind::FailedOver, 1);
    let promoted = watched.promoted();
    held.renew_now().blocking().unwrap();
    assert_eq!(promoted.holder("a").as_deref(), Some(held.owner()));
    assert!(held.is_valid());
}

#[test]
fn a_frozen_primary_is_left_and_not_returned_to_when_it_continues() {
    frozen(&Watched::start(&Binary::preferred()));
}

fn frozen(watched: &Watched) {
    let (client, events) = Events::of(watched.builder().unavailable_after(PATIENCE));
    let held = client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    watched.has_replicated("a");
    watched.nodes[0].pause();
    events.at_least(EventKind::FailedOver, 1);
    watched.nodes[0].resume();
    let there = client.lock("b").acquire_blocking().unwrap();
    let promoted = watched.promoted();
    assert_eq!(promoted.command(&["EXISTS", "a", "b"]).int(), 2);
    assert!(there.is_valid() && held.is_valid());
}

#[test]
#[ignore = "long: the same with every version"]
fn every_version_is_followed_in_every_way() {
    for binary in Binary::all() {
        quarantine_keeps_exclusion(Watched::start(&binary));
        replicas_keep_exclusion(Watched::start(&binary));
        planned(&Watched::start(&binary));
        frozen(&Watched::start(&binary));
    }
}

/// What this process uses: threads, descriptors, and kilobytes of memory.
fn used() -> (usize, usize, usize) {
    let count = |place: &str| fs::read_dir(place).unwrap().count();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    (count("/proc/self/task"), count("/proc/self/fd"), resident.trim().trim_end_matches(" kB").parse().unwrap())
}

#[test]
#[ignore = "long: a hundred failovers"]
fn a_hundred_failovers_leave_nothing_behind() {
    let pair = Pair::start();
    let oracle = Oracle::naming(pair.primary.port(), 1);
    let builder = Client::builder().url(format!("redis+sentinel://127.0.0.1:{}/main", oracle.port));
    let (client, events) = Events::of(builder);
    let held = client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    let nodes = [&pair.primary, &pair.replica];
    let (mut before, connections) =
        (None, |node: &RealServer| node.command(&["CLIENT", "LIST"]).text().unwrap().matches("name=locktender").count());
    for round in 1..=120 {
        let [old, new] = [nodes[(round + 1) % 2], nodes[round % 2]];
        eventually("it is replicated", PATIENCE, || new.command(&["GET", "a"]) == old.command(&["GET", "a"]));
        new.command(&["REPLICAOF", "NO", "ONE"]);
        oracle.name(new.port(), 1 + round as u64);
        oracle.publish(SERVICE);
        events.at_least(EventKind::FailedOver, round);
        old.command(&["REPLICAOF", "127.0.0.1", &new.port().to_string()]);
        held.renew_now().blocking().unwrap();
        drop(client.lock("b").acquire_blocking().unwrap());
        eventually("it has left the old primary", PATIENCE, || connections(old) == 0);
        if round == 20 {
            before = Some(used());
        }
    }
    let ((threads, descriptors, memory), after) = (before.unwrap(), used());
    assert!(after.0 <= threads && after.1 <= descriptors && after.2 < memory + 4_096, "{before:?} {after:?}");
    assert!(held.is_valid() && oracle.listeners() == 1 && connections(nodes[0]) <= 3);
}

#[test]
fn three_services_of_sentinel_are_a_quorum() {
    let nodes = [(); 3].map(|()| RealServer::start());
    let oracles = nodes.each_ref().map(|node| Oracle::naming(node.port(), 1));
    let urls: Vec<String> = oracles.iter().map(|oracle| format!("redis+sentinel://127.0.0.1:{}/main", oracle.port)).collect();
    let mut mixed = urls.clone();
    mixed[0] = nodes[0].url();
    for urls in [urls, mixed] {
        let client = Client::open(urls.join(",")).unwrap();
        client.initialize_quorum().blocking().unwrap();
        client.lock("a").acquire_blocking().unwrap().release().blocking().unwrap();
    }
}

#[test]
fn a_report_says_which_sentinels_answer_and_what_a_failover_costs() {
    let watched = Watched::start(&Binary::preferred());
    let mut sentinels = watched.sentinels;
    let [first, ..] = &sentinels;
    // One of them is in the URL, and it knows the others.
    let client = Client::open(format!("redis+sentinel://127.0.0.1:{}/main", first.port())).unwrap();
    let warnings = || client.check_servers().blocking().unwrap()[0].warnings.join("\n");
    let all = warnings();
    for words in ["after 1.5 s of silence", "failover \"confirm\""] {
        assert!(all.contains(words), "{words:?} is not in {all}");
    }
    assert!(!all.contains("sentinels answer"), "{all}");
    sentinels[2].kill();
    assert!(warnings().contains("only 2 of 3 sentinels answer; a failover needs 2"), "{}", warnings());
    sentinels[1].kill();
    assert!(warnings().contains("1 of 3 sentinels answer, and a failover needs 2: there will be none"), "{}", warnings());
}

#[test]
fn a_sentinel_of_another_group_is_not_followed() {
    let watched = Watched::start(&Binary::preferred());
    let elsewhere = RealServer::start();
    // Its service has the same name, and has seen more failovers.
    let foreign = sentinel(elsewhere.port(), 1).config("sentinel config-epoch main 9").start();
    let [first, second, _] = &watched.sentinels;
    let url = |sentinels: &[&RealServer]| {
        let places: Vec<String> = sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port())).collect();
        format!("redis+sentinel://{}/{SERVICE}", places.join(","))
    };
    for number in 0..5 {
        let client = Client::open(url(&[&foreign, first, second])).unwrap();
        let name = format!("a{number}");
        let held = client.lock(&*name).acquire_blocking().unwrap();
        assert_eq!(watched.nodes[0].holder(&name).as_deref(), Some(held.owner()));
        held.release().blocking().unwrap();
    }
    let client = Client::open(url(&[&foreign, first, second])).unwrap();
    let warnings = client.check_servers().blocking().unwrap()[0].warnings.join("\n");
    let message = format!("the sentinel 127.0.0.1:{} belongs to another group", foreign.port());
    assert!(warnings.contains(&message), "{warnings}");
    let error = Client::open(url(&[&foreign, first])).unwrap().lock("b").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.to_string().contains("don't know each other"), "{error}");
    assert_eq!(elsewhere.command(&["DBSIZE"]).int(), 0);
}
