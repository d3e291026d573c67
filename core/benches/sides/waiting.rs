//! Waiting: the processes that `tests/bench/waiting.py` drives. One holds a lock on command, and one has many waiters. Times are
//! nanoseconds of the monotonic clock, which all processes of a machine share.

use std::io::stdin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktender::{Client, EventKind, Hold, Lock, LockEvent};
use rustix::time::{ClockId, clock_gettime};

/// What everybody waits for.
const NAME: &str = "bench:line";

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    (time.tv_sec * 1_000_000_000 + time.tv_nsec).unsigned_abs()
}

/// Takes the lock at every line `acquire` of its standard input, gives it back at every other, and prints when that was: when it
/// had the lock, and when it was about to give it back.
pub fn holder(url: &str) {
    let client = Client::open(url).unwrap();
    let lock = client.lock(NAME);
    let mut held: Option<Hold> = None;
    for line in stdin().lines() {
        if line.unwrap() == "acquire" {
            held = Some(lock.acquire_blocking().unwrap());
            println!("{}", now());
        } else {
            let began = now();
            held.take().unwrap().release().blocking().unwrap();
            println!("{began}");
        }
    }
}

/// Has so many waiters wait, one after the other, while somebody else holds the lock; each holds it for a moment. Prints a line
/// when all of them wait, and at the end one for each: when it came, had the lock, and gave it back.
pub fn waiters(url: &str, count: usize, hold: Duration, fair: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let queued = Arc::new(tokio::sync::Semaphore::new(0));
        let told = Arc::clone(&queued);
        let note = move |event: &LockEvent| told.add_permits(usize::from(event.kind == EventKind::Queued));
        let client = Client::builder().url(url).sink(Arc::new(note)).build().unwrap();
        let lock = client.lock(NAME).ttl(Duration::from_secs(60)).fair(fair);
        let times = Arc::new(Mutex::new(Vec::with_capacity(count)));
        let mut tasks = Vec::with_capacity(count);
        for number in 0..count {
            tasks.push(tokio::spawn(visit(lock.clone(), hold, Arc::clone(&times))));
            tokio::task::yield_now().await;
            // The waiters of a process that are not fair share the place of the first.
            if fair || number == 0 {
                queued.acquire().await.unwrap().forget();
            }
        }
        println!("{}", now());
        for task in tasks {
            task.await.unwrap();
        }
        for (came, granted, released) in &*times.lock().unwrap() {
            println!("{came} {granted} {released}");
        }
    });
}

async fn visit(lock: Lock, hold: Duration, times: Arc<Mutex<Vec<(u64, u64, u64)>>>) {
    let came = now();
    let held = lock.acquire().await.unwrap();
    let granted = now();
    if !hold.is_zero() {
        // More exact than a timer of the runtime, and whoever else is here only waits.
        std::thread::sleep(hold);
    }
    let released = now();
    held.release().await.unwrap();
    times.lock().unwrap().push((came, granted, released));
}
