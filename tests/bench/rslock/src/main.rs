//! rslock's side: `locktender-bench-rslock <urls> <seconds> <callers> [new]` prints the same fields as core/benches/sides. With `new` it
//! has two threads, and a new name for each pair.

#[path = "../../../../core/benches/sides/meter.rs"]
mod meter;

use std::time::Duration;

use meter::{Span, Tally, cpu, report};
use rslock::LockManager;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Builder;

const TTL: Duration = Duration::from_secs(10);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (urls, seconds, callers, is_new) = match arguments.as_slice() {
        [urls, seconds, callers] => (urls, seconds, callers, false),
        [urls, seconds, callers, new] if new == "new" => (urls, seconds, callers, true),
        _ => return println!("usage: <urls> <seconds> <callers> [new]"),
    };
    let mut runtime = if is_new { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(work(urls, seconds, callers, is_new));
}

async fn work(urls: &str, seconds: &str, callers: &str, is_new: bool) {
    let manager = LockManager::new(urls.split(',').collect());
    if seconds == "holder" {
        return holder(&manager).await;
    }
    manager.lock("bench:first", TTL).await.unwrap().release().await;
    let span = Span::starting_now(Duration::from_secs_f64(seconds.parse().unwrap()));
    let tasks: Vec<_> = (0..callers.parse().unwrap())
        .map(|caller: usize| {
            let (manager, name) = (manager.clone(), format!("bench:{caller:03}"));
            tokio::spawn(async move {
                let mut tally = Tally::new(span);
                for number in 0_u64.. {
                    let name = if is_new { format!("{name}:{number}") } else { name.clone() };
                    manager.lock(name.as_str(), TTL).await.unwrap().release().await;
                    if !tally.count(1) {
                        break;
                    }
                }
                tally
            })
        })
        .collect();
    tokio::time::sleep_until(span.begin.into()).await;
    let before = cpu();
    let mut tallies = Vec::new();
    for task in tasks {
        tallies.push(task.await.unwrap());
    }
    report(tallies, span, cpu() - before);
}

/// As `holder` in core/benches/sides/waiting.rs.
async fn holder(manager: &LockManager) {
    let now = || {
        let time = clock_gettime(ClockId::Monotonic);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let mut held = None;
    for line in std::io::stdin().lines() {
        if line.unwrap() == "acquire" {
            held = Some(manager.acquire("bench:line", 6 * TTL).await.unwrap());
            println!("{}", now());
        } else if let Some(held) = held.take() {
            let began = now();
            held.release().await;
            println!("{began}");
        }
    }
}
