//! Blocking twins: the verbs of a client for code without an executor.

use super::{Client, Grant};
use crate::api::hold::Hold;
use crate::error::Error;
use crate::protocol::{LockInfo, ServerReport};

impl Client {
    /// [`Client::adopt`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-adopt-blocking")?;
    /// let hold = client.lock("report").acquire_blocking()?;
    /// let ticket = hold.hand_over()?; // send it to another process
    /// let mine = client.adopt_blocking(&ticket)?;
    /// assert!(mine.fence() > hold.fence());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Client::adopt`].
    pub fn adopt_blocking(&self, ticket: &str) -> Result<Hold, Error> {
        self.adopt(ticket).blocking()
    }

    /// [`Client::initialize_quorum`], blocking this thread.
    ///
    /// ```
    /// # let urls = ["memory://docs-blocking-1", "memory://docs-blocking-2", "memory://docs-blocking-3"];
    /// let client = locktender::Client::open(urls)?;
    /// client.initialize_quorum_blocking()?; // these servers are new, and nobody holds a lock on them
    /// let hold = client.lock("nightly").acquire_blocking()?; // without it: after max_ttl, a minute
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Client::initialize_quorum`].
    pub fn initialize_quorum_blocking(&self) -> Result<(), Error> {
        self.initialize_quorum().blocking()
    }

    /// [`Client::check_servers`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-report-blocking")?;
    /// for report in client.check_servers_blocking()? {
    ///     println!("{}: {:?}", report.server, report.warnings);
    /// }
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Client::check_servers`].
    pub fn check_servers_blocking(&self) -> Result<Vec<ServerReport>, Error> {
        self.check_servers().blocking()
    }

    /// [`Client::locks`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-locks-blocking")?;
    /// for lock in client.locks_blocking("orders:*", 100)? {
    ///     println!("{} is held by {}", lock.name, lock.owner);
    /// }
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Client::locks`].
    pub fn locks_blocking(&self, pattern: impl Into<String>, limit: impl Into<Option<usize>>) -> Result<Vec<LockInfo>, Error> {
        self.locks(pattern, limit).blocking()
    }

    /// [`Client::history`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-history-blocking")?;
    /// for grant in client.history_blocking(None, None)? {
    ///     println!("{} had {}", grant.owner, grant.name);
    /// }
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Client::history`].
    pub fn history_blocking(&self, name: Option<&str>, limit: impl Into<Option<usize>>) -> Result<Vec<Grant>, Error> {
        self.history(name, limit).blocking()
    }

    /// [`Client::close`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-close")?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// client.close_blocking()?;
    /// assert!(client.is_closed() && !hold.is_valid());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// None but `INTERNAL`.
    pub fn close_blocking(&self) -> Result<(), Error> {
        self.close().blocking()
    }
}
