//! Several holders at once: readers, and permits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use locktender::{Client, Code, EventKind, Lock};
use locktender_tests::{PATIENCE, RealServer, ServerOptions, eventually};

use crate::{Watched, acquire, ms};

/// The servers of both kinds, with the real one, which lives as long.
fn servers(name: &str) -> (RealServer, [String; 2]) {
    let server = ServerOptions::new().start();
    let urls = [server.url(), format!("memory://{name}")];
    (server, urls)
}

fn readers(client: &Client) -> Lock {
    client.read_lock("a").ttl(ms(9_000))
}

fn permits(client: &Client, limit: u32) -> Lock {
    client.semaphore("a", limit).ttl(ms(9_000))
}

#[test]
fn a_permit_that_is_given_back_goes_to_the_first_who_waits_and_nothing_is_left() {
    let (server, urls) = servers("several-permits");
    for url in urls {
        let [one, two] = [(); 2].map(|()| Watched::open(&url));
        let held = [&one, &two].map(|watched| permits(&watched.client, 2).acquire_blocking().unwrap());
        assert!(held[0].fence() < held[1].fence());
        assert!(permits(&two.client, 2).try_acquire_blocking().unwrap().is_none());
        let beside = permits(&two.client, 3).try_acquire_blocking().unwrap().expect("each names its own limit");
        beside.release_blocking().unwrap();
        let warned = two.last(EventKind::Warning).and_then(|event| event.message).unwrap_or_default();
        assert!(warned.contains("has 3 permits here") && warned.contains("ask for 2"), "{warned}");
        let mut held = held;
        for round in 1..=10 {
            let waiting = acquire(permits(&two.client, 2));
            two.queued(round);
            held[0].release_blocking().unwrap();
            held[0] = waiting.join().unwrap();
        }
        // The first one may have been notified before it listened.
        assert!(two.events.notified() >= 9, "{} of 10 were notified", two.events.notified());
        let [third, second] = held;
        second.renew_now().blocking().unwrap();
        assert!(third.is_valid() && second.is_valid());
        let error = one.client.lock("a").wait(ms(1)).acquire_blocking().unwrap_err();
        assert_eq!(error.code(), Code::AcquireTimeout);
        third.release_blocking().unwrap();
        second.release_blocking().unwrap();
        one.client.lock("a").acquire_blocking().unwrap().release_blocking().unwrap();
        assert_eq!((one.count(EventKind::Lost), two.count(EventKind::Lost)), (0, 0));
        drop((one, two));
    }
    let left: Vec<_> =
        ["a", "{a}:~lt:shared", "{a}:~lt:queue"].into_iter().filter(|key| server.command(&["EXISTS", key]).int() > 0).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn readers_enter_together_behind_a_writer_and_a_writer_behind_all_of_them() {
    let (_server, urls) = servers("several-readers");
    for url in urls {
        let [writer, one, two] = [(); 3].map(|()| Watched::open(&url));
        let writes = writer.client.lock("a").ttl(ms(9_000)).acquire_blocking().unwrap();
        let mut waiting: Vec<_> = (0..6).map(|_| acquire(readers(&one.client))).collect();
        one.queued(1);
        waiting.extend((0..6).map(|_| acquire(readers(&two.client))));
        two.queued(1);
        writes.release_blocking().unwrap();
        let held: Vec<_> = waiting.into_iter().map(|waiting| waiting.join().unwrap()).collect();
        let fences: Vec<u64> = held.iter().map(locktender::Hold::fence).collect();
        assert!(fences.iter().all(|fence| *fence == fences[0] && *fence > writes.fence()), "{fences:?}");
        let next = acquire(writer.client.lock("a"));
        writer.queued(1);
        assert!(readers(&one.client).try_acquire_blocking().unwrap().is_none(), "not past a writer that waits");
        held.iter().for_each(|held| _ = held.release_blocking().unwrap());
        let next = next.join().unwrap();
        assert!(next.fence() > fences[0]);
        next.release_blocking().unwrap();
    }
}

#[test]
fn readers_of_one_process_that_wait_behind_a_writer_enter_before_the_next_writer() {
    let (_server, urls) = servers("several-together");
    for url in urls {
        let [writer, one, next] = [(); 3].map(|()| Watched::open(&url));
        let writes = writer.client.lock("a").ttl(ms(9_000)).acquire_blocking().unwrap();
        let waiting: Vec<_> = (0..8).map(|_| acquire(readers(&one.client))).collect();
        one.queued(1);
        eventually("all of them wait", PATIENCE, || one.client.metrics().value("locktender_waiting", &[]) >= 8.0);
        let second = acquire(next.client.lock("a").ttl(ms(9_000)));
        next.queued(1);
        // Who has waited for a second is passed by nobody.
        thread::sleep(ms(1_100));
        writes.release_blocking().unwrap();
        let held: Vec<_> = waiting.into_iter().map(|waiting| waiting.join().unwrap()).collect();
        assert!(held.iter().all(|one| one.is_valid() && one.fence() == held[0].fence()));
        let late = readers(&one.client).wait(ms(50)).acquire_blocking();
        assert_eq!(late.unwrap_err().code(), Code::AcquireTimeout, "not past a writer that waits");
        held.iter().for_each(|held| _ = held.release_blocking().unwrap());
        assert!(second.join().unwrap().fence() > held[0].fence());
        let noted = || one.client.history_blocking(Some("a"), 20).unwrap().iter().filter(|grant| grant.is_shared).count();
        eventually("their period is in the history", PATIENCE, || noted() > 0);
        assert_eq!(noted(), 1, "of those who entered beside another one none is");
    }
}

#[test]
fn a_task_that_reads_once_more_lets_no_other_reader_of_its_process_past_a_writer() {
    let (_server, urls) = servers("several-past");
    for url in urls {
        let [one, two] = [(); 2].map(|()| Watched::open(&url));
        let outer = readers(&one.client).caller(7).acquire_blocking().unwrap();
        outer.enter(7, None, 0);
        // The lock is kept for a fair one, so the reader that waits can't pass it with a look of its own either.
        let writer = acquire(two.client.lock("a").ttl(ms(9_000)).fair(true));
        two.queued(1);
        let waiting = acquire(readers(&one.client));
        one.queued(1);
        for _ in 0..3 {
            let inner = readers(&one.client).caller(7).wait(ms(50)).acquire_blocking().unwrap();
            inner.release_blocking().unwrap();
        }
        assert!(!waiting.is_finished());
        outer.release_blocking().unwrap();
        let writer = writer.join().unwrap();
        assert!(writer.fence() > outer.fence() && !waiting.is_finished());
        writer.release_blocking().unwrap();
        assert!(waiting.join().unwrap().fence() > writer.fence());
    }
}

#[test]
fn nobody_holds_beside_a_writer_and_no_more_than_the_limit_hold_permits() {
    let (_server, urls) = servers("several-many");
    for (url, permits, limit) in urls.iter().flat_map(|url| [(url, Some(3), 3), (url, None, 12)]) {
        let (inside, writing) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |is_writer: bool| {
            let client = Client::open(&**url).unwrap();
            for _ in 0..8 {
                let lock = match permits {
                    _ if is_writer => client.lock("a"),
                    Some(permits) => client.semaphore("a", permits),
                    None => client.read_lock("a"),
                };
                let held = lock.wait(Duration::from_secs(120)).acquire_blocking().unwrap();
                let mine = if is_writer { &writing } else { &inside };
                mine.fetch_add(1, Ordering::SeqCst);
                thread::sleep(ms(2));
                let (others, writers) = (inside.load(Ordering::SeqCst), writing.load(Ordering::SeqCst));
                assert!(others <= limit && writers <= 1 && (others == 0 || writers == 0), "{others} of {limit} beside {writers}");
                mine.fetch_sub(1, Ordering::SeqCst);
                held.release_blocking().unwrap();
            }
        };
        thread::scope(|scope| {
            (0..12).for_each(|number| {
                _ = scope.spawn({
                    let work = &work;
                    move || work(number < 2)
                })
            })
        });
    }
}

#[test]
fn a_permit_of_a_program_that_died_costs_its_own_ttl() {
    let (_server, urls) = servers("several-dead");
    for url in urls {
        let [one, two] = [(); 2].map(|()| Watched::open(&url));
        let dead = permits(&one.client, 1).ttl(ms(900)).renew(false).acquire_blocking().unwrap();
        let waiting = acquire(permits(&two.client, 1));
        let held = waiting.join().unwrap();
        assert!(held.fence() > dead.fence() && !dead.is_valid());
        assert_eq!(dead.release_blocking().unwrap().outcome.as_str(), "expired");
        assert_eq!(held.release_blocking().unwrap().outcome.as_str(), "released");
    }
}

#[test]
fn a_downgrade_that_fails_or_that_nobody_waits_for_leaves_nothing() {
    let server = ServerOptions::new().start();
    let client = Client::open(server.url()).unwrap();
    let is_free = || server.command(&["EXISTS", "a"]).int() == 0;
    let hour = Duration::from_secs(3_600);
    let writer = client.lock("a").ttl(hour).acquire_blocking().unwrap();
    server.command(&["RPUSH", "{a}:~lt:shared", "x"]);
    assert_eq!(writer.downgrade().blocking().unwrap_err().code(), Code::KeyConflict);
    eventually("the writer's hold ends", PATIENCE, is_free);
    server.command(&["DEL", "{a}:~lt:shared"]);
    for _ in 0..20 {
        let writer = client.lock("a").ttl(hour).acquire_blocking().unwrap();
        let mut call = writer.downgrade();
        if let Some(reader) = call.wait_for(Duration::ZERO) {
            reader.unwrap().release_blocking().unwrap();
        }
        drop(call);
        eventually("neither a writer nor a reader is left", PATIENCE, is_free);
    }
    assert_eq!(server.command(&["EXISTS", "{a}:~lt:shared"]).int(), 0);
}

#[test]
fn who_waits_for_a_permit_sees_a_holder_and_not_another_waiter() {
    let server = ServerOptions::new().start();
    let [one, two] = [(); 2].map(|()| Watched::open(&server.url()));
    let held = permits(&one.client, 2).acquire_blocking().unwrap();
    let soon = UNIX_EPOCH.elapsed().unwrap().as_millis() + 5_000;
    server.command(&["ZADD", "{a}:~lt:shared", &soon.to_string(), "claim q:other:1 permits=2 x"]);
    let error = permits(&two.client, 2).wait(ms(20)).acquire_blocking().unwrap_err();
    assert_eq!(error.holder().map(|holder| &*holder.owner), Some(held.owner()));
}

#[test]
fn an_operator_ends_a_gate_that_nobody_is_known_of_and_nobody_by_an_empty_owner() {
    let (_server, urls) = servers("several-unnamed");
    for url in urls {
        let client = Client::open(&*url).unwrap();
        let held = permits(&client, 2).acquire_blocking().unwrap();
        assert!(client.lock("a").force_release_blocking(Some("")).unwrap().is_none());
        held.renew_now_blocking().unwrap();
    }
    let server = ServerOptions::new().start();
    let client = Client::open(server.url()).unwrap();
    server.command(&["SET", "a", "read 42"]);
    assert!(client.lock("a").force_release_blocking(Some("read 43")).unwrap().is_none());
    assert!(client.lock("a").force_release_blocking(Some("read 42")).unwrap().is_some());
    assert_eq!(server.command(&["EXISTS", "a"]).int(), 0);
}

#[test]
fn an_operator_sees_those_inside_and_ends_one_of_them_or_all() {
    let (_server, urls) = servers("several-force");
    for url in urls {
        let [one, two] = [(); 2].map(|()| Watched::open(&url));
        let held: Vec<_> = [&one, &two, &two].map(|watched| permits(&watched.client, 4).acquire_blocking().unwrap()).into();
        let lock = one.client.lock("a");
        let seen = lock.inspect_blocking().unwrap().unwrap();
        let owners: Vec<&str> = held.iter().map(locktender::Hold::owner).collect();
        assert_eq!((seen.holder_count, seen.available, seen.fence), (3, Some(1), None));
        assert!(owners.iter().all(|owner| seen.holders.iter().any(|other| other == owner)), "{seen:?}");
        assert!(owners.contains(&&*seen.owner));
        let waiting = acquire(one.client.lock("a"));
        one.queued(1);
        assert!(lock.force_release_blocking(Some("host=x")).unwrap().is_none());
        assert_eq!(lock.force_release_blocking(Some(owners[1])).unwrap().unwrap().owner, owners[1]);
        assert_eq!(held[1].release_blocking().unwrap().outcome.as_str(), "expired");
        assert!(held[0].renew_now_blocking().is_ok() && held[2].renew_now_blocking().is_ok());
        assert!(lock.force_release_blocking(None).unwrap().is_some());
        waiting.join().unwrap().release_blocking().unwrap();
        assert!(held[0].renew_now_blocking().is_err());
        assert_eq!(two.count(EventKind::Lost), 0);
    }
}

#[test]
fn a_task_may_hold_several_permits_and_waits_for_itself_only_with_all_of_them() {
    let (_server, urls) = servers("several-deadlock");
    for url in urls {
        let client = Client::open(&*url).unwrap();
        let task = |lock: Lock| lock.caller(7).wait(ms(20));
        let code = |lock: Lock| task(lock).acquire_blocking().map(drop).map_err(|error| error.code());
        let inside = |lock: Lock| {
            let held = task(lock).acquire_blocking().unwrap();
            held.enter(7, None, 0);
            held
        };
        let first = inside(permits(&client, 2));
        assert_eq!(code(client.lock("a")), Err(Code::Deadlock), "it would wait for its own permit");
        assert_eq!(code(client.read_lock("a")), Err(Code::Deadlock));
        let second = inside(permits(&client, 2));
        assert_eq!(code(permits(&client, 2)), Err(Code::Deadlock));
        assert_eq!(code(permits(&client, 3)), Ok(()), "more may hold it");
        second.release_blocking().unwrap();
        assert_eq!(code(permits(&client, 2)), Ok(()));
        first.release_blocking().unwrap();
        let writer = inside(client.lock("a"));
        assert_eq!(code(permits(&client, 2)), Err(Code::Deadlock));
        writer.release_blocking().unwrap();
        let reader = inside(client.read_lock("a"));
        assert_eq!(code(client.read_lock("a")), Ok(()));
        assert_eq!(code(client.lock("a")), Err(Code::Deadlock));
        reader.release_blocking().unwrap();
    }
}

#[test]
fn a_reader_reads_once_more_past_a_writer_that_waits() {
    let (_server, urls) = servers("several-nested");
    for url in urls {
        let [one, two] = [(); 2].map(|()| Watched::open(&url));
        let task = |number| readers(&one.client).caller(number).wait(ms(20));
        let outer = task(7).acquire_blocking().unwrap();
        outer.enter(7, None, 0);
        let writer = acquire(two.client.lock("a"));
        two.queued(1);
        assert!(task(8).acquire_blocking().is_err(), "another task's");
        let inner = task(7).acquire_blocking().unwrap();
        assert_eq!((inner.fence(), inner.is_valid()), (outer.fence(), true));
        outer.release_blocking().unwrap();
        assert!(task(7).acquire_blocking().is_err(), "the outer hold is over");
        inner.release_blocking().unwrap();
        writer.join().unwrap().release_blocking().unwrap();
    }
}

#[test]
fn a_writer_becomes_a_reader_and_a_reader_is_adopted_past_every_waiter() {
    let (server, urls) = servers("several-downgrade");
    for url in urls {
        let [one, two] = [(); 2].map(|()| Watched::open(&url));
        let writer = one.client.lock("a").ttl(ms(9_000)).min_hold(ms(8_000)).acquire_blocking().unwrap();
        let waiting = acquire(readers(&two.client));
        two.queued(1);
        let reader = writer.downgrade().blocking().unwrap();
        let beside = waiting.join().unwrap();
        assert_eq!((beside.fence(), reader.fence() > writer.fence()), (reader.fence(), true));
        assert_eq!(writer.release_blocking().unwrap_err().code(), Code::NotHeld);
        assert_eq!(writer.downgrade().blocking().unwrap_err().code(), Code::NotHeld);
        assert_eq!(reader.downgrade().blocking().unwrap_err().argument(), Some("downgrade"));
        let next = acquire(one.client.lock("a"));
        one.queued(1);
        let ticket = reader.hand_over().unwrap();
        assert!(ticket.contains(" kind=read"), "{ticket}");
        let adopted = two.client.adopt_blocking(&ticket).unwrap();
        assert_eq!(adopted.fence(), beside.fence());
        assert_eq!(two.client.adopt_blocking(&ticket).unwrap_err().code(), Code::LockLost);
        let other = ticket.replace(" kind=read", " kind=other");
        assert_eq!(two.client.adopt_blocking(&other).unwrap_err().argument(), Some("ticket"));
        for held in [adopted, beside] {
            held.release_blocking().unwrap();
        }
        next.join().unwrap().release_blocking().unwrap();
        let lost = one.client.lock("a").acquire_blocking().unwrap();
        one.client.lock("a").force_release_blocking(None).unwrap();
        assert_eq!(lost.downgrade().blocking().unwrap_err().code(), Code::LockLost);
        let permit = one.client.semaphore("a", 1).acquire_blocking().unwrap();
        assert_eq!(permit.hand_over().unwrap_err().argument(), Some("hand_over"));
    }
    assert_eq!(server.command(&["EXISTS", "{a}:~lt:shared"]).int(), 0);
}
