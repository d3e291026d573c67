//! History: who has held which lock, as the holders have noted it on the server.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Client;
use crate::error::{Error, ServerFailure};
use crate::io::call::Call;
use crate::io::canceller::Canceller;
use crate::name::Listed;
use crate::op::history::HISTORY_PART;
use crate::op::{Answer, Beside, FailureKind, HistoryEntry, HoldState, Op, Verdict};
use crate::owner::OwnerFields;
use crate::session::Session;
use crate::session::ask_all::ask_one;

/// The number of holds that are shown if nothing else is asked for.
const LIMIT: usize = 100;

/// A hold that its holder has noted in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// The lock's name, without the client's prefix.
    pub name: String,
    /// The owner value.
    pub owner: String,
    /// The fields of the owner value.
    pub fields: Option<OwnerFields>,
    /// The fencing token.
    pub fence: u64,
    /// When the hold began, by the server's clock.
    pub began: SystemTime,
    /// When it ended, by the server's clock. `None` if it continues, or if its end wasn't noted.
    pub ended: Option<SystemTime>,
    /// Its state when it was noted last.
    pub state: HoldState,
    /// Whether others may have had the lock at the same time: it is the hold of a reader, or of a permit.
    pub is_shared: bool,
}

impl Client {
    /// Shows who has held which lock, the latest first. `name` chooses one lock, `None` all of this client's prefix; `limit` is the most
    /// holds, 100 by default.
    ///
    /// Holders note their holds on the server: with the first renewal, and with the end of a hold that lasted a second or had found the
    /// lock held. So shorter holds are not shown. Of readers that were inside together the first one is noted, and of readers and holders of
    /// permits each that lost the lock. Holders don't wait for these notes, and one may be missing. The server keeps the last 10,000 of all locks.
    /// A client with the option [`history`](crate::ClientBuilder::history) off notes nothing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-history").unwrap();
    /// for grant in client.history(Some("orders:42"), 20).await? {
    ///     println!("{} had {} with fence {}: {}", grant.owner, grant.name, grant.fence, grant.state.as_str());
    /// }
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call ends it, and changes nothing.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, also on a quorum, which has no history; `UNAVAILABLE`, `DENIED` (the user needs the command `XREVRANGE` of
    /// `{~lt}:log`), `KEY_CONFLICT`, `CLOSED`.
    pub fn history(&self, name: Option<&str>, limit: impl Into<Option<usize>>) -> Call<Vec<Grant>> {
        let (client, name, limit) = (self.clone(), name.map(str::to_owned), limit.into().unwrap_or(LIMIT));
        Call::new(move |responder| {
            let session = match () {
                () if limit == 0 => Err(Error::invalid("limit", limit, "it must be at least 1")),
                () => client.0.session(None),
            };
            let session = session.and_then(|session| on_one_server(&session).map(|()| session));
            let (session, responder) = responder.unless_failed(session)?;
            let handle = session.runtime().handle().clone();
            let task = handle.spawn(async move { responder.respond(read(&session, name.as_deref(), limit).await) });
            Some(Canceller::by(move |_| task.abort()))
        })
    }
}

fn on_one_server(session: &Session) -> Result<(), Error> {
    match session.server_count() {
        1 => Ok(()),
        count => Err(Error::invalid("servers", count, "only a single server or a cluster has a history, and a quorum has none")),
    }
}

async fn read(session: &Arc<Session>, name: Option<&str>, limit: usize) -> Result<Vec<Grant>, Error> {
    let (mut grants, mut seen, mut before) = (Vec::new(), HashSet::new(), None);
    loop {
        let entries = part(session, before).await?;
        for HistoryEntry { id, note } in &*entries {
            let named = Listed::Locks.name_of(&note.lock, &session.options.prefix);
            let Some(found) = named.filter(|found| name.is_none_or(|name| name == *found)) else { continue };
            // The latest entry of a hold says all.
            if seen.insert((Arc::clone(&note.lock), note.fence, Arc::clone(&note.owner))) {
                let ended = (note.state != HoldState::Holds).then(|| UNIX_EPOCH + Duration::from_millis(id.0));
                grants.push(Grant {
                    name: found.to_owned(),
                    fields: OwnerFields::parse(&note.owner),
                    owner: note.owner.to_string(),
                    fence: note.fence,
                    // What is behind the milliseconds of a fence only counts.
                    began: UNIX_EPOCH + Duration::from_millis(note.fence / 1_000),
                    ended,
                    state: note.state,
                    is_shared: note.beside != Beside::Nobody,
                });
                if grants.len() == limit {
                    return Ok(grants);
                }
            }
        }
        // A part is shorter if others have written there: only an empty one is the end.
        let Some(last) = entries.last() else { return Ok(grants) };
        before = Some(last.id);
    }
}

/// The entries before this one, as many as a server is asked for.
async fn part(session: &Arc<Session>, before: Option<(u64, u64)>) -> Result<Arc<[HistoryEntry]>, Error> {
    let timeout = session.options.connect_timeout + session.response_timeout();
    let answer: Answer = ask_one(session, 0, Op::History { before, since_ms: 0, count: HISTORY_PART }, timeout).await?;
    let failure = match answer {
        Ok(reply) => match reply.verdict {
            Verdict::Logged(entries) => return Ok(entries),
            Verdict::Conflict { found } => return Err(Error::no_history(&found)),
            _ => return Err(Error::internal(None, "the history was answered with something else")),
        },
        Err(failure) => failure,
    };
    let failed = vec![ServerFailure::of(&session.addresses[0], &failure)];
    Err(match failure.kind {
        _ if session.is_closing() => Error::closed(None),
        FailureKind::Denied => Error::denied(None, failed),
        _ => Error::unavailable(None, 1, failed),
    })
}
