//! The marker of a server of a quorum: the quorum to which the server belongs, and since when it remembers its locks.
//!
//! A server that forgot its locks (empty restart, old snapshot, promoted replica) would vote for a second holder. So it votes
//! only when every hold that it may have forgotten has ended. That is `max_ttl` after it was first seen as new.
//!
//! Without the server's replication id a client can't see a restart, only a missing marker. Then it accepts the marker that other
//! clients wrote.
//!
//! A server may change its replication id under an open connection: a primary that becomes a replica and a primary again closes
//! none. So the server compares its id with the one that it showed in the handshake. If they differ, the client needs another
//! handshake. But a primary also takes another id when its first replica comes: then the marker may have either id.
//!
//! A marker of several servers expires until the first vote, two `max_ttl` after a client of that quorum looked at it last. Until
//! then clients of one server ignore it: one attempt with several servers, by mistake, must not lock them out.
//!
//! The text is readable: `n=3 max_ttl=60000 run=<replid> since=<µs>`, or `since=0` when the server has begun to vote.

use std::sync::Arc;
use std::time::Duration;

use super::Env;
use super::cut::cut;
use super::fence;
use super::state::{Entry, State, Value};
use crate::mutant::mutant;
use crate::name::Keys;
use crate::op::{QuorumConfig, Reply, Verdict};

/// The standing of a server by its marker, for a client with `config`.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    /// The server votes.
    Votes,
    /// The server votes from now on.
    HasWaited,
    /// It votes after this many milliseconds.
    Waits(u64),
    /// It is new or restarted, or its clock was set back to a time before the marker.
    New,
    /// It belongs to another quorum, whose marker this is.
    Elsewhere(String),
    /// The value is no marker.
    Unreadable(String),
}

/// The replication id of a server that doesn't show one.
pub const UNKNOWN_REPLID: &str = "?";

/// The check before a vote: `None` if the server may cast it, else the refusal. Writes the marker of a server that counts as new.
pub(super) fn admit(state: &mut State, key: &str, config: &QuorumConfig, env: &Env<'_>) -> Option<Reply> {
    if env.known_as != UNKNOWN_REPLID && env.known_as != env.replid && !env.is_renamed && !mutant!(EarlierReplidVotes) {
        return Some(plain(Verdict::NewReplid, env));
    }
    match standing(state, key, config, env) {
        Standing::Votes => {
            has_voted(state, key, env.now_us);
            None
        }
        // From here on an acquire need only compare the marker.
        Standing::HasWaited => {
            settle(state, key, env.now_us);
            None
        }
        Standing::New => {
            let voted = state.get(key, env.now_us).is_some_and(|entry| entry.left_ms(env.now_us).is_none());
            let life = (config.servers > 1 && !voted).then_some(2 * config.max_ttl_ms);
            write(state, key, config, env, (env.now_us, life));
            (!mutant!(NoQuarantine)).then(|| quarantine(env, config.max_ttl_ms))
        }
        other => {
            look(state, key, &other, config, env.now_us);
            Some(refusal(other, config, env))
        }
    }
}

/// A client of the quorum has looked at the marker: one that has never voted lives longer.
fn look(state: &mut State, key: &str, standing: &Standing, config: &QuorumConfig, now_us: u64) {
    let is_its_own = !matches!(standing, Standing::Elsewhere(_) | Standing::Unreadable(_)) && !mutant!(MarkerNotKept);
    if is_its_own
        && state.get(key, now_us).is_some_and(|entry| entry.left_ms(now_us).is_some() && !ignores(entry, config, now_us))
    {
        state.expire(key, now_us, 2 * config.max_ttl_ms);
    }
}

/// The server votes: from now on its marker stays.
fn has_voted(state: &mut State, key: &str, now_us: u64) {
    let entry = state.get(key, now_us).filter(|entry| entry.left_ms(now_us).is_some() && !mutant!(VoteLetsMarkerGo));
    if let Some(value) = entry.map(|entry| entry.value.clone()) {
        state.put(key, value, now_us, None);
    }
}

/// Whether a marker is of no concern to a client of one server: no server of its quorum has voted by it.
fn ignores(entry: &Entry, config: &QuorumConfig, now_us: u64) -> bool {
    let is_of_several =
        || entry.text().and_then(Marker::parse).is_some_and(|marker| marker.n.parse::<u64>().map_or(true, |n| n > 1));
    config.servers <= 1 && entry.left_ms(now_us).is_some() && is_of_several() && !mutant!(MistakeLocksOut)
}

/// The operation `Greet`.
pub(super) fn greet(state: &mut State, config: Option<&QuorumConfig>, env: &Env<'_>) -> Reply {
    let key = Keys::server_marker();
    let Some(config) = config else {
        // A client of one server has no quorum: any marker that counts shows another one.
        let nobody = QuorumConfig { servers: 0, max_ttl_ms: 0 };
        return match standing(state, key, &nobody, env) {
            Standing::New => plain(Verdict::Ok, env),
            other => refusal(other, &nobody, env),
        };
    };
    let standing = standing(state, key, config, env);
    look(state, key, &standing, config, env.now_us);
    refusal(standing, config, env)
}

/// The operation `Trust`.
pub(super) fn trust(state: &mut State, config: &QuorumConfig, env: &Env<'_>) -> Reply {
    let key = Keys::server_marker();
    match standing(state, key, config, env) {
        other @ (Standing::Elsewhere(_) | Standing::Unreadable(_)) => refusal(other, config, env),
        Standing::Votes | Standing::HasWaited | Standing::Waits(_) | Standing::New => {
            write(state, key, config, env, (0, None));
            plain(Verdict::Ok, env)
        }
    }
}

/// The operation `Marker`.
pub(super) fn show(state: &mut State, remove: bool, env: &Env<'_>) -> Reply {
    let key = Keys::server_marker();
    if remove {
        state.remove(key);
    }
    let text = match state.get(key, env.now_us).map(|entry| entry.text().ok_or_else(|| fence::at(entry, key))) {
        Some(Ok(text)) => Some(cut(text).to_owned()),
        Some(Err(found)) => return plain(Verdict::Conflict { found }, env),
        None => None,
    };
    plain(Verdict::Marker(text), env)
}

fn standing(state: &State, key: &str, config: &QuorumConfig, env: &Env<'_>) -> Standing {
    let Some(entry) = state.get(key, env.now_us) else { return Standing::New };
    let Some(marker) = entry.text().and_then(Marker::parse) else {
        return Standing::Unreadable(fence::at(entry, key));
    };
    if ignores(entry, config, env.now_us) {
        return Standing::New;
    }
    if marker.n != config.servers.to_string() || marker.max_ttl != config.max_ttl_ms.to_string() {
        return Standing::Elsewhere(format!("n={} max_ttl={}", marker.n, marker.max_ttl));
    }
    let is_of_this_replid = marker.run == env.known_as || env.is_renamed && marker.run == env.replid;
    if (!is_of_this_replid && env.known_as != UNKNOWN_REPLID) || marker.since > env.now_us {
        return Standing::New;
    }
    let votes_from = match marker.since {
        0 => 0,
        since => since.saturating_add(config.max_ttl_ms.saturating_mul(1_000)),
    };
    match votes_from.saturating_sub(env.now_us) {
        _ if mutant!(NoQuarantine) => Standing::Votes,
        0 if marker.since > 0 && is_of_this_replid => Standing::HasWaited,
        0 => Standing::Votes,
        left => Standing::Waits(left.div_ceil(1_000)),
    }
}

fn refusal(standing: Standing, config: &QuorumConfig, env: &Env<'_>) -> Reply {
    match standing {
        Standing::Votes | Standing::HasWaited => plain(Verdict::Ok, env),
        Standing::New => quarantine(env, config.max_ttl_ms),
        Standing::Waits(left) => quarantine(env, left),
        Standing::Elsewhere(quorum) => plain(Verdict::Mismatch { quorum: cut(&quorum).to_owned() }, env),
        Standing::Unreadable(found) => plain(Verdict::Conflict { found }, env),
    }
}

fn quarantine(env: &Env<'_>, left_ms: u64) -> Reply {
    plain(Verdict::Quarantine { left: Duration::from_millis(left_ms) }, env)
}

fn plain(verdict: Verdict, env: &Env<'_>) -> Reply {
    Reply::new(verdict, env.now_us, 0)
}

/// Writes a marker that counts `since` then, and how long it lives.
fn write(state: &mut State, key: &str, config: &QuorumConfig, env: &Env<'_>, (since, life): (u64, Option<u64>)) {
    let QuorumConfig { servers, max_ttl_ms } = config;
    let replid = if env.is_renamed { env.replid } else { env.known_as };
    let text: Arc<str> = format!("n={servers} max_ttl={max_ttl_ms} run={replid} since={since}").into();
    state.put(key, Value::Text(text), env.now_us, life);
}

/// Writes 0 as the time since when the server remembers its locks, and leaves the other fields.
fn settle(state: &mut State, key: &str, now_us: u64) {
    const FIELD: &str = " since=";
    let Some(text) = state.get(key, now_us).and_then(Entry::text) else { return };
    let Some((before, since)) = text.split_once(FIELD) else { return };
    let rest = since.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let text: Arc<str> = format!("{before}{FIELD}0{rest}").into();
    state.put(key, Value::Text(text), now_us, None);
}

/// The fields of a marker, as far as people look at them.
pub struct Shown {
    /// The number of servers, and the largest ttl in milliseconds.
    pub quorum: (u64, u64),
    /// Since when the server remembers its locks, in microseconds since 1970; 0 when it has begun to vote.
    pub since_us: u64,
}

/// Reads a marker for people.
pub fn read(text: &str) -> Option<Shown> {
    let marker = Marker::parse(text)?;
    Some(Shown { quorum: (marker.n.parse().ok()?, marker.max_ttl.parse().ok()?), since_us: marker.since })
}

/// The fields of a marker. `n` and `max_ttl` are compared as text, so that nothing is lost on a number out of range.
struct Marker<'a> {
    n: &'a str,
    max_ttl: &'a str,
    run: &'a str,
    since: u64,
}

impl<'a> Marker<'a> {
    /// Fields after the fourth belong to later versions.
    fn parse(text: &'a str) -> Option<Self> {
        let mut fields = text.split(' ');
        let mut field = |key: &str| fields.next()?.strip_prefix(key).filter(|value| !value.is_empty());
        let digits = |value: &&str| value.bytes().all(|byte| byte.is_ascii_digit());
        Some(Self {
            n: field("n=").filter(digits)?,
            max_ttl: field("max_ttl=").filter(digits)?,
            run: field("run=")?,
            since: field("since=").filter(digits)?.parse().ok().filter(|since| *since < 1 << 53)?,
        })
    }
}

#[cfg(test)]
#[path = "marker_tests.rs"]
mod tests;
