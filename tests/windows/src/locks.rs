//! Locks, jobs and elections on one server, in memory or on a cluster, by two clients of this process.

use std::thread;
use std::time::{Duration, Instant};

use locktender::{Client, Code};

use crate::place::{Outcome, PATIENCE, ensure, named};

const TTL: Duration = Duration::from_millis(600);

fn client(url: &str, authority: Option<&str>) -> Outcome<Client> {
    let builder = Client::builder().url(url);
    Ok(if let Some(file) = authority { builder.tls_ca(file) } else { builder }.build()?)
}

pub(crate) fn all(url: &str, authority: Option<&str>) -> Outcome {
    of_locks(url, authority)?;
    jobs(url)?;
    elections(url)
}

/// Acquire, busy, renewals, a wait, a release, readers, and a hold that another client ends.
pub(crate) fn of_locks(url: &str, authority: Option<&str>) -> Outcome {
    let [one, other] = [client(url, authority)?, client(url, authority)?];
    let hold = one.lock("orders").ttl(TTL).acquire_blocking()?;
    ensure(other.lock("orders").try_acquire_blocking()?.is_none(), "a held lock is busy")?;
    // Only renewals keep it for so long.
    thread::sleep(4 * TTL);
    hold.check()?;
    ensure(other.lock("orders").try_acquire_blocking()?.is_none(), "a renewed lock is busy")?;

    let waiting = other.lock("orders").wait(PATIENCE);
    let waiter = thread::spawn(move || waiting.acquire_blocking());
    thread::sleep(Duration::from_millis(300));
    let released = Instant::now();
    hold.release_blocking()?;
    let next = waiter.join().map_err(|_| "the waiter has panicked")??;
    ensure(released.elapsed() < Duration::from_secs(2), "a waiter gets a released lock soon")?;
    ensure(next.fence() > hold.fence(), "the next fence is larger")?;

    one.lock("orders").force_release_blocking(None)?;
    ensure(next.renew_now_blocking().is_err(), "a hold that was ended can't be renewed")?;
    ensure(next.lost_blocking(PATIENCE)?.is_some(), "a hold that was ended is lost")?;

    let readers = [&one, &other].map(|client| client.read_lock("catalog").try_acquire_blocking());
    for reader in readers {
        reader?.ok_or("readers hold a lock together")?.release_blocking()?;
    }
    close([one, other])
}

/// A job that fails once and is done once, and a time that runs once.
fn jobs(url: &str) -> Outcome {
    let [one, other] = [client(url, None)?, client(url, None)?];
    let retried = |client: &Client| client.job("mail").max_attempts(2).retry_delay(Duration::from_millis(10));
    let failed = retried(&one).run_blocking(|_| Err::<&str, _>("the mail server is down"));
    ensure(failed.is_err(), "an attempt fails")?;
    let done = retried(&other).run_blocking(|attempt| Ok::<_, String>(attempt.number().to_string()));
    let done = done.map_err(|error| error.to_string())?;
    ensure(done.ran && done.result.as_deref() == Some("2"), "the second attempt runs")?;
    let again = retried(&one).run_blocking(|_| Ok::<_, String>("again")).map_err(|error| error.to_string())?;
    ensure(!again.ran && again.result.as_deref() == Some("2"), "a job that is done doesn't run")?;
    ensure(one.job("mail").reset_blocking()?, "its record is forgotten")?;
    close([one, other])
}

/// A leader, another candidate, and the next term.
fn elections(url: &str) -> Outcome {
    let [one, other] = [client(url, None)?, client(url, None)?];
    let leader = one.election("shift").ttl(TTL).campaign_blocking()?;
    thread::sleep(2 * TTL);
    ensure(other.election("shift").try_campaign_blocking()?.is_none(), "there is one leader")?;
    leader.resign_blocking()?;
    let next = other.election("shift").wait(PATIENCE).campaign_blocking()?;
    ensure(next.term() > leader.term(), "the next term is larger")?;
    next.resign_blocking()?;
    close([one, other])
}

/// The same over TLS; and a certificate that nobody knows is refused.
pub(crate) fn tls() -> Outcome {
    let (url, authority) = (named("PLAY_TLS")?, named("PLAY_TLS_CA")?);
    of_locks(&url, Some(&authority))?;
    // The certificates of the system.
    let unknown = Client::builder().url(&*url).unavailable_after(Duration::from_secs(1)).build()?;
    let refused = unknown.lock("orders").try_acquire_blocking().err().ok_or("a certificate that nobody knows is refused")?;
    ensure(refused.to_string().contains("certificate"), &format!("the error is about a certificate: {refused}"))
}

/// A Unix socket is refused at once.
pub(crate) fn unix() -> Outcome {
    if cfg!(unix) {
        return Ok(());
    }
    let refused = Client::open("unix:///run/redis.sock").err().ok_or("a Unix socket is refused")?;
    ensure(refused.code() == Code::InvalidArgument, "it is an argument that is wrong")?;
    ensure(refused.to_string().contains("no Unix sockets on this system"), &refused.to_string())
}

fn close(clients: [Client; 2]) -> Outcome {
    for client in clients {
        client.close_blocking()?;
    }
    Ok(())
}
