//! A lock that the work itself extends, without renewal in the background.
//! LOCKTENDER_URL=redis://localhost cargo run --example extend
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use locktender::{Client, Error};

fn main() -> Result<(), Error> {
    let client = Client::from_env()?;
    // A short ttl, extended after each step of the work: work that hangs loses its lock.
    let held = client.lock("import").ttl(Duration::from_secs(2)).renew(false).acquire_blocking()?;
    for batch in ["a", "b", "c"] {
        println!("batch {batch}: {:.1} s remain", held.remaining().as_secs_f64());
        held.renew_now().wait()?; // at least the lock's own ttl remains
    }
    held.extend(Duration::from_secs(30)).wait()?; // at least 30 s remain
    held.extend_by(Duration::from_secs(30)).wait()?; // what remains and 30 s more
    println!("the last step has {:.0} s", held.remaining().as_secs_f64());
    println!("{}", held.release().wait()?.outcome.as_str());
    client.close_blocking()
}
