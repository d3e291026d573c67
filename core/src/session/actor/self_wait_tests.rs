//! Self-waits in real time: the acquires that get a warning because they wait long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sync::Mutex;
use crate::{Client, EventKind, Lock, LockEvent, Wait};

type Seen = Arc<Mutex<Vec<LockEvent>>>;

fn client(seen: &Seen) -> Client {
    let seen = Arc::clone(seen);
    let sink = move |event: &LockEvent| {
        if event.kind == EventKind::Warning {
            seen.lock().push(event.clone());
        }
    };
    Client::builder().url("memory://self-waits").sink(Arc::new(sink)).build().unwrap()
}

#[test]
fn an_acquire_without_end_reports_that_its_own_client_holds_the_lock() {
    let seen = Seen::default();
    let (own, other) = (client(&seen), client(&seen));
    let lock = |client: &Client, name: &str| client.lock(name).ttl(Duration::from_secs(60));
    let hold = |lock: &Lock| lock.acquire_blocking().unwrap();
    let granted = Arc::new(Mutex::new(Vec::new()));
    let waits = |lock: Lock| {
        let granted = Arc::clone(&granted);
        lock.acquire().then(move |held| granted.lock().extend(held.ok()))
    };

    let held = ["own", "theirs", "named", "ends", "one of two", "passed on"].map(|name| hold(&lock(&own, name)));
    let _tasks_own = ["task", "ends too", "another task"].map(|name| hold(&lock(&own, name).caller(1)));
    let calls = [
        waits(lock(&own, "own")),
        waits(lock(&own, "own")),
        waits(lock(&other, "theirs")),
        waits(lock(&own, "named").caller(1)),
        waits(lock(&own, "ends").wait(Wait::For(Duration::from_secs(60)))),
        waits(lock(&own, "task").caller(1)),
        waits(lock(&own, "ends too").caller(1).wait(Wait::For(Duration::from_secs(60)))),
        waits(lock(&own, "another task").caller(2)),
        waits(own.multi_lock(["free", "one of two"]).into_lock()),
        waits(lock(&own, "passed on")),
        waits(lock(&own, "passed on")),
    ];
    let [own_hold, .., passed_on] = &held;
    passed_on.release().blocking().unwrap();
    let began = Instant::now();
    while seen.lock().is_empty() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // All their warnings are due at the same time.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(granted.lock().len(), 1, "one of two, and its hold is younger than the acquire of the other");
    let seen = seen.lock().clone();
    let mut names: Vec<_> = seen.iter().filter_map(|event| event.lock_name.as_deref()).collect();
    names.sort_unstable();
    assert_eq!(names, ["ends too", "free, one of two", "own", "task"], "{seen:?}");
    let of = |name| seen.iter().find(|event| event.lock_name.as_deref() == Some(name)).unwrap();
    let text = of("task").message.as_deref().unwrap();
    assert!(text.contains("by the thread or task that now waits for it") && text.contains("may be"), "{text}");
    let text = of("free, one of two").message.as_deref().unwrap();
    assert!(text.starts_with("lock \"one of two\" has been held for "), "the one that is held: {text}");
    let warning = of("own");
    assert!(warning.is_self_wait());
    assert_eq!(warning.holder.as_deref(), Some(own_hold.owner()));
    let text = warning.message.as_deref().unwrap();
    assert!(text.starts_with("lock \"own\" has been held for ") && text.contains("pass the hold down"), "{text}");
    drop(calls);
}
