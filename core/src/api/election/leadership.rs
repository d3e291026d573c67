//! Leadership: one term of a leader.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::api::hold::Hold;
use crate::error::Error;
use crate::io::call::Call;
use crate::protocol::Release;

/// One term of a leader: a [`Hold`] with a number that only rises.
///
/// Dropping it resigns, in the background.
pub struct Leadership {
    held: Hold,
    stopping: Arc<AtomicBool>,
}

impl Leadership {
    pub(super) fn new(held: Hold, stopping: Arc<AtomicBool>) -> Self {
        Self { held, stopping }
    }

    /// The term: the [`fence`](Hold::fence), larger than every earlier leader's. Send it with all that the leader does, and let the
    /// receiver refuse a smaller one: a leader may be late.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-leadership-term")?;
    /// let election = client.election("scheduler");
    /// let first = election.campaign_blocking()?;
    /// first.resign_blocking()?;
    /// assert!(election.campaign_blocking()?.term() > first.term());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn term(&self) -> u64 {
        self.held.fence()
    }

    /// Ends the term, and notifies the next candidate: [`Hold::release`].
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use locktender::Outcome;
    /// # let client = locktender::Client::open("memory://docs-leadership-resign").unwrap();
    /// let leadership = client.election("scheduler").campaign().await?;
    /// assert_eq!(leadership.resign().await?.outcome, Outcome::Released);
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// As [`Hold::release`].
    ///
    /// # Errors
    /// As [`Hold::release`].
    pub fn resign(&self) -> Call<Release> {
        self.held.release()
    }

    /// [`Leadership::resign`], blocking this thread.
    ///
    /// # Errors
    /// As [`Leadership::resign`].
    pub fn resign_blocking(&self) -> Result<Release, Error> {
        self.resign().blocking()
    }

    /// Whether [`Election::stop`](crate::Election::stop) was called, so that the work of [`Election::lead`](crate::Election::lead) or
    /// its blocking twin should return soon. The term continues until then.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-leadership-is-stopping")?;
    /// let election = client.election("scheduler");
    /// election.lead_blocking(|leadership| {
    ///     while leadership.is_valid() && !leadership.is_stopping() {
    ///         election.stop(); // from any thread
    ///     }
    ///     Ok::<_, String>(())
    /// })?;
    /// # Ok::<(), locktender::RunError<String>>(())
    /// ```
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

impl Deref for Leadership {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        &self.held
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership").field("held", &self.held).field("stopping", &self.is_stopping()).finish()
    }
}
