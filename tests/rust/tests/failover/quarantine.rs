//! Quarantine: a server that has failed over grants nothing before every lost hold has ended, and lost holds are written again.

use locktender::{Client, ClientBuilder, Code, EventKind, Failover, FailureKind, Hold, Outcome};
use locktender_tests::{Events, PATIENCE, ServerOptions, eventually};

use crate::pair::{Pair, ms};

const COUNT: usize = 20;
const MARKER: &str = "{~lt}:marker";

fn quarantined(builder: ClientBuilder) -> ClientBuilder {
    builder.failover(Failover::Quarantine).max_ttl(ms(10_000)).ttl(ms(10_000))
}

/// Two clients of a server that is trusted, also by its replica, which then lags.
fn lagging() -> (Pair, Client, Events, Client) {
    let pair = Pair::start();
    let (holder, events) = Events::of(quarantined(pair.builder()));
    holder.initialize_quorum().blocking().unwrap();
    eventually("the marker is replicated", PATIENCE, || pair.replica.command(&["EXISTS", MARKER]).int() == 1);
    pair.cut_link();
    let rival = quarantined(pair.builder()).build().unwrap();
    (pair, holder, events, rival)
}

fn names() -> impl Iterator<Item = String> {
    (0..COUNT).map(|number| format!("a{number}"))
}

#[test]
fn locks_that_the_new_primary_never_got_are_written_there_again_and_not_granted_twice() {
    let (mut pair, holder, events, rival) = lagging();
    let held: Vec<Hold> = names().map(|name| holder.lock(name).acquire_blocking().unwrap()).collect();
    pair.fail_over();
    for name in names().chain(["nobodys".to_owned()]) {
        let error = rival.lock(name).try_acquire_blocking().unwrap_err();
        assert_eq!((error.code(), error.servers()[0].kind), (Code::Unavailable, FailureKind::Quarantine), "{error}");
    }
    // The holder's connection of blocking calls finds the new primary.
    holder.lock("another").try_acquire_blocking().unwrap_err();
    events.at_least(EventKind::FailedOver, 1);
    for held in &held {
        let owner = || pair.replica.holder(held.name());
        eventually("the key is there again", PATIENCE, || owner().as_deref() == Some(held.owner()));
        let value = pair.replica.command(&["GET", held.name()]).text().unwrap();
        assert!(value.contains(&format!(" fence={}", held.fence())), "{value}");
        assert!(held.is_valid(), "{:?}", held.check());
    }
    assert_eq!(events.count(EventKind::Lost), 0);
    let before = held[0].fence();
    for held in held {
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
    }
    let next = rival.lock("a0").wait(PATIENCE).acquire_blocking();
    let next = next.or_else(|_| rival.lock("a0").wait(PATIENCE).acquire_blocking()).unwrap();
    assert!(next.fence() > before);
}

#[test]
fn a_key_that_was_deleted_is_no_failover_and_quarantine_does_not_help() {
    let pair = Pair::start();
    let (holder, events) = Events::of(quarantined(pair.builder()));
    holder.initialize_quorum().blocking().unwrap();
    let rival = quarantined(pair.builder()).build().unwrap();
    let held = holder.lock("a").acquire_blocking().unwrap();
    pair.primary.command(&["DEL", "a"]);
    let second = rival.lock("a").try_acquire_blocking().unwrap().unwrap();
    assert!(held.is_valid() && second.is_valid() && second.fence() > held.fence());
    assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Taken);
    // The marker goes with all other keys: the server is new to its clients, but no other server.
    pair.primary.command(&["FLUSHALL"]);
    let error = rival.lock("b").try_acquire_blocking().unwrap_err();
    assert_eq!((error.code(), error.servers()[0].kind), (Code::Unavailable, FailureKind::Quarantine), "{error}");
    events.at_least(EventKind::Overlapped, 1);
    assert_eq!(events.count(EventKind::FailedOver), 0);
}

#[test]
fn without_quarantine_the_same_locks_are_granted_twice() {
    let mut pair = Pair::start();
    pair.cut_link();
    let holder = pair.builder().build().unwrap();
    let held: Vec<Hold> = names().map(|name| holder.lock(name).acquire_blocking().unwrap()).collect();
    pair.fail_over();
    let rival = pair.builder().build().unwrap();
    let taken: Vec<Hold> = names().map(|name| rival.lock(name).acquire_blocking().unwrap()).collect();
    for (held, taken) in held.iter().zip(&taken) {
        assert!(taken.fence() > held.fence(), "but the later holder has the larger fence");
    }
}

#[test]
fn a_key_that_another_program_deleted_is_not_written_again_without_a_failover() {
    let pair = Pair::start();
    let (client, events) = Events::of(quarantined(pair.builder()));
    client.initialize_quorum().blocking().unwrap();
    let held = client.lock("a").acquire_blocking().unwrap();
    pair.primary.command(&["DEL", "a"]);
    assert_eq!(held.renew_now().blocking().unwrap_err().code(), Code::LockLost);
    assert_eq!((pair.primary.command(&["EXISTS", "a"]).int(), events.count(EventKind::Lost)), (0, 1));
}

#[test]
fn a_new_server_grants_after_max_ttl_and_all_clients_need_the_option() {
    let pair = Pair::start();
    let start = std::time::Instant::now();
    let short = |builder: ClientBuilder| builder.failover(Failover::Quarantine).max_ttl(ms(2_000)).ttl(ms(2_000));
    let client = short(pair.builder()).unavailable_after(PATIENCE).build().unwrap();
    client.lock("a").acquire_blocking().unwrap().release().blocking().unwrap();
    assert!(start.elapsed() >= ms(2_000), "{:?}", start.elapsed());
    let plain = pair.builder().build().unwrap().lock("a").acquire_blocking().unwrap_err();
    assert_eq!(plain.code(), Code::InvalidArgument, "{plain}");
    assert!(plain.to_string().contains("quarantine") && plain.to_string().contains("n=1 max_ttl=2000"), "{plain}");
    let other = quarantined(pair.builder()).build().unwrap().lock("a").acquire_blocking().unwrap_err();
    assert_eq!(other.code(), Code::InvalidArgument, "{other}");
    assert!(other.to_string().contains("n=1 max_ttl=2000") && other.to_string().contains("n=1 max_ttl=10000"), "{other}");
}

#[test]
fn quarantine_is_refused_where_a_failover_could_not_be_seen() {
    let blind = ServerOptions::new().user("ann", "secret", "~* &* +@all -info").start();
    let url = format!("redis://ann:secret@127.0.0.1:{}", blind.port());
    let error = quarantined(Client::builder().url(url)).build().unwrap().lock("a").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::Denied, "{error}");
    assert!(error.to_string().contains("+info"), "{error}");
    let node = ServerOptions::new().config("cluster-enabled yes").start();
    let error = quarantined(Client::builder().url(node.url())).build().unwrap().lock("a").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
}

#[test]
fn locks_are_fair_with_quarantine_too() {
    let server = ServerOptions::new().start();
    let client = quarantined(Client::builder().url(server.url())).build().unwrap();
    client.initialize_quorum().blocking().unwrap();
    let held = client.lock("a").fair(true).acquire_blocking().unwrap();
    let waiters = || server.command(&["ZCOUNT", "{a}:~lt:queue", "0", "+inf"]).int();
    let second = client.lock("a").fair(true).ttl(ms(5_000));
    let third = client.lock("a").fair(true).ttl(ms(5_000));
    std::thread::scope(|scope| {
        let second = scope.spawn(|| second.acquire_blocking().unwrap());
        eventually("one waits", PATIENCE, || waiters() == 1);
        let third = scope.spawn(|| third.acquire_blocking().unwrap());
        eventually("two wait", PATIENCE, || waiters() == 2);
        held.release().blocking().unwrap();
        let second = second.join().unwrap();
        assert_eq!(server.holder("a").as_deref(), Some(second.owner()), "it was kept for the first");
        second.release().blocking().unwrap();
        assert!(third.join().unwrap().fence() > second.fence());
    });
}
