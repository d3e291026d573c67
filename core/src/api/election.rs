//! Election: one leader of any number of candidates, and another one when it resigns or dies.

mod blocking;
mod leadership;
mod leading;
mod observer;
mod options;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

pub use self::leadership::Leadership;
use self::leading::Candidate;
pub use self::leading::Leading;
pub use self::observer::Observer;
use crate::api::lock::Lock;
use crate::error::{Error, RunError};
use crate::io::call::Call;
use crate::name::LockKind;
use crate::options::LockOptions;
use crate::process::PerProcess;

/// An election, as a name and options: any number of candidates, of which one leads.
///
/// It is the lock of the same name, with verbs of its own. A leader is renewed in the background. If it resigns, the next candidate
/// leads at once; if it dies, the next one leads when its ttl has passed. Two leaders are never valid at the same time, and each term
/// is larger than all earlier ones; docs/guarantees.md says under which assumptions. It works with one server and with a quorum.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # use locktender::RunError;
/// # let client = locktender::Client::open("memory://docs-election").unwrap();
/// let election = client.election("scheduler");
/// election.lead(async |leadership| {
///     println!("leads in term {}", leadership.term()); // dropped at its next await if the term is lost
///     election.stop(); // else it would campaign again
///     Ok::<_, std::io::Error>(())
/// }).await?;
/// # Ok::<(), RunError<std::io::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Election {
    lock: Lock,
    /// A forked child begins by itself: its parent leads on.
    candidate: Arc<PerProcess<Candidate>>,
}

impl Election {
    pub(super) fn new(lock: Lock) -> Self {
        Self { lock: lock.used_as(LockKind::Election), candidate: Arc::new(PerProcess::new()) }
    }

    fn candidate(&self) -> Arc<Candidate> {
        self.candidate.get_or_make(Candidate::default)
    }

    /// The name, without the client's prefix.
    #[must_use]
    pub fn name(&self) -> &str {
        self.lock.name()
    }

    /// The options of the election's lock, checked, with the client's defaults filled in. No I/O.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-election-validate")?;
    /// assert!(client.election("scheduler").validate()?.renew);
    /// assert_eq!(client.election("scheduler").ttl(Duration::ZERO).validate().unwrap_err().argument(), Some("ttl"));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, whose [`argument`](Error::argument) is the option that is wrong, or `name`.
    #[doc(hidden)]
    pub fn validate(&self) -> Result<&LockOptions, Error> {
        self.lock.validate()
    }

    /// Campaigns: waits at most [`wait`](Election::wait) while another one leads, and then leads.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-campaign").unwrap();
    /// let leadership = client.election("scheduler").campaign().await?;
    /// println!("leads in term {}", leadership.term());
    /// leadership.resign().await?;
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # Errors
    /// As [`Lock::acquire`](crate::Lock::acquire). `ACQUIRE_TIMEOUT`: another one led for all of [`wait`](Election::wait).
    pub fn campaign(&self) -> Call<Leadership> {
        let candidate = self.candidate();
        let undo = |term: Leadership| term.undo();
        self.lock.begin(false, None, undo, move |acquired| Ok(candidate.leadership(acquired?.held()?)))
    }

    /// Tries once to lead: `None` if another one leads.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-try-campaign").unwrap();
    /// let leadership = client.election("scheduler").try_campaign().await?.expect("nobody leads");
    /// assert!(client.election("scheduler").try_campaign().await?.is_none());
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # Errors
    /// As [`Lock::try_acquire`](crate::Lock::try_acquire).
    pub fn try_campaign(&self) -> Call<Option<Leadership>> {
        let candidate = self.candidate();
        let undo = |term: Option<Leadership>| term.iter().for_each(|term| term.undo());
        self.lock.begin(true, None, undo, move |acquired| Ok(acquired?.tried()?.map(|held| candidate.leadership(held))))
    }

    /// Leads term after term: campaigns, runs `work` as the leader, resigns when it has ended, and campaigns again.
    ///
    /// * A campaign waits as long as it takes, unless the election has a [`wait`](Election::wait) of its own. It continues while the
    ///   servers can't be reached.
    /// * `work` returns a `Result`. `Ok` resigns, and the next campaign begins, as it does if the term is lost, which drops `work`. `Err`
    ///   ends this call.
    /// * It resigns only when `work` has ended, and begins no `work` before that.
    /// * [`Election::stop`] ends it, and so does dropping its future.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use locktender::RunError;
    /// # let client = locktender::Client::open("memory://docs-lead").unwrap();
    /// let ended = client.election("scheduler").lead(async |_| Err("the disk is full")).await;
    /// assert!(matches!(ended, Err(RunError::Failed("the disk is full"))));
    /// # });
    /// ```
    ///
    /// In a task that is spawned, write `async move |leadership|` and move clones into it. Work that borrows from outside makes a future
    /// that isn't `Send`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use std::sync::Arc;
    /// # use std::sync::atomic::{AtomicU64, Ordering};
    /// # use locktender::RunError;
    /// # let client = locktender::Client::open("memory://docs-lead-spawned").unwrap();
    /// let election = client.election("scheduler");
    /// let rounds = Arc::new(AtomicU64::new(0));
    /// let leading = tokio::spawn({
    ///     let (election, rounds) = (election.clone(), Arc::clone(&rounds));
    ///     async move {
    ///         election.lead(async move |leadership| {
    ///             while !leadership.is_stopping() {
    ///                 rounds.fetch_add(1, Ordering::Relaxed);
    ///                 tokio::task::yield_now().await; // dropped here if the term is lost: clean up in `Drop`
    ///             }
    ///             Ok::<_, std::io::Error>(())
    ///         }).await
    ///     }
    /// });
    /// # while rounds.load(Ordering::Relaxed) == 0 { tokio::task::yield_now().await; }
    /// election.stop();
    /// leading.await.unwrap()?;
    /// # Ok::<(), RunError<std::io::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the future drops `work`, and resigns in the background. If the term is lost, `work` is dropped at its next `await`: an arm
    /// on [`lost`](crate::Hold::lost) in it may not run.
    ///
    /// # Errors
    /// * [`RunError::Failed`]: with the error of `work`.
    /// * [`RunError::Lock`]: as [`Election::campaign`], without `UNAVAILABLE`. `INVALID_ARGUMENT` while another call leads by this
    ///   election or a clone of it.
    pub async fn lead<E>(&self, mut work: impl AsyncFnMut(&Leadership) -> Result<(), E>) -> Result<(), RunError<E>> {
        let leading = self.leading()?;
        while let Some(leadership) = leading.next().await? {
            self.lock.enter(&leadership);
            let result = unless_lost(&leadership, work(&leadership)).await;
            // Whether the term was lost doesn't matter any more: the next one is another.
            let _ = leadership.leave().await;
            if let Some(Err(error)) = result {
                return Err(RunError::Failed(error));
            }
        }
        Ok(())
    }

    /// Ends [`Election::lead`] and its blocking twin, from any thread, and for good: a call that begins later ends at once.
    ///
    /// A campaign is given up. Work that runs continues; [`Leadership::is_stopping`] says that it should return. The call ends after it.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-election-stop")?;
    /// # let leader = client.election("scheduler").campaign_blocking()?;
    /// let election = client.election("scheduler");
    /// let thread = std::thread::spawn({
    ///     let election = election.clone();
    ///     move || election.lead_blocking(|_| Ok::<_, String>(()))
    /// });
    /// election.stop();
    /// thread.join().unwrap().unwrap();
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn stop(&self) {
        self.candidate().stop();
    }

    /// Observes who leads: the leader now, and then each change. No I/O before [`Observer::next`].
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-election-observe")?;
    /// let leadership = client.election("scheduler").campaign_blocking()?;
    /// let mut observer = client.election("scheduler").observe(); // in any process
    /// let leader = observer.next_blocking()?.leader.expect("there is a leader");
    /// assert_eq!((leader.term, leader.owner.as_str()), (leadership.term(), leadership.owner()));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn observe(&self) -> Observer {
        Observer::new(self.lock.clone())
    }

    /// Begins to lead, for a binding that calls the work itself.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, as [`Election::lead`].
    #[doc(hidden)]
    pub fn leading(&self) -> Result<Leading, Error> {
        Leading::begin(self.lock.clone().waits_forever_by_default(), self.candidate())
    }
}

/// The result of the work, or `None` if the term was lost before.
async fn unless_lost<T>(leadership: &Leadership, work: impl Future<Output = T>) -> Option<T> {
    let (mut work, mut lost) = (pin!(work), pin!(leadership.lost()));
    poll_fn(|context| {
        // A loss comes first: work that is lost must not go one step further.
        if lost.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        work.as_mut().poll(context).map(Some)
    })
    .await
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Election").field("name", &self.name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "election/tests.rs"]
mod tests;
