//! Hand-over: from the holder to the next waiter.

use std::sync::Arc;
use std::time::Instant;

use locktender::internals::name::{Keys, Kind};
use locktender::internals::redis::Script;
use locktender::op::{LockOp, Op, Verb};
use locktender::{Client, EventKind, Remaining};
use locktender_tests::{Connection, PATIENCE, RealServer, ServerOptions, eventually};

use crate::{Watched, acquire, ms, queue_length, visit};

#[test]
fn a_release_hands_the_lock_to_the_waiter_without_a_poll() {
    hands_over(&RealServer::start());
}

#[test]
fn the_only_node_of_a_cluster_behind_a_plain_url_hands_over_like_any_server() {
    let node = ServerOptions::new().config("cluster-enabled yes").start();
    node.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    eventually("it serves", PATIENCE, || node.command(&["CLUSTER", "INFO"]).text().unwrap().contains("cluster_state:ok"));
    hands_over(&node);
}

fn hands_over(server: &RealServer) {
    let (one, two) = (Watched::open(&server.url()), Watched::open(&server.url()));
    for n in 0..20 {
        let held = one.client.lock("a").acquire_blocking().unwrap();
        let waiter = acquire(two.client.lock("a"));
        two.queued(n + 1);
        held.release().blocking().unwrap();
        let next = waiter.join().unwrap();
        assert!(next.fence() > held.fence());
        next.release().blocking().unwrap();
    }
    // The first waiter may have been notified before it listened.
    assert!(two.events.notified() >= 19, "{} of 20 were notified", two.events.notified());
    assert_eq!(queue_length(server, "a"), 0);
}

#[test]
fn a_waiter_is_there_when_the_holder_expires() {
    let server = RealServer::start();
    let one = Watched::open(&server.url());
    server.command(&["SET", "a", "somebody", "PX", "400"]);
    let start = Instant::now();
    let held = one.client.lock("a").acquire_blocking().unwrap();
    let took = start.elapsed();
    assert!(took >= ms(395) && took < ms(700), "{took:?}: it neither came early nor waited for its next look");
    held.release().blocking().unwrap();
}

#[test]
fn a_holder_of_another_library_that_deletes_its_key_is_followed_within_about_a_second() {
    let server = RealServer::start();
    let one = Watched::open(&server.url());
    server.command(&["SET", "a", "redis-py", "PX", "600000"]);
    let waiter = acquire(one.client.lock("a"));
    one.queued(1);
    let start = Instant::now();
    server.command(&["DEL", "a"]);
    waiter.join().unwrap();
    assert!(start.elapsed() < ms(1_500), "{:?}", start.elapsed());
}

#[test]
fn who_holds_and_who_waits_can_be_seen() {
    let server = RealServer::start();
    let (one, two) = (Watched::open(&server.url()), Watched::open(&server.url()));
    let held = one.client.lock("a").acquire_blocking().unwrap();
    let waiters = [visit(one.client.lock("a")), visit(two.client.lock("a")), visit(two.client.lock("a").fair(true))];
    two.queued(2);
    one.queued(1);
    let info = two.client.lock("a").inspect().blocking().unwrap().unwrap();
    assert_eq!((info.owner.as_str(), info.waiters, info.queue.len()), (held.owner(), 3, 3));
    let me = format!("pid={}", std::process::id());
    assert!(info.queue.iter().all(|waiter| waiter.contains(&me)), "{:?}", info.queue);

    let error = two.client.lock("a").wait(ms(50)).acquire_blocking().unwrap_err();
    assert_eq!(error.holder().map(|holder| holder.owner.as_str()), Some(held.owner()));
    assert!(error.holder().is_some_and(|holder| matches!(holder.remaining, Remaining::For(_))));
    held.release().blocking().unwrap();
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
}

#[test]
fn an_error_shows_how_many_were_before() {
    let server = RealServer::start();
    let clients: Vec<Watched> = (0..3).map(|_| Watched::open(&server.url())).collect();
    let held = clients[0].client.lock("a").acquire_blocking().unwrap();
    let waiters: Vec<_> = clients[1..]
        .iter()
        .map(|waiting| {
            let waiter = visit(waiting.client.lock("a"));
            waiting.queued(1);
            waiter
        })
        .collect();
    let error = clients[0].client.lock("a").wait(ms(50)).acquire_blocking().unwrap_err();
    assert_eq!(error.rank(), Some(2), "{error}");
    assert_eq!(clients[0].last(EventKind::Queued).and_then(|event| event.rank), Some(2));
    held.release().blocking().unwrap();
    for waiter in waiters {
        waiter.join().unwrap();
    }
    eventually("nobody is left in the queue", PATIENCE, || queue_length(&server, "a") == 0);
}

#[test]
fn nobody_starves_though_the_releaser_takes_the_lock_back_in_the_same_moment() {
    const GREEDY: &str = "host=greedy id=0193d1d2-3c4d-7e5f-8a6b-7c8d9e0f1a2b";
    let keys = Arc::new(Keys::new(Kind::Exclusive, "", "a", true).unwrap());
    let release = LockOp { keys: keys.clone(), by: GREEDY.into(), verb: Verb::Release { leave: None, kept_ms: 0 } };
    let script = Script::of(&Op::Lock(release)).unwrap().text(false);
    let server = RealServer::start();
    let mut greedy = server.connection().unwrap();
    let patient = Watched::open(&server.url());
    greedy.command(&["SET", "a", GREEDY, "PX", "60000"]).unwrap();
    let waiter = acquire(patient.client.lock("a"));
    patient.queued(1);
    let start = Instant::now();
    // No other command comes between the release and the next acquire: only a lock that is kept for the waiter can stop this.
    let mut passed = 0;
    let undone = |greedy: &mut Connection| {
        greedy.command(&["MULTI"]).unwrap();
        greedy.command(&["EVAL", script, "5", "a", keys.clock(), keys.queue(), keys.marker(), keys.marks(), GREEDY]).unwrap();
        greedy.command(&["SET", "a", GREEDY, "NX", "PX", "60000"]).unwrap();
        greedy.command(&["EXEC"]).unwrap();
        greedy.command(&["GET", "a"]).unwrap().text().is_some_and(|holder| holder.starts_with(GREEDY))
    };
    while undone(&mut greedy) && start.elapsed() < PATIENCE {
        passed += 1;
        std::thread::sleep(ms(5));
    }
    // A waiter is granted the lock directly once it has waited for a second.
    let took = start.elapsed();
    assert!(took >= ms(950) && took < ms(1_600), "{took:?}");
    assert!(passed > 10, "{passed}");
    waiter.join().unwrap();
}

#[test]
fn a_waiter_that_joins_the_queue_in_the_very_moment_in_which_its_front_leaves_is_not_forgotten() {
    let client = Client::open("memory://moment").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    client.lock("a").wait(PATIENCE).acquire_blocking().unwrap().release().blocking().unwrap();
                }
            });
        }
    });
}

#[test]
fn who_adopts_a_lock_does_not_wait_behind_others_of_its_process() {
    let server = RealServer::start();
    let (one, two) = (Watched::open(&server.url()), Watched::open(&server.url()));
    let held = one.client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    let waiter = acquire(two.client.lock("a"));
    two.queued(1);
    let ticket = held.hand_over().unwrap();
    let start = Instant::now();
    let adopted = two.client.adoption(&ticket).unwrap().wait(PATIENCE).acquire_blocking().unwrap();
    assert!(start.elapsed() < PATIENCE / 4, "{:?}: it is not the last try before its wait is over", start.elapsed());
    assert!(adopted.fence() > held.fence());
    adopted.release().blocking().unwrap();
    waiter.join().unwrap();
}
