//! Left: what a server keeps of names that were used once, and what it writes to its file.

use std::time::Duration;

use locktender::Client;

use crate::meter::info;

/// How many tasks use names at a time.
const CALLERS: usize = 64;

/// How often each thing is done whose bytes are counted.
const TIMES: usize = 1_000;

/// Acquires and releases so many locks, each once.
pub fn names(urls: &str, count: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::open(urls).unwrap();
        let work = |caller: usize| {
            let client = client.clone();
            async move {
                for number in (caller..count).step_by(CALLERS) {
                    client.lock(format!("orders:{number}")).acquire().await.unwrap().release().await.unwrap();
                }
            }
        };
        let tasks: Vec<_> = (0..CALLERS).map(|caller| tokio::spawn(work(caller))).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    println!("all_pairs={count}");
}

/// Counts what the server appends to its file for a pair, and for an attempt to take a lock that somebody holds.
pub fn appended(url: &str) {
    // So long that nothing is renewed.
    let lock = || Client::builder().url(url).app("billing").build().unwrap().lock("orders:12345").ttl(Duration::from_secs(600));
    let (lock, other) = (lock(), lock());
    let pair = || _ = lock.acquire_blocking().unwrap().release().blocking().unwrap();
    let refused = || assert!(other.try_acquire_blocking().unwrap().is_none(), "it is held");
    let size = || info(url, "persistence", "aof_current_size");
    let bytes = |times: usize, work: &dyn Fn()| {
        let before = size();
        (0..times).for_each(|_| work());
        (size() - before) / times as f64
    };
    pair();
    let pair = bytes(TIMES, &pair);
    let held = lock.acquire_blocking().unwrap();
    let first = bytes(1, &refused);
    let later = bytes(TIMES, &refused);
    println!("owner={} pair={pair} first_refusal={first} refusal={later}", held.owner().len());
    held.release().blocking().unwrap();
}
