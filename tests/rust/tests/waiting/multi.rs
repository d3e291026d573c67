//! Several locks that are acquired all at once, or none of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use locktender::{Client, Code, EventKind, LockEvent, LockKind, MultiHold, MultiLock, Outcome};
use locktender_tests::{PATIENCE, RealServer, ServerOptions, eventually};

use crate::{Watched, acquire, entries, ms};

/// The servers of both kinds, with the real one, which lives as long.
fn servers(name: &str) -> (RealServer, [String; 2]) {
    let server = ServerOptions::new().start();
    let urls = [server.url(), format!("memory://{name}")];
    (server, urls)
}

fn both(client: &Client) -> MultiLock {
    client.multi_lock(["a", "b"]).ttl(ms(9_000))
}

/// Acquires on a thread of its own.
fn wait_for(lock: MultiLock) -> thread::JoinHandle<MultiHold> {
    thread::spawn(move || lock.acquire_blocking().unwrap())
}

fn wait_for_any(lock: MultiLock) -> thread::JoinHandle<Result<MultiHold, locktender::Error>> {
    thread::spawn(move || lock.acquire_blocking())
}

fn left(server: &RealServer) -> Vec<&'static str> {
    let keys = ["a", "b", "{a}:~lt:queue", "{b}:~lt:queue"];
    keys.into_iter().filter(|key| server.command(&["EXISTS", key]).int() > 0).collect()
}

#[test]
fn one_hold_has_all_of_them_and_each_event_says_so() {
    let (server, urls) = servers("multi-one");
    for url in urls {
        let watched = Watched::open(&url);
        let client = &watched.client;
        let before = client.lock("b").acquire_blocking().unwrap();
        let busy = both(client).wait(ms(20)).acquire_blocking().unwrap_err();
        assert_eq!((busy.code(), busy.lock_name()), (Code::AcquireTimeout, Some("b")), "{busy}");
        assert_eq!(busy.holder().map(|holder| &*holder.owner), Some(before.owner()));
        assert!(both(client).try_acquire_blocking().unwrap().is_none());
        assert!(client.lock("a").try_acquire_blocking().unwrap().is_some(), "it was not taken");
        before.release_blocking().unwrap();
        let hold = both(client).acquire_blocking().unwrap();
        assert_eq!((hold.names(), hold.is_valid()), (vec!["a", "b"], true));
        assert!(hold.fences()[1].1 > before.fence());
        for (name, fence) in hold.fences() {
            let seen = client.lock(name).inspect_blocking().unwrap().unwrap();
            assert_eq!((seen.owner.as_str(), seen.fence), (hold.owner(), Some(fence)));
        }
        let mine: Vec<_> = client.holds().into_iter().map(|hold| (hold.name, hold.kind)).collect();
        assert_eq!(mine, [("a".to_owned(), LockKind::MultiLock), ("b".to_owned(), LockKind::MultiLock)]);
        hold.extend(Duration::from_secs(30)).blocking().unwrap();
        assert!(hold.remaining() > Duration::from_secs(25));
        assert_eq!(hold.release().blocking().unwrap().outcome, Outcome::Released);
        assert_eq!((hold.is_valid(), hold.check().unwrap_err().code()), (false, Code::NotHeld));
        let event = |kind| watched.last(kind).unwrap();
        let names = |event: LockEvent| event.names.map(|names| names.join("+"));
        assert_eq!(names(event(EventKind::Released)).as_deref(), Some("a+b"));
        assert_eq!((event(EventKind::Released).lock_name.as_deref(), watched.count(EventKind::Lost)), (Some("a"), 0));
        assert_eq!(event(EventKind::TimedOut).lock_name.as_deref(), Some("a, b"));
        assert_eq!(names(event(EventKind::TimedOut)).as_deref(), Some("a+b"));
        let metrics = client.metrics();
        let counted = |name: &str| metrics.value(name, &[("kind", "multi_lock")]);
        assert_eq!((counted("locktender_held"), counted("locktender_waiting")), (0.0, 0.0));
    }
    assert_eq!(left(&server), Vec::<&str>::new());
}

#[test]
fn a_waiter_gets_all_as_soon_as_the_last_one_is_free() {
    let (server, urls) = servers("multi-waits");
    for url in urls {
        let [one, two] = [(); 2].map(|()| Watched::open(&url));
        for (round, name) in ["a", "b", "a", "b"].into_iter().enumerate() {
            let held = one.client.lock(name).ttl(ms(9_000)).acquire_blocking().unwrap();
            let waiting = wait_for(both(&two.client));
            two.queued(round + 1);
            held.release_blocking().unwrap();
            let hold = waiting.join().unwrap();
            let narrow = acquire(one.client.lock("b").ttl(ms(9_000)));
            one.queued(round + 1);
            hold.release().blocking().unwrap();
            narrow.join().unwrap().release_blocking().unwrap();
        }
        // The first one may have been notified before it listened.
        assert!(two.count(EventKind::Notified) >= 3, "{} of 4 were notified", two.count(EventKind::Notified));
    }
    assert_eq!(left(&server), Vec::<&str>::new());
}

#[test]
fn a_waiter_goes_from_the_queue_of_one_to_that_of_the_next() {
    let (server, urls) = servers("multi-moves");
    for url in urls {
        let [one, two, three] = [(); 3].map(|()| Watched::open(&url));
        let [a, b] = ["a", "b"].map(|name| one.client.lock(name).ttl(ms(9_000)).acquire_blocking().unwrap());
        let waiting = wait_for(both(&two.client));
        two.queued(1);
        let narrow = acquire(three.client.lock("a").ttl(ms(9_000)));
        three.queued(1);
        a.release_blocking().unwrap();
        // The wide one is the first in the queue, and can't use the lock.
        let narrow = narrow.join().unwrap();
        narrow.release_blocking().unwrap();
        b.release_blocking().unwrap();
        waiting.join().unwrap().release().blocking().unwrap();
    }
    assert_eq!(left(&server), Vec::<&str>::new());
}

#[test]
fn the_first_that_is_lost_loses_all_and_the_others_stay_taken_while_the_work_may_run() {
    let server = ServerOptions::new().start();
    let watched = Watched::open(&server.url());
    let hold = both(&watched.client).acquire_blocking().unwrap();
    let (sender, received) = std::sync::mpsc::channel();
    hold.on_lost(move |loss| sender.send(loss).unwrap());
    assert!(watched.client.lock("b").force_release_blocking(None).unwrap().is_some());
    let error = hold.extend(Duration::from_secs(20)).blocking().unwrap_err();
    assert_eq!((error.code(), error.lock_name()), (Code::LockLost, Some("b")));
    assert_eq!(received.recv_timeout(PATIENCE).unwrap().reason.as_str(), "missing");
    assert_eq!((hold.is_valid(), hold.check().unwrap_err().code()), (false, Code::LockLost));
    assert_eq!((watched.count(EventKind::Lost), server.command(&["EXISTS", "a"]).int()), (1, 1));
    assert_eq!(hold.release().blocking().unwrap().outcome, Outcome::Expired);
    assert_eq!(left(&server), Vec::<&str>::new());
    let lost = both(&watched.client).with_blocking(|_| {
        watched.client.lock("a").force_release_blocking(None).map(drop)?;
        eventually("it is lost", PATIENCE, || watched.count(EventKind::Lost) == 2);
        Ok::<_, locktender::Error>(())
    });
    assert!(matches!(&lost, Err(locktender::RunError::Lock(error)) if error.code() == Code::LockLost), "{lost:?}");
    assert_eq!(left(&server), Vec::<&str>::new());
}

#[test]
fn many_with_names_in_any_order_exclude_each_other_and_end() {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let (server, urls) = servers("multi-many");
    for url in &urls {
        let inside = [const { AtomicUsize::new(0) }; NAMES.len()];
        let work = |seed: u64| {
            let (client, mut rng) = (Client::open(&**url).unwrap(), fastrand::Rng::with_seed(seed));
            for _ in 0..10 {
                let mut names: Vec<usize> = (0..NAMES.len()).collect();
                rng.shuffle(&mut names);
                names.truncate(rng.usize(1..=3));
                let lock = client.multi_lock(names.iter().map(|name| NAMES[*name])).wait(Duration::from_secs(120));
                let hold = lock.acquire_blocking().unwrap();
                for name in &names {
                    assert_eq!(inside[*name].fetch_add(1, Ordering::SeqCst), 0, "{}", NAMES[*name]);
                }
                thread::sleep(ms(1));
                names.iter().for_each(|name| _ = inside[*name].fetch_sub(1, Ordering::SeqCst));
                hold.release().blocking().unwrap();
            }
        };
        thread::scope(|scope| {
            for seed in 0..10 {
                let work = &work;
                scope.spawn(move || work(seed));
            }
        });
    }
    assert_eq!(left(&server), Vec::<&str>::new());
}

#[test]
fn a_caller_that_goes_leaves_nothing() {
    let server = ServerOptions::new().start();
    let [one, two] = [(); 2].map(|()| Watched::open(&server.url()));
    let held = one.client.lock("b").ttl(ms(9_000)).acquire_blocking().unwrap();
    let mut call = both(&two.client).acquire();
    assert!(call.wait_for(ms(1)).is_none());
    two.queued(1);
    assert_eq!((entries(&server, "a"), entries(&server, "b")), (0, 1));
    drop(call);
    eventually("it leaves the queue", PATIENCE, || entries(&server, "b") == 0);
    held.release_blocking().unwrap();
    for _ in 0..20 {
        let mut call = both(&two.client).acquire();
        _ = call.wait_for(Duration::ZERO);
        drop(call);
        eventually("nothing is left", PATIENCE, || left(&server).is_empty());
    }
    let hold = both(&two.client).acquire_blocking().unwrap();
    drop(hold);
    eventually("a hold that is dropped is released", PATIENCE, || left(&server).is_empty());
    let hold = both(&two.client).acquire_blocking().unwrap();
    two.client.close_blocking().unwrap();
    assert_eq!((hold.is_valid(), left(&server)), (false, vec![]));
}

#[test]
fn a_first_acquire_that_races_the_close_leaves_nothing_taken() {
    for round in 0..200 {
        let url = format!("memory://multi-and-close-{round}");
        let [client, other] = [(); 2].map(|()| Client::open(&*url).unwrap());
        let first = wait_for_any(both(&client));
        client.close_blocking().unwrap();
        if let Err(error) = first.join().unwrap() {
            assert_eq!(error.code(), Code::Closed, "{error}");
        }
        let free = || both(&other).try_acquire_blocking().unwrap().is_some();
        eventually("both are free", PATIENCE, free);
    }
}

#[test]
fn what_they_cannot_have_is_refused() {
    let client = Client::open("memory://multi-refused").unwrap();
    let argument = |lock: MultiLock| lock.try_acquire_blocking().map(drop).unwrap_err().argument().map(str::to_owned);
    let many: Vec<String> = (0..17).map(|number| number.to_string()).collect();
    for (names, what) in [(&["a", "a"][..], "names"), (&[], "names"), (&["a", ""], "name")] {
        assert_eq!(argument(client.multi_lock(names.iter().copied())).as_deref(), Some(what), "{names:?}");
    }
    assert_eq!(argument(client.multi_lock(many)).as_deref(), Some("names"));
    let quorum = Client::open(["memory://multi-refused-1", "memory://multi-refused-2", "memory://multi-refused-3"]).unwrap();
    assert!(argument(both(&quorum)).is_some());
    let task = |name: &str| client.lock(name).caller(7);
    let held = task("b").acquire_blocking().unwrap();
    held.enter(7, None, 0);
    let error = both(&client).caller(7).acquire_blocking().unwrap_err();
    assert_eq!((error.code(), error.lock_name()), (Code::Deadlock, Some("b")));
    drop(held);
    let inside = both(&client).with_blocking(|_| task("a").wait(ms(20)).acquire_blocking().map(drop));
    assert!(inside.is_err());
}
