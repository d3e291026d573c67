//! Many waiters: of one process, and of many.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use locktender::EventKind;
use locktender_tests::{PATIENCE, RealServer, eventually};

use crate::{Watched, ms, pass_through, scripts_run};

#[test]
fn many_waiters_of_one_process_cost_few_commands_and_are_served_in_their_order() {
    const WAITERS: usize = 500;
    let server = RealServer::start();
    let mut statistics = server.connection().unwrap();
    let (one, two) = (Watched::open(&server.url()), Watched::open(&server.url()));
    let held = one.client.lock("a").acquire_blocking().unwrap();
    let (order, served) = mpsc::channel();
    let before = scripts_run(&mut statistics);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let waiters: Vec<_> = (0..WAITERS)
            .map(|who| {
                let (lock, order) = (two.client.lock("a"), order.clone());
                tokio::spawn(async move {
                    let held = lock.acquire().await.unwrap();
                    order.send(who).unwrap();
                    held.release().await.unwrap();
                })
            })
            .collect();
        tokio::time::sleep(ms(50)).await;
        held.release().await.unwrap();
        for waiter in waiters {
            waiter.await.unwrap();
        }
    });
    let asked = scripts_run(&mut statistics) - before;
    assert!(asked <= 4 * WAITERS as u64, "{asked} commands for {WAITERS} acquisitions");
    assert_eq!(served.try_iter().collect::<Vec<_>>(), (0..WAITERS).collect::<Vec<_>>());
}

#[test]
fn a_parked_process_sends_two_commands_a_second_at_most_however_many_of_its_tasks_wait() {
    let server = RealServer::start();
    let mut statistics = server.connection().unwrap();
    let (one, two) = (Watched::open(&server.url()), Watched::open(&server.url()));
    for fair in [false, true] {
        let held = one.client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
        let (order, _served) = mpsc::channel();
        let waiters: Vec<_> =
            (0..50).map(|who| pass_through(two.client.lock("a").fair(fair), who, Duration::ZERO, &order)).collect();
        two.queued(if fair { 51 } else { 1 });
        // What the first registration set going is over when it looks the second time.
        let looks = two.count(EventKind::Round);
        eventually("it looks", PATIENCE, || two.count(EventKind::Round) >= looks + 2);
        let (before, start) = (scripts_run(&mut statistics), Instant::now());
        std::thread::sleep(ms(3_000));
        let asked = scripts_run(&mut statistics) - before;
        let allowed = 2.0 * start.elapsed().as_secs_f64();
        assert!(asked as f64 <= allowed, "{asked} commands in {:?}, fair: {fair}", start.elapsed());
        held.release().blocking().unwrap();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    }
}

#[test]
fn threads_of_one_client_that_take_turns_are_all_notified() {
    let server = RealServer::start();
    for _ in 0..20 {
        let one = Watched::open(&server.url());
        let lock = one.client.lock("a").wait(PATIENCE);
        let start = Instant::now();
        let take_turns = || (0..20).for_each(|_| drop(lock.acquire_blocking().unwrap().release().blocking().unwrap()));
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(take_turns))));
        // Eighty looks would take more than a minute.
        assert!(start.elapsed() < ms(5_000), "{:?}", start.elapsed());
    }
}
