//! A lock that the work itself extends, without renewal in the background.
//! LOCKTENDER_URL=redis://localhost cargo run --example extend
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use locktender::{Client, Error};

fn main() -> Result<(), Error> {
    let client = Client::from_env()?;
    // A short ttl, extended after each step of the work: work that hangs loses its lock.
    let hold = client.lock("import").ttl(Duration::from_secs(2)).renew(false).acquire_blocking()?;
    for batch in ["a", "b", "c"] {
        println!("batch {batch}: {:.1} s remain", hold.remaining().as_secs_f64());
        hold.renew_now().blocking()?; // at least the lock's own ttl remains
    }
    hold.extend(Duration::from_secs(30)).blocking()?; // at least 30 s remain
    hold.extend_by(Duration::from_secs(30)).blocking()?; // what remains and 30 s more
    println!("the last step has {:.0} s", hold.remaining().as_secs_f64());
    println!("{}", hold.release().blocking()?.outcome.as_str());
    client.close_blocking()
}
