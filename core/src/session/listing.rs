//! Listing: which locks are held, and which jobs there are, by what the servers show.
//!
//! `SCAN` finds the strings, part by part, so that no server stops for a list, and `GETRANGE` shows by their first bytes which are
//! locks of this library. Only these are inspected, some at a time. Jobs are found by their records.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::task::JoinSet;
use wildmatch::WildMatch;

use crate::error::{Code, Error, ServerFailure};
use crate::io::call::Call;
use crate::name::{Keys, Kind, Listed};
use crate::op::{Answer, Cursor, Failure, FailureKind, Op, Verdict};
use crate::protocol::JobStatus;
use crate::protocol::{LockInfo, Quorum, failures, inspect};
use crate::session::Session;
use crate::session::ask_all::{AskAll, ask_one};

/// How often a list may begin.
const MOST: u32 = 10;

/// How many locks are inspected at the same time.
const AT_ONCE: usize = 64;

/// What is listed.
pub(crate) struct Listing {
    pattern: WildMatch,
    /// A part of the keys of all locks that match.
    part: Arc<str>,
    limit: usize,
}

impl Listing {
    /// The locks of a client with `prefix` whose names match `pattern`, at most `limit` of them.
    pub(crate) fn new(prefix: &str, pattern: &str, limit: usize) -> Self {
        let literal = pattern.split(['*', '?']).next().unwrap_or_default();
        Self { pattern: WildMatch::new(pattern), part: [prefix, literal].concat().into(), limit }
    }

    /// Makes the list, in the order of the names.
    pub(crate) async fn make(self, session: Arc<Session>) -> Result<Vec<LockInfo>, Error> {
        let names = Arc::new(self).names(&session, Listed::Locks).await?;
        let seen = each(names, |name| look(&session, name)).await?;
        Ok(seen.into_iter().filter_map(|(_, lock)| lock).collect())
    }

    /// The names of the jobs of which something is known, with that, in the order of the names.
    pub(crate) async fn jobs(
        self,
        session: Arc<Session>,
        status: impl Fn(&str) -> Call<JobStatus>,
    ) -> Result<Vec<(String, JobStatus)>, Error> {
        let names = Arc::new(self).names(&session, Listed::Records).await?;
        each(names, |name| status(&name)).await
    }

    /// The names of the locks with a holder, or of the jobs, on any server, at most so many as are wanted. Without a majority of the
    /// servers some may be missing.
    async fn names(self: &Arc<Self>, session: &Arc<Session>, listed: Listed) -> Result<BTreeSet<String>, Error> {
        let mut scans = JoinSet::new();
        for server in 0..session.server_count() {
            let (listing, session) = (Arc::clone(self), Arc::clone(session));
            scans.spawn(async move { (server, listing.names_on(&session, server, listed).await) });
        }
        let mut all = BTreeSet::new();
        let mut answers: Vec<Option<Answer>> = vec![None; session.server_count()];
        while let Some(scanned) = scans.join_next().await {
            match scanned.map_err(|error| Error::internal(None, &error.to_string()))? {
                (_, Ok(names)) => all.extend(names),
                (server, Err(failure)) => answers[server] = Some(Err(failure)),
            }
        }
        let failed: Vec<ServerFailure> = failures(&session.addresses, &answers);
        if !Quorum::of(answers.len()).blocked_by(failed.len()) {
            return Ok(all.into_iter().take(self.limit).collect());
        }
        Err(match () {
            () if session.is_closing() => Error::closed(None),
            () if failed.iter().all(|error| error.kind == FailureKind::Denied) => Error::denied(None, failed),
            () => Error::unavailable(None, answers.len(), failed),
        })
    }

    /// The names on one server.
    async fn names_on(&self, session: &Arc<Session>, server: usize, listed: Listed) -> Result<BTreeSet<String>, Failure> {
        let timeout = session.options.connect_timeout + session.response_timeout();
        let ask = async |op| match ask_one(session, server, op, timeout).await {
            Ok(answer) => answer,
            Err(error) => Err(Failure::unknown(FailureKind::Other, error.to_string())),
        };
        let mut found = BTreeSet::new();
        let (mut cursor, mut from, mut begun) = (Cursor::default(), None, 1);
        loop {
            let reply = ask(Op::Scan { listed, cursor, part: Arc::clone(&self.part) }).await?;
            let Verdict::Scanned { next, keys } = reply.verdict else {
                return Err(Failure::unknown(FailureKind::Protocol, "a scan was answered with something else"));
            };
            // To a server that was restarted, or to another node in its place, the cursor means nothing.
            if cursor.own != 0 && from != reply.run_id {
                begun += 1;
                if begun > MOST {
                    return Err(Failure::not_applied(
                        FailureKind::Other,
                        "it was another server again and again during the list",
                    ));
                }
                cursor = Cursor::default();
                continue;
            }
            from = reply.run_id;
            let names = keys.iter().filter_map(|key| listed.name_of(key, &session.options.prefix));
            let names: Vec<String> = names.filter(|name| self.pattern.matches(name)).map(str::to_owned).collect();
            if listed == Listed::Records {
                found.extend(names);
            } else {
                found.extend(self.ours(session, server, names).await?);
            }
            if next == Cursor::default() || found.len() >= self.limit {
                return Ok(found);
            }
            cursor = next;
        }
    }

    /// The names among these whose keys hold a value of this library.
    async fn ours(&self, session: &Arc<Session>, server: usize, names: Vec<String>) -> Result<Vec<String>, Failure> {
        let timeout = session.options.connect_timeout + session.response_timeout();
        let (mut names, mut ours, mut asked) = (names.into_iter(), Vec::new(), JoinSet::new());
        loop {
            while asked.len() < AT_ONCE
                && let Some(name) = names.next()
            {
                let (session, key) = (Arc::clone(session), [&session.options.prefix, &*name].concat().into());
                asked.spawn(async move { (name, ask_one(&session, server, Op::Peek { key }, timeout).await) });
            }
            let Some(answered) = asked.join_next().await else { return Ok(ours) };
            let other = |error: &dyn std::fmt::Display| Failure::unknown(FailureKind::Other, error.to_string());
            let (name, answer) = answered.map_err(|error| other(&error))?;
            match answer.map_err(|error| other(&error))??.verdict {
                Verdict::Peeked(true) => ours.push(name),
                Verdict::Peeked(false) => {}
                _ => return Err(Failure::unknown(FailureKind::Protocol, "a look at a key was answered with something else")),
            }
        }
    }
}

/// Asks about each name, about some at the same time. What it gives is in the order of the names.
async fn each<T: Send + 'static>(names: BTreeSet<String>, ask: impl Fn(String) -> Call<T>) -> Result<Vec<(String, T)>, Error> {
    let mut names = names.into_iter();
    let mut found = Vec::new();
    let mut asked = JoinSet::new();
    loop {
        while asked.len() < AT_ONCE
            && let Some(name) = names.next()
        {
            let answer = ask(name.clone());
            asked.spawn(async move { (name, answer.await) });
        }
        let Some(answered) = asked.join_next().await else { break };
        match answered.map_err(|error| Error::internal(None, &error.to_string()))? {
            (name, Ok(answer)) => found.push((name, answer)),
            // What it says is about this name alone.
            (_, Err(error)) if error.code() == Code::KeyConflict => (),
            (_, Err(error)) => return Err(error),
        }
    }
    found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found)
}

/// Looks at a lock.
fn look(session: &Arc<Session>, name: String) -> Call<Option<LockInfo>> {
    let session = Arc::clone(session);
    Call::new(move |responder| {
        let kind = Kind::of_lock(session.server_count());
        let keys = Keys::new(kind, &session.options.prefix, &name, session.quorum_config.is_none());
        let (keys, responder) = responder.unless_failed(keys)?;
        AskAll::about_lock(&session, name, Op::inspect(Arc::new(keys)), inspect, responder);
        None
    })
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
