//! There and back: a primary becomes a replica of a replica that lags, and a primary again, and closes no connection.

use locktender::{Client, ClientBuilder, Code, EventKind, Failover, FailureKind, LossReason};
use locktender_tests::{Events, PATIENCE, Proxy, RealServer, ServerOptions, eventually};

use crate::pair::{Pair, ms};
use crate::trio::versions;

const MARKER: &str = "{~lt}:marker";

fn quarantined(builder: ClientBuilder) -> ClientBuilder {
    builder.failover(Failover::Quarantine).max_ttl(ms(60_000)).ttl(ms(60_000)).response_timeout(PATIENCE)
}

/// Has the primary load what its replica has, and be the primary again.
fn there_and_back(pair: &Pair) {
    let Pair { primary, replica, .. } = pair;
    replica.command(&["REPLICAOF", "NO", "ONE"]);
    primary.command(&["REPLICAOF", "127.0.0.1", &replica.port().to_string()]);
    let info = || primary.command(&["INFO", "replication"]).text().unwrap();
    eventually("the old primary has the data of the replica", PATIENCE, || info().contains("master_link_status:up"));
    primary.command(&["REPLICAOF", "NO", "ONE"]);
}

fn marker(server: &RealServer) -> String {
    server.command(&["GET", MARKER]).text().unwrap()
}

fn is_refused(client: &Client, name: &str) -> bool {
    match client.lock(name).try_acquire_blocking() {
        Ok(_) => false,
        Err(error) => {
            assert_eq!((error.code(), error.servers()[0].kind), (Code::Unavailable, FailureKind::Quarantine), "{error}");
            true
        }
    }
}

#[test]
fn a_lock_that_was_lost_on_the_way_there_and_back_is_not_granted_twice_and_its_holder_keeps_it() {
    for binary in versions() {
        let pair = Pair::with(|| ServerOptions::new().binary(&binary));
        let (holder, events) = Events::of(quarantined(pair.builder()));
        holder.initialize_quorum().blocking().unwrap();
        eventually("the marker is replicated", PATIENCE, || pair.replica.command(&["EXISTS", MARKER]).int() == 1);
        let rivals: Vec<Client> = (0..3).map(|_| quarantined(pair.builder()).build().unwrap()).collect();
        for rival in &rivals {
            rival.lock("warm").acquire_blocking().unwrap().release().blocking().unwrap();
        }
        pair.cut_link();
        let held = [true, false].map(|renew| holder.lock(format!("renew {renew}")).renew(renew).acquire_blocking().unwrap());
        there_and_back(&pair);
        assert_eq!(pair.primary.command(&["EXISTS", held[0].name(), held[1].name()]).int(), 0, "replication has lost them");
        assert!(is_refused(&rivals[0], held[0].name()) && is_refused(&rivals[0], held[1].name()));
        let begun = marker(&pair.primary);
        // Each of them has a connection from before the failover, and none begins the quarantine again.
        assert!(rivals.iter().all(|rival| is_refused(rival, "another")));
        assert_eq!(marker(&pair.primary), begun);
        // The server answers that the key is gone, and then that it has another replication id.
        held[0].renew_now().blocking().unwrap();
        for held in &held {
            let owner = || pair.primary.holder(held.name());
            eventually("the key is there again", PATIENCE, || owner().as_deref() == Some(held.owner()));
            assert!(held.is_valid(), "{:?}", held.check());
        }
        assert_eq!((events.count(EventKind::FailedOver), events.count(EventKind::Lost)), (1, 0));
    }
}

#[test]
fn a_server_that_renames_its_replid_for_its_first_replica_costs_connected_clients_nothing() {
    for binary in versions() {
        let start = || ServerOptions::new().binary(&binary).config("repl-diskless-sync-delay 0").start();
        let [primary, replica] = [start(), start()];
        let client = || quarantined(Client::builder().url(primary.url())).build().unwrap();
        let old = [client(), client()];
        old[0].initialize_quorum().blocking().unwrap();
        old.iter().for_each(|client| assert!(!is_refused(client, "a")));
        let before = marker(&primary);
        replica.command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
        let info = || replica.command(&["INFO", "replication"]).text().unwrap();
        eventually("the replica follows", PATIENCE, || info().contains("master_link_status:up"));
        old.iter().for_each(|client| assert!(!is_refused(client, "b")));
        assert_eq!(marker(&primary), before);
        let new = client();
        assert!(is_refused(&new, "c"), "it can't know that this is the replication id of the marker");
        let begun = marker(&primary);
        assert!(old.iter().chain([&new]).all(|client| is_refused(client, "c")));
        assert_eq!(marker(&primary), begun, "nobody begins again");
    }
}

#[test]
fn a_majority_of_a_quorum_that_goes_there_and_back_grants_nothing_twice() {
    let pairs = [(); 3].map(|()| Pair::start());
    let builder = || {
        let urls: Vec<String> = pairs.iter().map(|pair| pair.address.url()).collect();
        Client::builder().urls(urls).max_ttl(ms(60_000)).ttl(ms(60_000)).response_timeout(PATIENCE)
    };
    let (holder, events) = Events::of(builder());
    let rival = builder().build().unwrap();
    holder.initialize_quorum().blocking().unwrap();
    for pair in &pairs {
        eventually("the marker is replicated", PATIENCE, || pair.replica.command(&["EXISTS", MARKER]).int() == 1);
        pair.cut_link();
    }
    rival.lock("warm").acquire_blocking().unwrap().release().blocking().unwrap();
    let held = holder.lock("a").renew(false).acquire_blocking().unwrap();
    pairs[..2].iter().for_each(there_and_back);
    assert!(is_refused(&rival, "a"));
    // The holder's own connection, opened since the grant, has seen the new replication id, and no majority has the key any more.
    events.at_least(EventKind::Lost, 1);
    assert_eq!(held.check().unwrap_err().loss().unwrap().reason, LossReason::Missing);
    assert!(is_refused(&rival, "a"));
}

#[test]
fn a_promotion_that_is_undone_costs_no_hold() {
    let mut pair = Pair::start();
    let (client, events) = Events::of(quarantined(pair.builder()).ttl(ms(20_000)));
    client.initialize_quorum().blocking().unwrap();
    let held = client.lock("a").acquire_blocking().unwrap();
    eventually("all is replicated", PATIENCE, || pair.replica.command(&["EXISTS", MARKER, "a"]).int() == 2);
    // The replica is promoted by mistake, and made a replica again. The primary doesn't know it.
    pair.fail_over();
    events.at_least(EventKind::FailedOver, 1);
    pair.follow();
    pair.address.redirect(pair.primary.port());
    events.at_least(EventKind::FailedOver, 2);
    held.renew_now().blocking().unwrap();
    assert!(held.is_valid(), "{:?}", held.check());
    assert_eq!(pair.primary.holder("a").as_deref(), Some(held.owner()));
    assert!(is_refused(&client, "b"), "the primary may lack locks that the replica has granted");
    let fresh = Proxy::to(pair.primary.port());
    assert!(!is_refused(&quarantined(Client::builder().url(fresh.url())).build().unwrap(), "c"), "who never saw the replica");
}
