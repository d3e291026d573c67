//! The clock of users' tests: it moves renewals, expiry, waits and late answers, on servers of this process alone.
//!
//! The same scenes as in tests/python/test_testing_clock.py and tests/node/testing_clock.test.mjs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use locktender::testing::Clock;
use locktender::testing::ScriptedServer;
use locktender::{Client, ClientBuilder, Code, EventKind, LossReason, Wait};
use locktender_tests::{Events, RealServer};

/// How long a test waits in real time for what is certain to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tests stay ten seconds away from its end: a machine may stall.
const TTL: Duration = Duration::from_secs(60);

const HOUR: Duration = Duration::from_secs(3600);

const fn s(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn clock() -> Clock {
    Clock::take().unwrap()
}

fn open(builder: ClientBuilder) -> (Client, Events) {
    Events::of(builder.configure(|options| options.lock.ttl = TTL))
}

fn memory(name: &str) -> (Client, Events) {
    open(Client::builder().urls(format!("memory://testing-clock-{name}")))
}

fn scripted(servers: &[Arc<ScriptedServer>]) -> (Client, Events) {
    let builder = servers.iter().fold(Client::builder(), |builder, server| builder.server(Arc::clone(server)));
    open(builder)
}

#[test]
fn a_hold_that_nobody_renews_expires_and_its_holder_is_notified() {
    let clock = clock();
    let (client, events) = memory("expires");
    let held = client.lock("orders").renew(false).acquire_blocking().unwrap();
    let (sender, received) = channel();
    held.on_lost(move |loss| sender.send(loss).unwrap());
    clock.advance_blocking(s(50)).unwrap();
    assert!(held.is_valid() && received.try_recv().is_err());
    assert!(client.lock("orders").try_acquire_blocking().unwrap().is_none());
    clock.advance_blocking(s(10)).unwrap();
    assert_eq!(received.try_recv().unwrap().reason, LossReason::Expired);
    assert_eq!(held.check().unwrap_err().code(), Code::LockLost);
    assert_eq!(events.count(EventKind::Lost), 1);
    // A server keeps a key through the millisecond in which its ttl ends.
    clock.advance_blocking(Duration::from_millis(1)).unwrap();
    assert!(client.lock("orders").try_acquire_blocking().unwrap().is_some());
}

#[test]
fn a_waiter_has_the_lock_of_a_client_that_died_once_its_key_expires() {
    let clock = clock();
    let (client, events) = memory("died");
    // A hand-over that nobody adopts leaves the key as a client that is killed does.
    client.lock("orders").acquire_blocking().unwrap().hand_over().unwrap();
    let (sender, granted) = channel();
    let lock = client.lock("orders");
    thread::spawn(move || sender.send(lock.acquire_blocking().unwrap()).unwrap());
    events.at_least(EventKind::Queued, 1);
    clock.advance_blocking(s(50)).unwrap();
    assert!(granted.try_recv().is_err());
    clock.advance_blocking(s(11)).unwrap();
    assert!(granted.recv_timeout(PATIENCE).unwrap().is_valid());
}

#[test]
fn renewals_keep_a_long_job_alive_over_an_hour() {
    let clock = clock();
    let three: Vec<_> = (0..3).map(|number| ScriptedServer::new(&format!("hour-{number}"))).collect();
    for (client, events) in [memory("hour"), scripted(&[ScriptedServer::new("hour")]), scripted(&three)] {
        client.initialize_quorum_blocking().unwrap();
        let held = client.lock("orders").acquire_blocking().unwrap();
        let began = Instant::now();
        clock.advance_blocking(HOUR).unwrap();
        assert!(held.is_valid() && held.remaining() > s(35), "{:?}", held.remaining());
        // A little before every third of the ttl.
        let renewals = events.count(EventKind::Renewed);
        assert!((180..195).contains(&renewals), "{renewals} renewals in {:?}", began.elapsed());
        assert!(client.lock("orders").try_acquire_blocking().unwrap().is_none());
        assert_eq!(held.release_blocking().unwrap().outcome.as_str(), "released");
        assert_eq!((events.count(EventKind::Lost), events.count(EventKind::Warning)), (0, 0));
    }
}

#[test]
fn hundreds_of_holds_are_kept_through_one_long_step() {
    let clock = clock();
    let (client, events) = memory("hundreds");
    let holds: Vec<_> = (0..500).map(|number| client.lock(number.to_string()).acquire_blocking().unwrap()).collect();
    clock.advance_blocking(s(120)).unwrap();
    assert!(holds.iter().all(locktender::Hold::is_valid));
    assert_eq!(events.count(EventKind::Lost), 0);
}

#[test]
fn a_wait_times_out() {
    let clock = clock();
    let (client, events) = memory("wait");
    let held = client.lock("orders").acquire_blocking().unwrap();
    let lock = client.lock("orders").wait(s(60));
    let (sender, ended) = channel();
    thread::spawn(move || sender.send(lock.acquire_blocking()).unwrap());
    events.at_least(EventKind::Queued, 1);
    clock.advance_blocking(s(50)).unwrap();
    assert!(ended.try_recv().is_err());
    clock.advance_blocking(s(10)).unwrap();
    let error = ended.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(error.code(), Code::AcquireTimeout);
    assert_eq!(error.holder().unwrap().owner, held.owner());
}

#[test]
fn a_server_that_stops_answering_loses_a_hold_at_the_end_of_its_ttl() {
    let clock = clock();
    let server = ScriptedServer::new("silent");
    server.play("always extend: silence").unwrap();
    let (client, _) = scripted(&[Arc::clone(&server)]);
    let held = client.lock("orders").acquire_blocking().unwrap();
    let (sender, received) = channel();
    held.on_lost(move |loss| sender.send(loss).unwrap());
    clock.advance_blocking(s(50)).unwrap();
    assert!(held.is_valid() && received.try_recv().is_err());
    clock.advance_blocking(s(10)).unwrap();
    assert_eq!(received.try_recv().unwrap().reason, LossReason::Expired);
    assert!(server.seen().iter().filter(|seen| seen.op == "extend").count() > 2, "it was tried again, at the server's pace");
}

#[test]
fn late_answers_and_the_patience_with_a_server_keep_to_the_clock() {
    let clock = clock();
    let late = ScriptedServer::new("late");
    late.play("acquire: real delay=30000").unwrap();
    let patient = Client::builder().server(late).configure(|options| options.response_timeout = Some(TTL));
    let (client, _) = open(patient);
    let mut acquire = client.lock("orders").acquire();
    assert!(acquire.wait_for(Duration::ZERO).is_none());
    clock.advance_blocking(s(20)).unwrap();
    assert!(acquire.wait_for(Duration::ZERO).is_none());
    clock.advance_blocking(s(10)).unwrap();
    assert!(acquire.wait_for(Duration::ZERO).unwrap().unwrap().is_valid());

    let dead = ScriptedServer::new("dead");
    dead.play("always any: silence").unwrap();
    let (client, _) = open(Client::builder().server(dead).configure(|options| options.unavailable_after = TTL));
    let mut acquire = client.lock("orders").acquire();
    assert!(acquire.wait_for(Duration::ZERO).is_none());
    clock.advance_blocking(s(50)).unwrap();
    assert!(acquire.wait_for(Duration::ZERO).is_none());
    // The last answer is waited for.
    clock.advance_blocking(s(11)).unwrap();
    assert_eq!(acquire.wait_for(Duration::ZERO).unwrap().unwrap_err().code(), Code::Unavailable);
}

#[test]
fn the_longest_hold_ends_at_its_time() {
    let clock = clock();
    let (client, _) = memory("max-hold");
    let held = client.lock("orders").max_hold(s(600)).acquire_blocking().unwrap();
    clock.advance_blocking(s(590)).unwrap();
    assert!(held.is_valid());
    clock.advance_blocking(s(10)).unwrap();
    assert_eq!(held.check().unwrap_err().loss().unwrap().reason, LossReason::MaxHold);
}

#[test]
fn tasks_wait_for_the_clock_too() {
    let clock = clock();
    let (client, _) = memory("tasks");
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        let held = client.lock("orders").renew(false).acquire().await.unwrap();
        let waiting = client.lock("orders").wait(s(5)).try_acquire();
        assert!(waiting.await.unwrap().is_none());
        clock.advance(TTL).await.unwrap();
        assert_eq!(held.lost().await.unwrap().reason, LossReason::Expired);
    });
}

#[test]
fn holds_are_kept_while_other_threads_work() {
    let clock = clock();
    let (client, events) = memory("busy");
    let kept: Vec<_> = (0..4).map(|number| client.lock(format!("kept-{number}")).acquire_blocking().unwrap()).collect();
    let (client, kept) = (&client, &kept);
    let done = &std::sync::atomic::AtomicBool::new(false);
    let is_done = || done.load(std::sync::atomic::Ordering::Relaxed);
    thread::scope(|scope| {
        for (number, held) in kept.iter().enumerate() {
            scope.spawn(move || {
                while !is_done() {
                    // The machine of the hold is busy with this as often as not when its renewal is due.
                    held.extend_blocking(TTL).unwrap();
                    client.lock(format!("visited-{number}")).acquire_blocking().unwrap().release_blocking().unwrap();
                }
            });
        }
        for _ in 0..6 {
            clock.advance_blocking(s(20)).unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(kept.iter().all(locktender::Hold::is_valid));
    assert_eq!(events.count(EventKind::Lost), 0);
}

#[test]
fn time_runs_by_itself_before_and_after() {
    let (client, events) = memory("goes-on");
    let held = client.lock("orders").ttl(Duration::from_secs(3)).acquire_blocking().unwrap();
    let clock = clock();
    clock.advance_blocking(HOUR).unwrap();
    drop(clock);
    assert!(held.is_valid());
    events.more(EventKind::Renewed, 1);
    let ends = client.lock("other").ttl(Duration::from_millis(300)).renew(false).acquire_blocking().unwrap();
    assert_eq!(ends.lost_blocking(PATIENCE).unwrap().unwrap().reason, LossReason::Expired);
}

#[test]
fn a_server_with_a_clock_of_its_own_is_refused() {
    let clock = clock();
    let server = RealServer::start();
    let (real, events) = open(Client::builder().urls(server.url()));
    clock.advance_blocking(HOUR).expect("a client without a lock is in nobody's way");
    let held = real.lock("orders").ttl(s(2)).acquire_blocking().unwrap();
    let refused = clock.advance_blocking(HOUR).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(
        refused.to_string(),
        format!(
            "the clock can't be moved while a lock is held or waited for on {}, which has a clock of its own: use memory:// or a \
             scripted server",
            real.check_servers_blocking().unwrap()[0].server
        )
    );
    assert!(held.is_valid());
    events.next_renewal();
    held.release_blocking().unwrap();
    clock.advance_blocking(HOUR).unwrap();
    assert_eq!(events.count(EventKind::Lost), 0);
}

#[test]
fn one_test_has_the_clock_and_moves_it_forward_alone() {
    let first = clock();
    assert_eq!(Clock::take().unwrap_err().code(), Code::InvalidArgument, "this thread would wait for itself");
    assert_eq!(Clock::try_take().unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(first.advance_blocking(s(367 * 86_400)).unwrap_err().code(), Code::InvalidArgument);
    first.advance_blocking(Duration::ZERO).unwrap();
    let (sender, taken) = channel();
    let second = thread::spawn(move || sender.send(Clock::take().map(drop)).unwrap());
    assert!(taken.recv_timeout(Duration::from_millis(50)).is_err());
    first.close();
    assert_eq!(first.advance_blocking(s(1)).unwrap_err().to_string(), "the clock was given back: take it again to move it");
    // A test beside this one may have had it in between.
    taken.recv_timeout(PATIENCE).unwrap().unwrap();
    second.join().unwrap();
}

#[test]
fn a_callback_that_waits_for_the_clock_is_refused() {
    let clock = Arc::new(clock());
    let (client, _) = memory("callback");
    let held = client.lock("orders").renew(false).acquire_blocking().unwrap();
    let (moves, answers) = (Arc::clone(&clock), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&answers);
    held.on_lost(move |_| noted.lock().unwrap().push(moves.advance_blocking(s(1))));
    clock.advance_blocking(TTL).unwrap();
    assert_eq!(answers.lock().unwrap()[0].as_ref().unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn a_wait_without_end_continues_for_an_hour() {
    let clock = clock();
    let (client, events) = memory("endless");
    let held = client.lock("orders").acquire_blocking().unwrap();
    let (sender, granted) = channel();
    let lock = client.lock("orders").wait(Wait::Forever);
    thread::spawn(move || sender.send(lock.acquire_blocking().unwrap()).unwrap());
    events.at_least(EventKind::Queued, 1);
    clock.advance_blocking(HOUR).unwrap();
    assert!(held.is_valid() && granted.try_recv().is_err());
    held.release_blocking().unwrap();
    assert!(granted.recv_timeout(PATIENCE).unwrap().is_valid());
}
