//! Callers: the sides of the library.

use std::time::Duration;

use locktender::{Begun, Client};

use crate::meter::{Span, Tally, cpu, report};

/// `callers` tasks of one ordinary current-thread runtime, each with its own lock.
pub fn tasks(urls: &str, span: Duration, callers: usize) {
    each(urls, span, callers, |client, caller, mut tally| {
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

/// The same tasks, each with one job after the other: a job that is done never begins again.
pub fn jobs(urls: &str, span: Duration, callers: usize) {
    each(urls, span, callers, |client, caller, mut tally| {
        let (client, process, mut number) = (client.clone(), std::process::id(), 0_u64);
        async move {
            loop {
                let job = client.job(format!("{}:{process}:{number}", name(caller))).keep(Duration::from_secs(1));
                let Begun::Attempt(attempt) = job.begin().await.unwrap() else { panic!("it is new") };
                attempt.done("1").await.unwrap();
                number += 1;
                if !tally.count(1) {
                    return tally;
                }
            }
        }
    });
}

/// Has each caller work until the span is over: `work` gets the client, the caller and its tally.
fn each<F>(urls: &str, span: Duration, callers: usize, work: impl Fn(&Client, usize, Tally) -> F)
where
    F: Future<Output = Tally> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::open(urls).unwrap();
        client.lock("bench:first").acquire().await.unwrap().release().await.unwrap();
        let span = Span::starting_now(span);
        let tasks: Vec<_> = (0..callers).map(|caller| tokio::spawn(work(&client, caller, Tally::new(span)))).collect();
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
