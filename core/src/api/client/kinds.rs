//! Locks of other kinds: semaphores, read locks, and several locks at once.

use std::sync::Arc;

use super::Client;
use crate::api::lock::Lock;
use crate::api::lock::multi::MultiLock;
use crate::name::Kind;

impl Client {
    /// The semaphore `name`, with the client's options: a lock that at most so many programs hold at once. No I/O.
    ///
    /// Each hold is one permit, with a ttl of its own: a holder that dies costs its own permit for its own ttl, and no other. Its
    /// name is that of a lock: while a permit is held, [`Client::lock`] of the same name is held, and the holder of that lock has all
    /// permits. If programs ask with different numbers, at most the largest one hold it. Permits have no numbers: to guard five different
    /// things, use five locks. From 1 to 10,000 permits; on one server, not on a quorum.
    ///
    /// The fence rises with each grant, and orders nothing between those that hold it at once.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-client-semaphore")?;
    /// let renders = client.semaphore("renders", 2);
    /// let (one, two) = (renders.acquire_blocking()?, renders.acquire_blocking()?);
    /// assert!(renders.try_acquire_blocking()?.is_none());
    /// assert_eq!(renders.inspect_blocking()?.and_then(|info| info.available), Some(0));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn semaphore(&self, name: impl Into<String>, permits: u32) -> Lock {
        self.lock(name).of_kind(Kind::Semaphore(permits))
    }

    /// The read lock `name`, with the client's options: any number of readers hold it at once, and no writer. **The writer is
    /// [`Client::lock`]** of the same name. No I/O.
    ///
    /// Each reader has a ttl of its own. While a writer waits as the first one, no new reader enters; those that a release lets in enter together.
    /// Only a task that reads already may read once more past that writer, because it would wait for itself ([`Lock::caller`]).
    ///
    /// Readers between two writers have the same fence, above that of the writer before and below that of the writer after. On one
    /// server, not on a quorum.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-client-read-lock")?;
    /// let prices = client.read_lock("prices");
    /// let (one, two) = (prices.acquire_blocking()?, prices.acquire_blocking()?);
    /// assert_eq!(one.fence(), two.fence());
    /// assert!(client.lock("prices").try_acquire_blocking()?.is_none());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn read_lock(&self, name: impl Into<String>) -> Lock {
        self.lock(name).of_kind(Kind::Read)
    }

    /// The locks of these names, with the client's options: a caller gets all of them at once, or none. No I/O.
    ///
    /// They are the locks of [`Client::lock`]: a holder of one of them blocks all. Callers with the same names in another order don't wait
    /// for each other without end, because a waiter holds none of the locks. It is in the queue of the first busy lock. Where its locks
    /// are always in use it may wait long.
    ///
    /// From 1 to 16 different names; on one server, not on a quorum. In a cluster all names need the same `{tag}`.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-client-multi-lock")?;
    /// let accounts = client.multi_lock(["account:1", "account:2"]);
    /// let hold = accounts.acquire_blocking()?;
    /// for (name, fence) in hold.fences() {
    ///     println!("write to {name} with fence {fence}");
    /// }
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn multi_lock(&self, names: impl IntoIterator<Item = impl Into<String>>) -> MultiLock {
        MultiLock::new(Arc::clone(&self.0), names.into_iter().map(Into::into).collect())
    }
}
