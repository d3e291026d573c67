//! Outages: servers that are stopped while a lock is held, and started again.

use std::thread;
use std::time::{Duration, Instant};

use locktender::{Client, Code, Hold};

use crate::place::{Outcome, PATIENCE, ask, ensure, impatient, quorum as quorum_urls, server};

const TTL: Duration = Duration::from_secs(1);

/// The hold is lost within its ttl, an acquire says why it fails, and the lock can be had again when the server is back.
pub(crate) fn one_server() -> Outcome {
    let url = server()?;
    let client = impatient(std::slice::from_ref(&url)).build()?;
    let hold = client.lock("outage").ttl(TTL).acquire_blocking()?;
    ask("stop", &url)?;
    is_lost(&hold)?;
    is_unavailable(&client)?;
    ask("start", &url)?;
    let next = client.lock("outage").ttl(TTL).wait(PATIENCE).acquire_blocking()?;
    ensure(next.fence() > hold.fence(), "the next fence is larger")?;
    next.release_blocking()?;
    Ok(client.close_blocking()?)
}

/// A quorum of three survives the loss of one server, and not that of two.
pub(crate) fn quorum() -> Outcome {
    let urls = quorum_urls()?;
    let client = impatient(&urls).ttl(TTL).max_ttl(TTL).build()?;
    client.initialize_quorum_blocking()?;
    let hold = client.lock("outage").ttl(TTL).acquire_blocking()?;
    ask("stop", &urls[0])?;
    thread::sleep(3 * TTL);
    hold.check()?;
    let other = client.lock("another").ttl(TTL).acquire_blocking()?;
    other.release_blocking()?;
    ask("stop", &urls[1])?;
    is_lost(&hold)?;
    is_unavailable(&client)?;
    for url in &urls[..2] {
        ask("start", url)?;
    }
    let next = client.lock("outage").ttl(TTL).wait(PATIENCE).acquire_blocking()?;
    ensure(next.fence() > hold.fence(), "the next fence is larger")?;
    next.release_blocking()?;
    Ok(client.close_blocking()?)
}

fn is_lost(hold: &Hold) -> Outcome {
    let began = Instant::now();
    ensure(hold.lost_blocking(PATIENCE)?.is_some(), "without its server a hold is lost")?;
    ensure(began.elapsed() < 2 * TTL, "it is lost within its ttl")?;
    ensure(hold.check().is_err() && !hold.is_valid(), "a lost hold is not valid")
}

fn is_unavailable(client: &Client) -> Outcome {
    let refused = client.lock("another").acquire_blocking().err().ok_or("without a server there is no lock")?;
    ensure(refused.code() == Code::Unavailable, &format!("it is UNAVAILABLE: {refused}"))
}
