//! Callers: the sides of the library.

use std::time::Duration;

use locktender::{Begun, Client};
use tokio::runtime::Runtime;

use crate::meter::{Span, Tally, cpu, report};

/// `callers` tasks of one ordinary current-thread runtime, each with its own lock.
pub fn tasks(urls: &str, span: Duration, callers: usize) {
    each(&[urls], span, callers, |client, caller, mut tally| {
        let lock = client.lock(name(caller));
        async move {
            loop {
                let held = lock.acquire().await.unwrap();
                held.release().await.unwrap();
                if !tally.count(1) {
                    return tally;
                }
            }
        }
    });
}

/// Tasks of a runtime with two threads, each of which takes a lock with a new name for every pair.
pub fn new_names(urls: &str, span: Duration, callers: usize) {
    let two_threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    each_on(&two_threads, &[urls], span, callers, |client, caller, mut tally| {
        let client = client.clone();
        async move {
            for number in 0_u64.. {
                let held = client.lock(format!("{}:{number}", name(caller))).acquire().await.unwrap();
                held.release().await.unwrap();
                if !tally.count(1) {
                    break;
                }
            }
            tally
        }
    });
}

/// The same tasks, which share one semaphore.
pub fn permits(urls: &str, span: Duration, callers: usize, permits: u32) {
    each(&[urls], span, callers, |client, _, mut tally| {
        let lock = client.semaphore(name(0), permits);
        async move {
            loop {
                let held = lock.acquire().await.unwrap();
                held.release().await.unwrap();
                if !tally.count(1) {
                    return tally;
                }
            }
        }
    });
}

/// How many locks a caller of [`spread`] takes in turn. Each is taken again within a second: after a longer rest a pair costs more.
const LOCKS: usize = 32;

/// For each of the first `used` of all shards as many tasks as `callers`, each of which takes many locks of its shard in turn. Together
/// they lie in all slots of these shards. So a shard has the same load in a cluster of any size. Several URLs mean servers that stand
/// apart in place of shards.
pub fn spread(urls: &str, span: Duration, callers: usize, used: usize, shards: usize) {
    let each_url = if urls.contains("+cluster") { vec![urls] } else { urls.split(',').collect() };
    each(&each_url, span, callers * used, |client, caller, mut tally| {
        let names = (0..).map(|number| format!("{}:{number:03}", name(caller)));
        let locks: Vec<_> = names.filter(|name| shard(name, shards) == caller % used).take(LOCKS).collect();
        let locks: Vec<_> = locks.into_iter().map(|name| client.lock(name)).collect();
        async move {
            for lock in locks.iter().cycle() {
                let held = lock.acquire().await.unwrap();
                held.release().await.unwrap();
                if !tally.count(1) {
                    break;
                }
            }
            tally
        }
    });
}

/// The shard of a key without a tag, where the slots are split evenly and in order.
fn shard(key: &str, shards: usize) -> usize {
    let crc = key.bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| crc << 1 ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 })
    });
    let slot = usize::from(crc) % 16_384;
    (0..shards).rfind(|shard| slot >= shard * 16_384 / shards).unwrap_or_default()
}

/// The same tasks, each with one job after the other: a job that is done never begins again.
pub fn jobs(urls: &str, span: Duration, callers: usize) {
    each(&[urls], span, callers, |client, caller, mut tally| {
        let (client, process, mut number) = (client.clone(), std::process::id(), 0_u64);
        async move {
            loop {
                let job = client.job(format!("{}:{process}:{number}", name(caller))).retention(Duration::from_secs(1));
                let Begun::Attempt(attempt) = job.begin().await.unwrap() else { panic!("it is new") };
                attempt.complete("1").await.unwrap();
                number += 1;
                if !tally.count(1) {
                    return tally;
                }
            }
        }
    });
}

/// Has each caller work on one thread until the span is over: `work` gets the client, the caller and its tally. If there are clients of several
/// servers, callers take turns in using them.
fn each<F>(urls: &[&str], span: Duration, callers: usize, work: impl Fn(&Client, usize, Tally) -> F)
where
    F: Future<Output = Tally> + Send + 'static,
{
    let one_thread = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    each_on(&one_thread, urls, span, callers, work);
}

fn each_on<F>(runtime: &Runtime, urls: &[&str], span: Duration, callers: usize, work: impl Fn(&Client, usize, Tally) -> F)
where
    F: Future<Output = Tally> + Send + 'static,
{
    runtime.block_on(async {
        let clients: Vec<Client> = urls.iter().map(|url| Client::open(*url).unwrap()).collect();
        for client in &clients {
            client.lock("bench:first").acquire().await.unwrap().release().await.unwrap();
        }
        let client = |caller: usize| &clients[caller % clients.len()];
        let span = Span::starting_now(span);
        let tasks: Vec<_> = (0..callers).map(|caller| tokio::spawn(work(client(caller), caller, Tally::new(span)))).collect();
        tokio::time::sleep_until(span.begin.into()).await;
        let before = cpu();
        let mut tallies = Vec::new();
        for task in tasks {
            tallies.push(task.await.unwrap());
        }
        report(tallies, span, cpu() - before);
    });
}

/// Names of one length: the raw sides take a recorded request and put another number in.
pub fn name(caller: usize) -> String {
    format!("bench:{caller:03}")
}

pub fn blocking(urls: &str, span: Duration) {
    let client = Client::open(urls).unwrap();
    let lock = client.lock(name(0));
    lock.acquire_blocking().unwrap().release().blocking().unwrap();
    let span = Span::starting_now(span);
    let mut tally = Tally::new(span);
    let mut before = None;
    loop {
        lock.acquire_blocking().unwrap().release().blocking().unwrap();
        if !tally.count(1) {
            break;
        }
        if before.is_none() && span.begin.elapsed() > Duration::ZERO {
            before = Some(cpu());
        }
    }
    report(vec![tally], span, cpu() - before.unwrap());
}

/// Marks the servers of a quorum as trusted: done once, while all of them answer.
pub fn trust(urls: &str) {
    Client::open(urls).unwrap().initialize_quorum().blocking().unwrap();
}
