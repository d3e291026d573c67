//! Waiters of a server that stops answering.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use locktender::{Code, EventKind};
use locktender_tests::{PATIENCE, RealServer, eventually};

use crate::{Watched, ms, queue_length};

/// How long a client waits for a server that is away.
const UNAVAILABLE_AFTER: std::time::Duration = ms(1_000);

#[test]
fn f18_queued_waiters_learn_of_an_outage_with_the_first_of_them() {
    const WAITERS: usize = 12;
    for fair in [false, true] {
        let mut server = RealServer::start();
        let one = Watched::open(&server.url());
        let two = Watched::open_with(&server.url(), |options| options.unavailable_after = UNAVAILABLE_AFTER);
        let _held = one.client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
        let waiters: Vec<_> = (0..WAITERS)
            .map(|_| {
                let lock = two.client.lock("a").fair(fair);
                std::thread::spawn(move || lock.acquire_blocking().unwrap_err().code())
            })
            .collect();
        // The client is a member, too.
        let members = if fair { WAITERS as i64 + 1 } else { 2 };
        eventually("the waiters are in the queue", PATIENCE, || queue_length(&server, "a") == members);
        let before = two.count(EventKind::Round);
        server.kill();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Code::Unavailable);
        }
        // The first tries for as long as its patience lasts, some dozen times. The others don't begin again when it has ended.
        let tried = two.count(EventKind::Round) - before;
        assert!(tried <= 4 * WAITERS, "{tried} attempts, fair: {fair}");
    }
}

#[test]
fn a_long_queue_ends_with_its_server_and_not_on_the_stack() {
    const WAITERS: usize = 4_000;
    let mut server = RealServer::start();
    let one = Watched::open(&server.url());
    let two = Watched::open_with(&server.url(), |options| options.unavailable_after = UNAVAILABLE_AFTER);
    let _held = one.client.lock("a").ttl(ms(60_000)).acquire_blocking().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let begun = Rc::new(Cell::new(0));
        let tasks = tokio::task::LocalSet::new();
        let waiters: Vec<_> = (0..WAITERS)
            .map(|_| {
                let (lock, begun) = (two.client.lock("a"), Rc::clone(&begun));
                tasks.spawn_local(async move {
                    begun.set(begun.get() + 1);
                    lock.acquire().await.unwrap_err().code()
                })
            })
            .collect();
        let all_wait = async {
            while begun.get() < WAITERS {
                tokio::task::yield_now().await;
            }
        };
        tasks.run_until(all_wait).await;
        eventually("they are in the queue", PATIENCE, || queue_length(&server, "a") == 2);
        let start = Instant::now();
        server.kill();
        tasks.await;
        for waiter in waiters {
            assert_eq!(waiter.await.unwrap(), Code::Unavailable);
        }
        assert!(start.elapsed() < 2 * UNAVAILABLE_AFTER, "{:?}", start.elapsed());
    });
}
