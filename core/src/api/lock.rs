//! Lock: the recipe for holds.

mod blocking;
mod checks;
mod force;
mod host;
pub(super) mod multi;
mod options;
mod refused;

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

pub use self::force::may_be_no_lock;
use crate::api::client::Inner;
use crate::api::hold::{Acquired, Hold};
use crate::error::{Error, RunError};
use crate::io::call::{Call, Undo};
use crate::io::canceller::{Cancellable, Canceller};
use crate::name::{Keys, Kind, Label, LockKind};
use crate::op::job::Terms;
use crate::op::{Adoption, Op, Verb};
use crate::options::{LockOptions, LockOverrides, Wait};
use crate::protocol::{LockInfo, Recipe, inspect};
use crate::session::Session;
use crate::session::actor::LockActor;
use crate::session::ask_all::{AskAll, AssessLock};

/// A lock, as a name and options: what a caller acquires, inspects, and acquires again.
///
/// It is cheap, and made without I/O. It may be shared and cloned; each acquire makes a [`Hold`] of its own, also at the same time.
/// A mistake in the name or the options is an error of every operation, and of [`Lock::validate`], which does no I/O.
#[derive(Clone)]
pub struct Lock {
    spec: Arc<Spec>,
}

/// What the clones of a lock share.
#[derive(Clone)]
struct Spec {
    client: Arc<Inner>,
    name: String,
    settings: LockOverrides,
    adopt: Option<Adoption>,
    kind: Kind,
    /// The names that are acquired together, of [`Kind::Several`].
    names: Vec<String>,
    used_as: LockKind,
    contexts: Vec<u64>,
    /// Whether the caller's body that holds the lock doesn't run, so that the caller may wait for its end.
    is_suspended: bool,
    prepared: OnceLock<Result<Prepared, Error>>,
    /// The same while no servers are named: then there may be several, which allows less.
    early: OnceLock<Result<Prepared, Error>>,
}

#[derive(Clone)]
struct Prepared {
    keys: Arc<Keys>,
    options: LockOptions,
}

impl Lock {
    pub(crate) fn new(client: Arc<Inner>, name: String, adopt: Option<Adoption>) -> Self {
        let spec = Spec {
            client,
            name,
            settings: LockOverrides::default(),
            adopt,
            kind: Kind::Exclusive,
            names: Vec::new(),
            used_as: LockKind::Lock,
            contexts: Vec::new(),
            is_suspended: false,
            prepared: OnceLock::new(),
            early: OnceLock::new(),
        };
        Self { spec: Arc::new(spec) }
    }

    fn change(mut self, change: impl FnOnce(&mut Spec)) -> Self {
        change(Arc::make_mut(&mut self.spec));
        self
    }

    fn set(self, set: impl FnOnce(&mut LockOverrides)) -> Self {
        self.change(|spec| {
            set(&mut spec.settings);
            (spec.prepared, spec.early) = (OnceLock::new(), OnceLock::new());
        })
    }

    /// The name, without the client's prefix.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-lock-name")?;
    /// assert_eq!(client.lock("nightly").name(), "nightly");
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The options, checked, with the client's defaults filled in. No I/O.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-validate")?;
    /// let options = client.lock("nightly").ttl(Duration::from_secs(3)).validate()?.clone();
    /// assert_eq!((options.ttl, options.renew), (Duration::from_secs(3), true));
    /// assert_eq!(client.lock("").validate().unwrap_err().argument(), Some("name"));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, whose [`argument`](Error::argument) is the option that is wrong, or `name`.
    #[doc(hidden)]
    pub fn validate(&self) -> Result<&LockOptions, Error> {
        self.prepared().map(|prepared| &prepared.options)
    }

    /// The lock of a job.
    pub(super) fn of_job(self) -> Self {
        self.change(|spec| (spec.kind, spec.used_as) = (Kind::Job, LockKind::Job))
    }

    /// The lock of readers, or one with permits.
    pub(crate) fn of_kind(self, kind: Kind) -> Self {
        self.change(|spec| (spec.kind, spec.used_as) = (kind, LockKind::of(kind)))
    }

    /// The lock of something else, which metrics and events count apart.
    pub(super) fn used_as(self, used_as: LockKind) -> Self {
        self.change(|spec| spec.used_as = used_as)
    }

    fn prepared(&self) -> Result<&Prepared, Error> {
        let prepare = || {
            let base = &self.spec.client.options;
            let mut options = self.spec.settings.over(&base.lock)?;
            let quorum_config = self.spec.client.quorum_config();
            self.spec.check(&mut options, quorum_config)?;
            let is_of_quorum = quorum_config.is_some_and(|config| config.servers > 1);
            let kind = if is_of_quorum { Kind::Quorum } else { self.spec.kind };
            let keys_of = |kind, name: &str| -> Result<Keys, Error> {
                let keys = Keys::new(kind, &base.prefix, name, quorum_config.is_none())?;
                let category = options.category.clone().unwrap_or_else(|| Arc::clone(&keys.label().category));
                Ok(keys.labelled(Label { kind: self.spec.used_as, category }))
            };
            let keys = match kind {
                Kind::Several => multi::keys(&self.spec.names, |name| keys_of(Kind::Exclusive, name))?,
                _ => keys_of(kind, &self.spec.name)?,
            };
            Ok(Prepared { keys: Arc::new(keys), options })
        };
        let prepared = if self.spec.client.has_servers() { &self.spec.prepared } else { &self.spec.early };
        prepared.get_or_init(prepare).as_ref().map_err(Clone::clone)
    }

    /// The lock whose acquires wait without end, unless an option of its own says otherwise: the client's default doesn't count.
    pub(super) fn waits_forever_by_default(self) -> Self {
        if self.spec.settings.wait.is_some() { self } else { self.wait(Wait::Forever) }
    }

    pub(super) fn keys(&self) -> Result<(Arc<Session>, Arc<Keys>), Error> {
        let (session, prepared) = self.session()?;
        Ok((session, Arc::clone(&prepared.keys)))
    }

    fn session(&self) -> Result<(Arc<Session>, &Prepared), Error> {
        self.prepared()?;
        let session = self.spec.client.session(Some(&self.spec.name))?;
        // Only now the servers are known for sure.
        Ok((session, self.prepared()?))
    }

    fn recipe(&self, tries_once: bool, job: Option<Terms>) -> Result<(Arc<Session>, Arc<Recipe>), Error> {
        let (session, prepared) = self.session()?;
        let mut options = prepared.options.clone();
        if tries_once {
            options.wait = Wait::For(Duration::ZERO);
        }
        let keys = &prepared.keys;
        let adopt = match keys.kind() {
            // Behind a writer that waits, a reader that reads already would wait for itself.
            Kind::Read if self.spec.adopt.is_none() => {
                let beside = session.bodies.reader(&self.spec.contexts, keys.lock());
                beside.map(|owner| Adoption { owner, or_acquire: true, beside: true })
            }
            _ => self.spec.adopt.clone(),
        };
        let recipe = Recipe {
            keys: Arc::clone(keys),
            servers: Arc::clone(&session.addresses),
            quorum_config: session.quorum_config,
            options,
            ask_all_first: session.must_ask_all(),
            busy_is_none: tries_once,
            adopt,
            job,
            history: session.options.history,
            signature: Arc::clone(&session.signature),
            response_timeout: session.response_timeout(),
            unavailable_after: session.options.unavailable_after,
        };
        if let Some(several) = multi::in_several_slots(keys, &session) {
            return Err(several);
        }
        let may_be_itself = recipe.waits_in_queues() && !self.spec.is_suspended;
        let itself = |keys: &Keys| {
            let body = session.bodies.waited_for(&self.spec.contexts, keys.lock(), recipe.keys.kind())?;
            Some(Error::deadlock(keys.name(), body.place.as_deref()))
        };
        if let Some(deadlock) = recipe.keys.each().filter(|_| may_be_itself).find_map(itself) {
            return Err(deadlock);
        }
        Ok((session, Arc::new(recipe)))
    }

    /// Acquires the lock, waiting at most [`Lock::wait`] while it is busy.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use locktender::{Client, Code};
    /// # use std::time::Duration;
    /// # let client = Client::open("memory://docs-acquire").unwrap();
    /// let hold = client.lock("nightly").acquire().await?;
    /// let second = client.lock("nightly").wait(Duration::from_millis(20)).acquire().await;
    /// assert_eq!(second.unwrap_err().code(), Code::AcquireTimeout);
    /// hold.release().await?;
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call gives the attempt up: what it may have written on a server is deleted in the background.
    ///
    /// # Errors
    /// * `ACQUIRE_TIMEOUT`: the lock was busy for all of [`Lock::wait`]; see [`Error::holder`].
    /// * `UNAVAILABLE`: too few servers could be reached for the client's
    ///   [`unavailable_after`](crate::ClientBuilder::unavailable_after).
    /// * `DENIED`: the servers refuse the credentials, or the rights that a lock needs.
    /// * `KEY_CONFLICT`: a key of the lock holds something that no lock writes.
    /// * `INVALID_ARGUMENT`: the name or an option is wrong.
    /// * `DEADLOCK`: the caller would wait for itself ([`Lock::caller`]).
    /// * `CLOSED`: the client is closed.
    pub fn acquire(&self) -> Call<Hold> {
        self.begin(false, None, |held: Hold| held.undo(), |acquired| acquired?.held())
    }

    /// Tries once to acquire the lock: `None` if it is busy. [`Lock::wait`] doesn't count here.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-try-acquire").unwrap();
    /// let hold = client.lock("nightly").try_acquire().await?.expect("nobody has it");
    /// assert!(client.lock("nightly").try_acquire().await?.is_none());
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    ///
    /// # Errors
    /// As [`Lock::acquire`], without `ACQUIRE_TIMEOUT`.
    pub fn try_acquire(&self) -> Call<Option<Hold>> {
        self.begin(true, None, |held: Option<Hold>| held.iter().for_each(Hold::undo), |acquired| acquired?.tried())
    }

    /// Begins to acquire the lock, or an attempt of the job whose lock this is. `assess` makes the result of how that ended, which
    /// `undo` releases if the caller is gone by then.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        tries_once: bool,
        job: Option<Terms>,
        undo: Undo<T>,
        assess: impl FnOnce(Result<Acquired, Error>) -> Result<T, Error> + Send + 'static,
    ) -> Call<T> {
        let (lock, context) = (self.clone(), self.spec.contexts.last().copied());
        Call::undoing(undo, move |responder| {
            let recipe = lock.recipe(tries_once, job).map_err(|error| lock.refused(error));
            let ((session, recipe), responder) = responder.unless_failed(recipe)?;
            let io = responder.io().clone();
            let acquirer = Box::new(|answered: Result<_, Error>| responder.respond(assess(answered.and_then(Acquired::of))));
            let actor = LockActor::begin(session, recipe, context, acquirer, &io);
            let operation: Weak<dyn Cancellable> = Arc::downgrade(&actor) as _;
            Some(Canceller::Of(operation))
        })
    }

    /// Acquires the lock, runs `body`, and releases the lock on every way out. Gives the result of the body.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-with").unwrap();
    /// # async fn charge(_fence: u64) -> Result<u64, std::io::Error> { Ok(7) }
    /// let receipt = client.lock("orders:42").with(async |hold| charge(hold.fence()).await).await?;
    /// # assert_eq!(receipt, 7);
    /// # Ok::<(), locktender::RunError<std::io::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the future drops the body and releases the lock in the background.
    ///
    /// # Errors
    /// [`RunError::Failed`] with the error of the body. [`RunError::Lock`] with the error of [`Lock::acquire`] if the body didn't run, and
    /// with `LOCK_LOST` if it succeeded, but the lock was lost before it ended.
    pub async fn with<T, E>(&self, body: impl AsyncFnOnce(&Hold) -> Result<T, E>) -> Result<T, RunError<E>> {
        let held = self.acquire().await?;
        self.enter(&held);
        RunError::behind(body(&held).await, held.leave().await)
    }

    /// Inspects the lock: its holder, how long the hold remains, and the first waiters. `None` if it is free. Changes nothing.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-inspect").unwrap();
    /// let hold = client.lock("nightly").acquire().await?;
    /// let info = client.lock("nightly").inspect().await?.expect("it is held");
    /// assert_eq!((info.owner.as_str(), info.waiters), (hold.owner(), 0));
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call changes nothing.
    ///
    /// # Errors
    /// `UNAVAILABLE`, `DENIED`, `KEY_CONFLICT`, `INVALID_ARGUMENT`, `CLOSED`.
    pub fn inspect(&self) -> Call<Option<LockInfo>> {
        self.ask(Verb::Inspect, inspect)
    }

    /// Asks every server about the lock. `assess` gives the result of the answers so far, if there is one.
    pub(super) fn ask<T: Send + 'static>(&self, verb: Verb, assess: AssessLock<T>) -> Call<T> {
        let lock = self.clone();
        Call::new(move |responder| {
            let ((session, keys), responder) = responder.unless_failed(lock.keys())?;
            let (name, op) = (lock.spec.name.clone(), Op::on_nobodys_behalf(keys, verb));
            AskAll::about_lock(&session, name, op, assess, responder);
            None
        })
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("name", &self.spec.name).field("settings", &self.spec.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "lock_tests.rs"]
mod tests;
