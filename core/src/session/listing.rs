//! Listing: which locks are held, by what the servers show.
//!
//! `SCAN` finds the fences, part by part, so that no server stops for a list, and `MGET` tells which of their locks have a holder. Only
//! these are inspected, some at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::task::JoinSet;
use wildmatch::WildMatch;

use crate::error::{Code, Error, ServerError};
use crate::io::call::Call;
use crate::name::{Keys, Kind, name_of_fence};
use crate::op::{Answer, Failure, FailureKind, Op, Verdict};
use crate::protocol::{LockInfo, Quorum, failures, inspect};
use crate::session::Session;
use crate::session::ask_all::{AskAll, ask_one};

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
        let listing = Arc::new(self);
        let names = listing.names(&session).await?;
        let mut names = names.into_iter().take(listing.limit);
        let mut found = Vec::new();
        let mut looks = JoinSet::new();
        loop {
            while looks.len() < AT_ONCE
                && let Some(name) = names.next()
            {
                looks.spawn(look(&session, name));
            }
            let Some(seen) = looks.join_next().await else { break };
            match seen.map_err(|error| Error::internal(None, &error.to_string()))? {
                Ok(seen) => found.extend(seen),
                // What it says is about this lock alone.
                Err(error) if error.code() == Code::KeyConflict => (),
                Err(error) => return Err(error),
            }
        }
        found.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// The names of the locks with a holder on any server. Without a majority of the servers some may be missing.
    async fn names(self: &Arc<Self>, session: &Arc<Session>) -> Result<BTreeSet<String>, Error> {
        let mut scans = JoinSet::new();
        for server in 0..session.server_count() {
            let (listing, session) = (Arc::clone(self), Arc::clone(session));
            scans.spawn(async move { (server, listing.names_on(&session, server).await) });
        }
        let mut all = BTreeSet::new();
        let mut answers: Vec<Option<Answer>> = vec![None; session.server_count()];
        while let Some(scanned) = scans.join_next().await {
            match scanned.map_err(|error| Error::internal(None, &error.to_string()))? {
                (_, Ok(names)) => all.extend(names),
                (server, Err(failure)) => answers[server] = Some(Err(failure)),
            }
        }
        let failed: Vec<ServerError> = failures(&session.addresses, &answers);
        if !Quorum::of(answers.len()).blocked_by(failed.len()) {
            return Ok(all);
        }
        Err(match () {
            () if session.is_closing() => Error::closed(None),
            () if failed.iter().all(|error| error.kind == FailureKind::Denied) => Error::denied(None, failed),
            () => Error::unavailable(None, answers.len(), failed),
        })
    }

    /// The names of the locks with a holder on one server.
    async fn names_on(&self, session: &Arc<Session>, server: usize) -> Result<BTreeSet<String>, Failure> {
        let timeout = session.options.connect_timeout + session.response_timeout();
        let ask = async |op| match ask_one(session, server, op, timeout).await {
            Ok(answer) => answer.map(|reply| reply.verdict),
            Err(error) => Err(Failure::unknown(FailureKind::Other, error.to_string())),
        };
        let mut held = BTreeSet::new();
        let mut cursor = 0;
        loop {
            let Verdict::Scanned { next, fences } = ask(Op::Scan { cursor, part: Arc::clone(&self.part) }).await? else {
                return Err(Failure::unknown(FailureKind::Protocol, "a scan was answered with something else"));
            };
            let names = fences.iter().filter_map(|fence| name_of_fence(fence, &session.options.prefix));
            let names: Vec<&str> = names.filter(|name| self.pattern.matches(name)).collect();
            let keys: Arc<[String]> = names.iter().map(|name| [&session.options.prefix, *name].concat()).collect();
            if !keys.is_empty()
                && let Verdict::Present(present) = ask(Op::Present { keys }).await?
            {
                let with_holder = names.into_iter().zip(present).filter(|(_, present)| *present);
                held.extend(with_holder.map(|(name, _)| name.to_owned()));
            }
            if next == 0 || held.len() >= self.limit {
                return Ok(held);
            }
            cursor = next;
        }
    }
}

/// Looks at a lock.
fn look(session: &Arc<Session>, name: String) -> Call<Option<LockInfo>> {
    let session = Arc::clone(session);
    Call::new(move |responder| {
        match Keys::new(Kind::Exclusive, &session.options.prefix, &name, session.quorum_config.is_none()) {
            Ok(keys) => {
                let (op, servers) = (Op::inspect(Arc::new(keys)), Arc::clone(&session.addresses));
                let timeout = session.response_timeout();
                AskAll::begin(&session, &[op], timeout, move |answers| inspect(&name, &servers, answers), responder);
            }
            Err(error) => responder.respond(Err(error)),
        }
        None
    })
}
