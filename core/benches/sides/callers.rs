//! Callers: the sides of the library.

use std::time::Duration;

use locktender::Client;

use crate::meter::{Span, Tally, cpu, report};

/// `callers` tasks of one ordinary current-thread runtime, each with its own lock.
pub fn tasks(urls: &str, span: Duration, callers: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::open(urls).unwrap();
        client.lock("bench:first").acquire().await.unwrap().release().await.unwrap();
        let span = Span::starting_now(span);
        let tasks: Vec<_> = (0..callers)
            .map(|caller| {
                let lock = client.lock(name(caller));
                tokio::spawn(async move {
                    let mut tally = Tally::new(span);
                    loop {
                        let held = lock.acquire().await.unwrap();
                        held.release().await.unwrap();
                        if !tally.count(1) {
                            return tally;
                        }
                    }
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
    });
}

/// Names of one length: the raw sides take a recorded request and put another number in.
pub fn name(caller: usize) -> String {
    format!("bench:{caller:03}")
}

pub fn blocking(urls: &str, span: Duration) {
    let client = Client::open(urls).unwrap();
    let lock = client.lock(name(0));
    lock.acquire_blocking().unwrap().release().wait().unwrap();
    let span = Span::starting_now(span);
    let mut tally = Tally::new(span);
    let mut before = None;
    loop {
        lock.acquire_blocking().unwrap().release().wait().unwrap();
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
    Client::open(urls).unwrap().initialize_quorum().wait().unwrap();
}
