//! Blocking twins: the verbs of an election for code without an executor.

use super::{Election, Leadership};
use crate::error::{Error, RunError};

impl Election {
    /// [`Election::campaign`], blocking this thread.
    ///
    /// # Errors
    /// As [`Election::campaign`].
    pub fn campaign_blocking(&self) -> Result<Leadership, Error> {
        self.campaign().blocking()
    }

    /// [`Election::try_campaign`], blocking this thread.
    ///
    /// # Errors
    /// As [`Election::campaign`].
    pub fn try_campaign_blocking(&self) -> Result<Option<Leadership>, Error> {
        self.try_campaign().blocking()
    }

    /// [`Election::lead`], blocking this thread, until [`Election::stop`].
    ///
    /// A loss can't stop `work` here: it checks for one with [`Hold::check`](crate::Hold::check) before each step, and returns. An
    /// `Err` of work whose term was lost ends the term, and not the call.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-lead-blocking")?;
    /// let election = client.election("scheduler");
    /// let mut steps = 0;
    /// election.lead_blocking(|leadership| {
    ///     while !leadership.is_stopping() {
    ///         leadership.check()?;
    ///         steps += 1; // a step of the work, with leadership.term()
    ///         if steps == 3 {
    ///             election.stop(); // from any thread
    ///         }
    ///     }
    ///     Ok::<_, locktender::Error>(())
    /// })?;
    /// assert_eq!(steps, 3);
    /// # Ok::<(), locktender::RunError<locktender::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Election::lead`].
    pub fn lead_blocking<E>(&self, mut work: impl FnMut(&Leadership) -> Result<(), E>) -> Result<(), RunError<E>> {
        let leading = self.leading()?;
        while let Some(leadership) = leading.next().blocking()? {
            self.lock.enter(&leadership);
            let result = work(&leadership);
            let left = leadership.leave().blocking();
            if let (Err(error), Ok(())) = (result, left) {
                return Err(RunError::Failed(error));
            }
        }
        Ok(())
    }
}
