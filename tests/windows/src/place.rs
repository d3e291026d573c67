//! Place: the servers of a play, and the program that stops and starts them.

use std::env;
use std::error::Error;
use std::io::{Write, stdin, stdout};
use std::time::Duration;

use locktender::{Client, ClientBuilder};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long may take what has no reason to take long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn ensure(is_so: bool, what: &str) -> Outcome {
    if is_so { Ok(()) } else { Err(format!("it is not so: {what}").into()) }
}

pub(crate) fn named(variable: &str) -> Outcome<String> {
    env::var(variable).map_err(|_| format!("{variable} is not set").into())
}

/// The URL of the server that may be stopped.
pub(crate) fn server() -> Outcome<String> {
    named("PLAY_SERVER")
}

/// The URLs of the servers of a quorum.
pub(crate) fn quorum() -> Outcome<Vec<String>> {
    Ok(named("PLAY_QUORUM")?.split(' ').map(str::to_owned).collect())
}

/// A client that doesn't wait long for a server, but longer than one that was started again needs to vote: the max_ttl of 1 s.
pub(crate) fn impatient(urls: &[String]) -> ClientBuilder {
    Client::builder().urls(urls).unavailable_after(Duration::from_secs(3))
}

/// Asks for a server to be stopped or started, by its URL, and waits until that is done.
pub(crate) fn ask(what: &str, url: &str) -> Outcome {
    println!("@{what} {url}");
    stdout().flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    ensure(answer.trim_end() == "done", &format!("{what} {url} is done"))
}
