//! Blocking twins: the verbs of a lock for code without an executor.

use super::Lock;
use crate::api::hold::Hold;
use crate::error::{Error, RunError};
use crate::protocol::LockInfo;

impl Lock {
    /// [`Lock::acquire`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-acquire-blocking")?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// println!("write with fence {}", hold.fence());
    /// hold.release_blocking()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Lock::acquire`].
    pub fn acquire_blocking(&self) -> Result<Hold, Error> {
        self.acquire().blocking()
    }

    /// [`Lock::try_acquire`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-try-acquire-blocking")?;
    /// let lock = client.lock("nightly");
    /// let hold = lock.try_acquire_blocking()?.expect("nobody has it");
    /// assert!(lock.try_acquire_blocking()?.is_none());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Lock::try_acquire`].
    pub fn try_acquire_blocking(&self) -> Result<Option<Hold>, Error> {
        self.try_acquire().blocking()
    }

    /// [`Lock::with`], blocking this thread. The lock is also released if the body panics.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-with-blocking")?;
    /// # fn charge(_fence: u64) -> Result<u64, std::io::Error> { Ok(7) }
    /// let receipt = client.lock("orders:42").with_blocking(|hold| charge(hold.fence()))?;
    /// # assert_eq!(receipt, 7);
    /// # Ok::<(), locktender::RunError<std::io::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Lock::with`].
    pub fn with_blocking<T, E>(&self, body: impl FnOnce(&Hold) -> Result<T, E>) -> Result<T, RunError<E>> {
        let held = self.acquire_blocking()?;
        self.enter(&held);
        RunError::behind(body(&held), held.leave().blocking())
    }

    /// [`Lock::inspect`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-inspect-blocking")?;
    /// let lock = client.lock("nightly");
    /// assert_eq!(lock.inspect_blocking()?, None);
    /// let hold = lock.acquire_blocking()?;
    /// assert_eq!(lock.inspect_blocking()?.expect("it is held").owner, hold.owner());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Lock::inspect`].
    pub fn inspect_blocking(&self) -> Result<Option<LockInfo>, Error> {
        self.inspect().blocking()
    }
}
