//! Several locks that are acquired together: all of them, or none.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Lock;
use crate::api::client::Inner;
use crate::api::hold::multi::MultiHold;
use crate::api::setters::setters;
use crate::error::{Error, RunError};
use crate::io::call::Call;
use crate::name::{Keys, Kind, LockKind, slot};
use crate::options::{LockOverrides, Wait};
use crate::protocol::SEVERAL_SLOTS;
use crate::session::Session;

/// The most names that are acquired together.
const MOST_NAMES: usize = 16;

/// Several locks, as names and options, that a caller acquires all at once, or none of them: made by
/// [`Client::multi_lock`](crate::Client::multi_lock).
///
/// It is cheap, and made without I/O. It may be shared and cloned. Options hold for each lock.
#[derive(Clone)]
pub struct MultiLock {
    lock: Lock,
}

impl MultiLock {
    pub(in crate::api) fn new(client: Arc<Inner>, names: Vec<String>) -> Self {
        let lock = Lock::new(client, names.join(", "), None);
        let lock = lock.change(|spec| (spec.kind, spec.used_as, spec.names) = (Kind::Several, LockKind::MultiLock, names));
        Self { lock }
    }

    /// What acquires the hold that [`MultiHold`] is: for a binding, whose handles are those of one lock.
    #[doc(hidden)]
    #[must_use]
    pub fn into_lock(self) -> Lock {
        self.lock
    }

    fn with_lock(self, set: impl FnOnce(Lock) -> Lock) -> Self {
        Self { lock: set(self.lock) }
    }

    /// The names, in the order in which they were given.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-multi-lock-names")?;
    /// assert_eq!(client.multi_lock(["a", "b"]).names(), ["a", "b"]);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.lock.spec.names
    }

    /// Acquires all locks, waiting at most [`MultiLock::wait`] while any of them is busy.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-multi-lock-acquire").unwrap();
    /// let hold = client.multi_lock(["account:1", "account:2"]).acquire().await?;
    /// assert!(client.lock("account:2").try_acquire().await?.is_none());
    /// hold.release().await?;
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    ///
    /// # Errors
    /// As [`Lock::acquire`]; `ACQUIRE_TIMEOUT` and `KEY_CONFLICT` name the lock that was in the way.
    pub fn acquire(&self) -> Call<MultiHold> {
        let undo = |held: MultiHold| held.hold().undo();
        self.lock.begin(false, None, undo, |acquired| acquired?.held().map(MultiHold::new))
    }

    /// Tries once to acquire all locks: `None` if any of them is busy.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-multi-lock-try-acquire").unwrap();
    /// let accounts = client.multi_lock(["account:1", "account:2"]);
    /// let hold = accounts.try_acquire().await?.expect("both are free");
    /// assert!(accounts.try_acquire().await?.is_none());
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    ///
    /// # Errors
    /// As [`MultiLock::acquire`], without `ACQUIRE_TIMEOUT`.
    pub fn try_acquire(&self) -> Call<Option<MultiHold>> {
        let undo = |held: Option<MultiHold>| held.iter().for_each(|held| held.hold().undo());
        self.lock.begin(true, None, undo, |acquired| acquired?.tried().map(|held| held.map(MultiHold::new)))
    }

    /// [`MultiLock::acquire`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-multi-lock-acquire-blocking")?;
    /// let hold = client.multi_lock(["account:1", "account:2"]).acquire_blocking()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`MultiLock::acquire`].
    pub fn acquire_blocking(&self) -> Result<MultiHold, Error> {
        self.acquire().blocking()
    }

    /// [`MultiLock::try_acquire`], blocking this thread.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-multi-lock-try-acquire-blocking")?;
    /// assert!(client.multi_lock(["account:1", "account:2"]).try_acquire_blocking()?.is_some());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`MultiLock::try_acquire`].
    pub fn try_acquire_blocking(&self) -> Result<Option<MultiHold>, Error> {
        self.try_acquire().blocking()
    }

    /// Acquires all locks, runs `body`, and releases them on every way out. Gives the result of the body.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-multi-lock-with").unwrap();
    /// # async fn transfer() -> Result<u64, std::io::Error> { Ok(7) }
    /// let accounts = client.multi_lock(["account:1", "account:2"]);
    /// let receipt = accounts.with(async |_hold| transfer().await).await?;
    /// # assert_eq!(receipt, 7);
    /// # Ok::<(), locktender::RunError<std::io::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// As [`Lock::with`].
    ///
    /// # Errors
    /// As [`Lock::with`].
    pub async fn with<T, E>(&self, body: impl AsyncFnOnce(&MultiHold) -> Result<T, E>) -> Result<T, RunError<E>> {
        let held = self.acquire().await?;
        self.lock.enter(held.hold());
        RunError::behind(body(&held).await, held.hold().leave().await)
    }

    /// [`MultiLock::with`], blocking this thread. The locks are also released if the body panics.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-multi-lock-with-blocking")?;
    /// # fn transfer() -> Result<u64, std::io::Error> { Ok(7) }
    /// let receipt = client.multi_lock(["account:1", "account:2"]).with_blocking(|_hold| transfer())?;
    /// # assert_eq!(receipt, 7);
    /// # Ok::<(), locktender::RunError<std::io::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Lock::with`].
    pub fn with_blocking<T, E>(&self, body: impl FnOnce(&MultiHold) -> Result<T, E>) -> Result<T, RunError<E>> {
        let held = self.acquire_blocking()?;
        self.lock.enter(held.hold());
        RunError::behind(body(&held), held.hold().leave().blocking())
    }
}

setters! { MultiLock, with_lock:
    /// The time to live of each key: [`Lock::ttl`].
    ttl(ttl: Duration) |lock| lock.ttl(ttl);

    /// How long an acquire waits while any of the locks is busy: [`Lock::wait`].
    wait(wait: impl Into<Wait>) |lock| lock.wait(wait);

    /// Whether the hold is renewed in the background: [`Lock::renew`].
    renew(renew: bool) |lock| lock.renew(renew);

    /// The longest a hold lasts before it is lost: [`Lock::max_hold`].
    max_hold(span: impl Into<Option<Duration>>) |lock| lock.max_hold(span);

    /// How long each key outlives a hold that was lost: [`Lock::grace`].
    grace(grace: Duration) |lock| lock.grace(grace);

    /// The category under which metrics and events count each lock: [`Lock::category`].
    category(category: impl Into<Arc<str>>) |lock| lock.category(category);

    /// The caller's task, as a number: [`Lock::caller`].
    #[doc(hidden)]
    caller(task: u64) |lock| lock.caller(task);

    /// Several options at once; an option that is `None` keeps its value.
    #[doc(hidden)]
    settings(settings: LockOverrides) |lock| lock.settings(settings);
}

impl fmt::Debug for MultiLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiLock").field("names", &self.names()).field("settings", &self.lock.spec.settings).finish()
    }
}

/// The keys of several locks, each made by `of_one`.
///
/// # Errors
/// `INVALID_ARGUMENT` for a name that can't be a lock's, for too few or too many names, and for one that is there twice.
pub(super) fn keys(names: &[String], of_one: impl Fn(&str) -> Result<Keys, Error>) -> Result<Keys, Error> {
    let refuse = |why: String| Err(Error::invalid("names", names, why));
    if names.len() > MOST_NAMES {
        return refuse(format!("at most {MOST_NAMES} locks are acquired together, these are {}", names.len()));
    }
    if let Some((at, twice)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(*name)) {
        return refuse(format!("{twice:?} is there twice, as number {}", at + 1));
    }
    let parts = names.iter().map(|name| of_one(name)).collect::<Result<_, _>>()?;
    Keys::of_several(parts).map_or_else(|| refuse("at least one name is needed".to_owned()), Ok)
}

/// The error of locks that can't be acquired together, because they belong to several nodes of a cluster.
pub(super) fn in_several_slots(keys: &Keys, session: &Session) -> Option<Error> {
    let [first, others @ ..] = keys.parts() else { return None };
    let slot_of = |keys: &Keys| slot::slot_of(keys.lock());
    if session.server(0).notifies_by_lock() && others.iter().any(|other| slot_of(other) != slot_of(first)) {
        let names: Vec<_> = keys.parts().iter().map(|part| part.name()).collect();
        return Some(Error::invalid("names", names, SEVERAL_SLOTS.to_owned()));
    }
    None
}
