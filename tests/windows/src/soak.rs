//! Soak: locks of several threads while a server is stopped and started again and again. Nothing may pile up.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use locktender::{Client, Code, Error};

use crate::counts::counts;
use crate::place::{Outcome, ask, ensure, impatient, named, quorum as quorum_urls, server};

const THREADS: usize = 4;
const TTL: Duration = Duration::from_millis(900);

/// The time between two stops of a server, and the time for which it is gone.
const RUNS: Duration = Duration::from_secs(6);
const GONE: Duration = Duration::from_millis(1_500);

/// The rounds until everything is there that stays: threads, connections.
const WARM: u32 = 2;

/// Fewer than one for each round.
const SLACK: u32 = 4;

/// What the threads have seen.
#[derive(Default)]
struct Seen {
    over: AtomicBool,
    /// The last fence, and whether a hold is valid now: by the lock's number.
    last: [Mutex<u64>; 2],
    holds: AtomicU64,
    failures: AtomicU64,
    wrong: Mutex<Option<String>>,
}

pub(crate) fn soak() -> Outcome {
    let seconds = named("PLAY_SECONDS")?.parse()?;
    let (url, urls) = (server()?, quorum_urls()?);
    let clients = [impatient(std::slice::from_ref(&url)).build()?, impatient(&urls).ttl(TTL).max_ttl(TTL).build()?];
    clients[1].initialize_quorum_blocking()?;
    let (began, mut rounds, mut first) = (Instant::now(), 0, None);
    while began.elapsed() < Duration::from_secs(seconds) {
        let seen = Seen::default();
        let watched = &seen;
        thread::scope(|scope| {
            for (number, client) in clients.iter().enumerate() {
                for _ in 0..THREADS {
                    scope.spawn(move || holds(client, number, watched));
                }
            }
            let result = round(&url, &urls[rounds as usize % urls.len()]);
            seen.over.store(true, Ordering::Relaxed);
            result
        })?;
        if let Some(wrong) = seen.wrong.into_inner().unwrap_or_default() {
            return Err(wrong.into());
        }
        // Both clients are connected.
        for client in &clients {
            client.lock("quiet").ttl(TTL).wait(RUNS).acquire_blocking()?.release_blocking()?;
        }
        thread::sleep(Duration::from_millis(500));
        rounds += 1;
        let now = counts();
        println!("       round {rounds}: {} holds, {} failures, {now}", seen.holds.into_inner(), seen.failures.into_inner());
        ensure(now.handles > 0 && now.threads > 0, "both are counted")?;
        if rounds == WARM {
            first = Some(now);
        }
        if let Some(first) = first {
            ensure(now.handles <= first.handles + SLACK, &format!("no handles pile up: {first}, then {now}"))?;
            ensure(now.threads <= first.threads + SLACK, &format!("no threads pile up: {first}, then {now}"))?;
        }
    }
    for client in clients {
        client.close_blocking()?;
    }
    Ok(())
}

/// A server of its own and one of a quorum are stopped, and started again.
fn round(url: &str, member: &str) -> Outcome {
    thread::sleep(RUNS / 2);
    for (what, pause) in [("stop", GONE), ("start", RUNS / 2)] {
        ask(what, url)?;
        ask(what, member)?;
        thread::sleep(pause);
    }
    Ok(())
}

/// Holds the lock again and again. No two holds are valid at the same time, and fences only rise.
fn holds(client: &Client, number: usize, seen: &Seen) {
    while !seen.over.load(Ordering::Relaxed) {
        if let Err(error) = one_hold(client, &seen.last[number], seen) {
            seen.failures.fetch_add(1, Ordering::Relaxed);
            if !matches!(error.code(), Code::Unavailable | Code::LockLost | Code::AcquireTimeout)
                && let Ok(mut wrong) = seen.wrong.lock()
            {
                wrong.get_or_insert(error.to_string());
            }
        }
    }
}

fn one_hold(client: &Client, last: &Mutex<u64>, seen: &Seen) -> Result<(), Error> {
    let hold = client.lock("soak").ttl(TTL).wait(RUNS).acquire_blocking()?;
    {
        // While it is valid nobody else may be here, and who was here before has a smaller fence.
        let here = last.try_lock();
        let is_right = match here {
            Ok(mut fence) => {
                thread::sleep(Duration::from_millis(5));
                std::mem::replace(&mut *fence, hold.fence()) < hold.fence()
            }
            Err(_) => !hold.is_valid(),
        };
        if !is_right && let Ok(mut wrong) = seen.wrong.lock() {
            wrong.get_or_insert(format!("two holds at the same time, or a fence that fell: {}", hold.fence()));
        }
    }
    hold.check()?;
    seen.holds.fetch_add(1, Ordering::Relaxed);
    hold.release_blocking()?;
    Ok(())
}
