//! A side: one side of a comparison in its own process. `sides <side> <urls> <seconds>` prints its measurements as `name=value`
//! fields.
//!
//! `tests/bench/compare.py` starts the servers, runs the sides in shuffled rounds and prints the ratios. The raw sides send
//! the very bytes the library sends: they are recorded through a relay first, so a change of the wire moves both.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic, missing_docs)]

mod callers;
mod holds;
mod left;
mod meter;
mod raw;
mod waiting;
mod work;

use std::time::Duration;

use callers::name;
use work::{Work, crowd, new_name};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [side, urls, seconds] = arguments.as_slice() else {
        return println!(
            "usage: sides <side> <redis://host:port,… or redis+cluster://host:port,…> <seconds>; sides are compared by tests/bench/compare.py"
        );
    };
    if let Some((count, mode)) = side.strip_prefix("waiters-").and_then(|what| what.split_once('-')) {
        let hold = Duration::from_secs_f64(seconds.parse().unwrap());
        return waiting::waiters(urls, count.parse().unwrap(), hold, mode == "fair");
    }
    let span = Duration::from_secs_f64(seconds.parse().unwrap());
    // The raw sides work for one server, also if it is one of several.
    let first = urls.split(',').next().unwrap_or_default();
    match side.as_str() {
        "async-1" => callers::tasks(urls, span, 1),
        "async-64" => callers::tasks(urls, span, 64),
        "job-64" => callers::jobs(urls, span, 64),
        "async-256" => callers::tasks(urls, span, 256),
        "blocking-1" => callers::blocking(urls, span),
        "raw-1" => raw::one_at_a_time(first, span, &Work::pair(urls, |client| client.lock(name(0)))),
        "raw-50x16" => raw::pipelined(first, span, &Work::pair(urls, |client| client.lock(name(0))), 50, 16),
        "raw-new-50x16" => raw::pipelined(first, span, &Work::pair(urls, |client| client.lock(new_name())), 50, 16),
        "scripted-50x16" => raw::pipelined(first, span, &Work::scripted(first), 50, 16),
        "permit-50x16" => {
            raw::pipelined(first, span, &Work::pair(urls, |client| client.semaphore(format!("{}:permits", name(0)), 5)), 50, 16)
        }
        "reader-50x16" => {
            raw::pipelined(first, span, &Work::pair(urls, |client| client.read_lock(format!("{}:read", name(0)))), 50, 16)
        }
        "semaphore-64" => callers::permits(urls, span, 64, 5),
        "renewal-50x16" => raw::pipelined(first, span, &Work::renewal(urls), 50, 16),
        "plain-50x16" => raw::pipelined(first, span, &Work::plain(first, &name(0)), 50, 16),
        "plain-new-50x16" => raw::pipelined(first, span, &Work::plain(first, &new_name()), 50, 16),
        "holds-1000" => holds::renewed(urls, span, 1_000),
        "holds-10000" => holds::renewed(urls, span, 10_000),
        "appended" => left::appended(first),
        "holder" => waiting::holder(urls),
        "spread-64" => callers::spread(urls, span, 64, 1, 1),
        "spread-64of3" => callers::spread(urls, span, 64, 1, 3),
        "spread-64of6" => callers::spread(urls, span, 64, 1, 6),
        "spread-64x3" => callers::spread(urls, span, 64, 3, 3),
        "spread-64x6" => callers::spread(urls, span, 64, 6, 6),
        "trust" => callers::trust(urls),
        other => match other.rsplit_once('-') {
            Some(("new", callers)) => callers::new_names(urls, span, callers.parse().unwrap()),
            Some(("names", count)) => left::names(urls, count.parse().unwrap()),
            Some(("reader-beside", count)) => {
                let lock = format!("{}:beside-{count}", name(0));
                let work = Work::pair(urls, |client| client.read_lock(&*lock));
                crowd(first, &lock, count.parse().unwrap());
                raw::one_at_a_time(first, span, &work);
            }
            _ => panic!("no side {other}"),
        },
    }
}
