//! Blocking twins: the verbs of a hold for code without an executor.

use std::time::{Duration, Instant};

use super::Hold;
use crate::error::{Error, Loss};
use crate::protocol::Release;

impl Hold {
    /// [`Hold::release`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-release-blocking")?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// let release = hold.release_blocking()?;
    /// assert_eq!(release.outcome.as_str(), "released");
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Hold::release`].
    pub fn release_blocking(&self) -> Result<Release, Error> {
        self.release().blocking()
    }

    /// [`Hold::extend`], blocking this thread.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-extend-blocking")?;
    /// let hold = client.lock("report").acquire_blocking()?;
    /// hold.extend_blocking(Duration::from_secs(60))?; // before a step that takes long
    /// assert!(hold.remaining() > Duration::from_secs(50));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Hold::extend`].
    pub fn extend_blocking(&self, ttl: Duration) -> Result<(), Error> {
        self.extend(ttl).blocking()
    }

    /// [`Hold::renew_now`], blocking this thread.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-renew-now-blocking")?;
    /// let hold = client.lock("report").ttl(Duration::from_secs(30)).renew(false).acquire_blocking()?;
    /// hold.renew_now_blocking()?; // 30 s from now
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Hold::extend`].
    pub fn renew_now_blocking(&self) -> Result<(), Error> {
        self.renew_now().blocking()
    }

    /// [`Hold::extend_by`], blocking this thread.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-extend-by-blocking")?;
    /// let hold = client.lock("report").acquire_blocking()?;
    /// hold.extend_by_blocking(Duration::from_secs(60))?;
    /// assert!(hold.remaining() > Duration::from_secs(60));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Hold::extend`].
    pub fn extend_by_blocking(&self, more: Duration) -> Result<(), Error> {
        self.extend_by(more).blocking()
    }

    /// Waits at most `timeout` for the loss of the lock, blocking this thread: the loss, or `None` if it is not lost, or was
    /// released or handed over.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-lost-blocking")?;
    /// let hold = client.lock("report").acquire_blocking()?;
    /// assert_eq!(hold.lost_blocking(Duration::from_millis(10))?, None);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Hold::ended`].
    pub fn lost_blocking(&self, timeout: Duration) -> Result<Option<Loss>, Error> {
        let (mut ended, began) = (self.ended(), Instant::now());
        loop {
            let left = timeout.saturating_sub(began.elapsed());
            // A signal ends a wait early.
            match ended.wait_for(left.min(Duration::from_secs(3600))) {
                Some(result) => return result,
                None if left.is_zero() => return Ok(None),
                None => (),
            }
        }
    }
}
