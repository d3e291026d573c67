//! Replicas: grants and extensions that count only when replicas have confirmed them.

use std::thread;

use locktender::{Client, ClientBuilder, Code, EventKind, FailureKind, Hold, LossReason, Outcome};
use locktender_tests::{Events, PATIENCE, ServerOptions, eventually};

use crate::primary_with_one::{Pair, ms};
use crate::primary_with_two::in_every_way;

fn confirmed(pair: &Pair) -> ClientBuilder {
    pair.builder().min_replicas(1).unavailable_after(ms(300))
}

#[test]
fn what_all_replicas_have_confirmed_has_no_second_holder_after_a_failover_and_the_rest_is_not_granted() {
    in_every_way(|mut trio, way| {
        let holder = trio.holders().min_replicas(2).ttl(ms(20_000)).unavailable_after(ms(300)).build().unwrap();
        let held: Vec<Hold> = (0..20).map(|number| holder.lock(format!("a{number}")).acquire_blocking().unwrap()).collect();
        trio.cut_links();
        let refused: Vec<String> = (0..3).map(|number| format!("b{number}")).collect();
        for name in &refused {
            let error = holder.lock(name).acquire_blocking().unwrap_err();
            assert_eq!(
                (error.code(), error.servers()[0].kind),
                (Code::Unavailable, FailureKind::NotReplicated),
                "{way:?}: {error}"
            );
            assert!(error.to_string().contains("0 of 2 replicas"), "{error}");
            eventually("it is undone", PATIENCE, || trio.primary.command(&["EXISTS", name]).int() == 0);
        }
        trio.fail_over(way);
        // The new primary has one replica.
        let rival = trio.others().min_replicas(1).build().unwrap();
        for held in &held {
            assert!(rival.lock(held.name()).try_acquire_blocking().unwrap().is_none(), "{way:?}");
            assert!(held.is_valid(), "{way:?}: {:?}", held.check());
        }
        for name in refused {
            assert!(rival.lock(name).try_acquire_blocking().unwrap().is_some(), "{way:?}");
        }
    });
}

#[test]
fn holds_are_granted_renewed_handed_on_and_released_while_the_replica_follows() {
    let pair = Pair::start();
    let (client, events) = Events::of(confirmed(&pair).ttl(ms(400)));
    let other = confirmed(&pair).build().unwrap();
    let held = client.lock("a").acquire_blocking().unwrap();
    events.at_least(EventKind::Renewed, 3);
    assert_eq!(pair.replica.holder("a").as_deref(), Some(held.owner()));
    held.extend(ms(5_000)).blocking().unwrap();
    thread::scope(|scope| {
        let next = scope.spawn(|| other.lock("a").acquire_blocking().unwrap());
        eventually("it waits", PATIENCE, || pair.primary.command(&["ZCOUNT", "{a}:~lt:queue", "0", "+inf"]).int() == 1);
        assert_eq!(held.release().blocking().unwrap().outcome, Outcome::Released);
        let next = next.join().unwrap();
        assert_eq!(pair.replica.holder("a").as_deref(), Some(next.owner()));
    });
    // Many at once share one WAIT.
    thread::scope(|scope| {
        for number in 0..20 {
            let client = &client;
            scope.spawn(move || client.lock(format!("b{number}")).acquire_blocking().unwrap().release().blocking().unwrap());
        }
    });
    assert_eq!(events.count(EventKind::Lost), 0);
}

#[test]
fn while_the_replica_stands_still_nothing_is_granted_and_a_hold_ends_when_its_last_confirmed_ttl_does() {
    let pair = Pair::start();
    let (client, events) = Events::of(confirmed(&pair).ttl(ms(3_000)));
    let held = client.lock("a").acquire_blocking().unwrap();
    pair.replica.pause();
    let error = client.lock("b").acquire_blocking().unwrap_err();
    assert_eq!((error.code(), error.servers()[0].kind), (Code::Unavailable, FailureKind::NotReplicated), "{error}");
    events.at_least(EventKind::Lost, 1);
    assert_eq!(events.last(EventKind::Lost).unwrap().reason, Some(LossReason::Expired));
    assert!(!held.is_valid());
    pair.replica.resume();
    client.lock("b").wait(PATIENCE).acquire_blocking().or_else(|_| client.lock("b").acquire_blocking()).unwrap();
}

#[test]
fn a_hold_is_taken_over_although_the_replica_stands_still_for_a_moment() {
    let pair = Pair::start();
    let client = pair.builder().min_replicas(1).ttl(ms(30_000)).build().unwrap();
    let handed_over = |hold: Hold| client.adopt(&hold.hand_over().unwrap());
    let writer = client.lock("writer").acquire_blocking().unwrap();
    let take_over = [
        writer.downgrade(),
        handed_over(client.lock("other").acquire_blocking().unwrap()),
        handed_over(client.read_lock("reader").acquire_blocking().unwrap()),
    ];
    for mut call in take_over {
        pair.replica.pause();
        let early = call.wait_for(ms(500));
        assert!(early.is_none(), "no replica confirms it: {early:?}");
        pair.replica.resume();
        let hold = call.blocking().unwrap();
        hold.extend(ms(40_000)).blocking().unwrap();
        assert_eq!(hold.release().blocking().unwrap().outcome, Outcome::Released);
    }
    for name in ["writer", "other", "reader"] {
        assert_eq!(pair.primary.command(&["EXISTS", name]).int(), 0);
    }
}

#[test]
fn a_user_needs_the_right_to_wait() {
    let server = ServerOptions::new().user("ann", "secret", "~* &* +@all -wait").start();
    let url = format!("redis://ann:secret@127.0.0.1:{}", server.port());
    let error = Client::builder().url(url).min_replicas(1).build().unwrap().lock("a").acquire_blocking().unwrap_err();
    assert_eq!(error.code(), Code::Denied, "{error}");
    assert!(error.to_string().contains("wait"), "{error}");
    eventually("nothing is left", PATIENCE, || server.command(&["EXISTS", "a"]).int() == 0);
}

#[test]
fn a_report_compares_the_replicas_with_those_that_confirm() {
    let pair = Pair::start();
    let warnings = |replicas: u32| {
        let client = pair.builder().min_replicas(replicas).build().unwrap();
        client.check_servers().blocking().unwrap().remove(0).warnings.join("\n")
    };
    assert!(!warnings(1).contains("replicas have to confirm"), "{}", warnings(1));
    assert!(warnings(2).contains("2 replicas have to confirm each grant, and 1 are connected to it"), "{}", warnings(2));
}
