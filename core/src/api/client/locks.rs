//! Locks: the holds of all clients, by what the servers show, and those of this client.

use std::sync::Arc;
use std::time::Duration;

use super::Client;
use crate::clock::Tick;
use crate::error::Error;
use crate::io::call::Call;
use crate::io::canceller::Canceller;
use crate::name::LockKind;
use crate::protocol::JobStatus;
use crate::protocol::LockInfo;
use crate::session::Session;
use crate::session::listing::Listing;

/// A hold of this client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HoldInfo {
    /// The lock's name, without the client's prefix.
    pub name: String,
    /// What the lock is for.
    pub kind: LockKind,
    /// The owner value: the value of the key on the servers begins with it.
    pub owner: String,
    /// The fencing token.
    pub fence: u64,
    /// How long ago the lock was granted.
    pub held_for: Duration,
    /// How long the lock is guaranteed to be held if nothing renews it.
    pub remaining: Duration,
}

impl Client {
    /// Lists the locks that are held, by any client of this library, and whose names match `pattern`, in the order of their names.
    /// `limit` is the most of them; `None` for no limit.
    ///
    /// In the pattern `*` is any text, and `?` any one character. The servers list their keys in batches (`SCAN`), so
    /// that none of them stops for a list, and the first bytes of each string that may be a lock. It still costs some time for each key
    /// of the server, whatever it is for. A lock that is acquired or released meanwhile may be in the list or not, and in a cluster also
    /// one whose slot moves meanwhile. A lock that another library holds isn't listed: [`Lock::inspect`](crate::Lock::inspect) shows it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-locks").unwrap();
    /// let hold = client.lock("orders:42").acquire().await?;
    /// for lock in client.locks("orders:*", None).await? {
    ///     println!("{} is held by {}", lock.name, lock.owner);
    /// }
    /// # assert_eq!(client.locks("orders:*", None).await?.len(), 1);
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call ends it, and changes nothing.
    ///
    /// # Errors
    /// `UNAVAILABLE`, `DENIED` (the user needs the commands `SCAN` and `GETRANGE`), `INVALID_ARGUMENT`, `CLOSED`.
    pub fn locks(&self, pattern: impl Into<String>, limit: impl Into<Option<usize>>) -> Call<Vec<LockInfo>> {
        self.listed(pattern.into(), limit.into(), |listing, session, _| listing.make(session))
    }

    /// Lists the jobs of which something is known, as [`Client::locks`] lists locks.
    #[doc(hidden)]
    pub fn jobs(&self, pattern: impl Into<String>, limit: usize) -> Call<Vec<(String, JobStatus)>> {
        self.listed(pattern.into(), Some(limit), |listing, session, client| {
            listing.jobs(session, move |name| client.job(name).status())
        })
    }

    fn listed<T: Send + 'static, F>(
        &self,
        pattern: String,
        limit: Option<usize>,
        make: impl FnOnce(Listing, Arc<Session>, Self) -> F + Send + 'static,
    ) -> Call<T>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let (client, limit) = (self.clone(), limit.unwrap_or(usize::MAX));
        Call::new(move |responder| {
            let session = match () {
                () if pattern.is_empty() => {
                    Err(Error::invalid("pattern", &pattern, "it must not be empty; \"*\" matches every name"))
                }
                () if limit == 0 => Err(Error::invalid("limit", limit, "it must be at least 1")),
                () => client.0.session(None),
            };
            let (session, responder) = responder.unless_failed(session)?;
            let listing = Listing::new(client.prefix(), &pattern, limit);
            let handle = session.runtime().handle().clone();
            let list = make(listing, session, client);
            let task = handle.spawn(async move { responder.respond(list.await) });
            Some(Canceller::by(move |_| task.abort()))
        })
    }

    /// The locks that this client and its clones hold now, in the order of their names. No I/O. In a forked process there are none.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-holds")?;
    /// let hold = client.lock("orders:42").acquire_blocking()?;
    /// let holds = client.holds();
    /// assert_eq!((holds[0].name.as_str(), holds[0].fence), ("orders:42", hold.fence()));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn holds(&self) -> Vec<HoldInfo> {
        let Some(session) = self.0.session.load_full().filter(|session| !session.is_inherited()) else { return Vec::new() };
        let now = Tick::now();
        let mut holds: Vec<HoldInfo> = session
            .registry
            .all()
            .iter()
            .filter_map(|actor| {
                let (owner, fence, granted) = actor.hold_at(now)?;
                let keys = &actor.recipe.keys;
                Some(HoldInfo {
                    name: keys.name().to_owned(),
                    kind: keys.label().kind,
                    owner: owner.to_string(),
                    fence,
                    held_for: now.since(granted),
                    remaining: actor.valid_until().since(now),
                })
            })
            .collect();
        holds.sort_unstable_by(|one, other| (&one.name, one.fence).cmp(&(&other.name, other.fence)));
        holds
    }
}
