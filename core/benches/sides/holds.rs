//! Many holds with a ttl of 3 s: the cost of their renewal, and the number of lost holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use locktender::Client;

use crate::meter::{cpu, info};

pub fn renewed(urls: &str, span: Duration, count: usize) {
    let client = Client::open(urls).unwrap();
    let lost = Arc::new(AtomicU64::new(0));
    let going = Arc::new(AtomicBool::new(true));
    let held: Vec<_> = (0..count)
        .map(|number| {
            let lock = client.lock(format!("bench:hold:{number}")).ttl(Duration::from_secs(3));
            let held = lock.acquire_blocking().unwrap();
            let lost = Arc::clone(&lost);
            let going = Arc::clone(&going);
            held.on_lost(move |_| {
                lost.fetch_add(u64::from(going.load(Ordering::SeqCst)), Ordering::SeqCst);
            });
            held
        })
        .collect();
    // How often the server has read from a connection, which is how often this process has written to one.
    let written = || info(urls, "stats", "total_reads_processed");
    let (before, writes, start) = (cpu(), written(), Instant::now());
    std::thread::sleep(span);
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "holds={count} seconds={seconds:.1} cpu_percent={:.2} writes_per_second={:.1} lost={}",
        (cpu() - before) / seconds * 100.0,
        (written() - writes) / seconds,
        lost.load(Ordering::SeqCst),
    );
    going.store(false, Ordering::SeqCst);
    drop(held);
    client.close_blocking().unwrap();
}
