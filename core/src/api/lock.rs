//! A lock: the recipe for holds.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::api::call::{Call, Responder};
use crate::api::client::Client;
use crate::api::held::Held;
use crate::clock::millis;
use crate::error::Error;
use crate::name::{Keys, Kind};
use crate::op::{Adoption, Op};
use crate::options::{LockOptions, LockOverrides, Wait, wire_millis};
use crate::protocol::{Input, LockInfo, Recipe, inspect};
use crate::session::Session;
use crate::session::actor::LockActor;
use crate::session::ask_all::AskAll;
use crate::session::caller::Acquirer;
use crate::wording::{Part, Text};

/// A name and options. Cheap, does no I/O, may be shared and used again, also at the same time.
///
/// What is wrong with the name or the options is said by [`Lock::check`] and by every operation.
#[derive(Clone)]
pub struct Lock {
    client: Client,
    name: String,
    settings: LockOverrides,
    adopt: Option<Adoption>,
    contexts: Vec<u64>,
    prepared: OnceLock<Result<Prepared, Error>>,
    /// The same while nobody has named the servers: then there may be several, which allows less.
    early: OnceLock<Result<Prepared, Error>>,
}

#[derive(Clone)]
struct Prepared {
    keys: Arc<Keys>,
    options: LockOptions,
}

impl Lock {
    pub(crate) fn new(client: Client, name: String, adopt: Option<Adoption>) -> Self {
        Self {
            client,
            name,
            settings: LockOverrides::default(),
            adopt,
            contexts: Vec::new(),
            prepared: OnceLock::new(),
            early: OnceLock::new(),
        }
    }

    fn set(mut self, set: impl FnOnce(&mut LockOverrides)) -> Self {
        set(&mut self.settings);
        (self.prepared, self.early) = (OnceLock::new(), OnceLock::new());
        self
    }

    /// Of a lock that [`Client::adoption`](crate::Client::adoption) gave: whether to acquire it like any other if what was handed over
    /// is gone. Off by default: a text that was used before, or came too late, is `LOCK_LOST`. With it the acquire waits, and what the
    /// old hold protected may be half done. For any other lock it says nothing new.
    #[must_use]
    pub fn or_acquire(self, or_acquire: bool) -> Self {
        let mut lock = self.set(|_| ());
        if let Some(adopt) = &mut lock.adopt {
            adopt.or_acquire = or_acquire;
        }
        lock
    }

    /// How long the key lives without a renewal.
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        self.set(|settings| settings.ttl = Some(ttl))
    }

    /// How long an acquire waits: a duration, or [`Wait::Forever`].
    #[must_use]
    pub fn wait(self, wait: impl Into<Wait>) -> Self {
        self.set(|settings| settings.wait = Some(wait.into()))
    }

    /// Whether holds are renewed in the background.
    #[must_use]
    pub fn renew(self, renew: bool) -> Self {
        self.set(|settings| settings.renew = Some(renew))
    }

    /// The longest a hold lasts, counted from the grant, whatever renews or extends it. `None` takes a default of the client
    /// back.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-max-hold")?;
    /// let held = client.lock("nightly").max_hold(Duration::from_millis(20)).acquire_blocking()?;
    /// let loss = held.ended_blocking()?.expect("it is lost after 20 ms");
    /// assert_eq!(loss.reason.as_str(), "max_hold");
    /// let endless = client.lock("other").max_hold(None).acquire_blocking()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn max_hold(self, span: impl Into<Option<Duration>>) -> Self {
        let span = span.into();
        self.set(|settings| settings.max_hold = Some(span))
    }

    /// Whether to queue by principle: strictly first come, first served. See [`LockOptions::fair`].
    #[must_use]
    pub fn fair(self, fair: bool) -> Self {
        self.set(|settings| settings.fair = Some(fair))
    }

    /// Several options at once; what is `None` stays what it was.
    #[must_use]
    pub fn settings(self, settings: LockOverrides) -> Self {
        self.set(|current| *current = settings.or(current))
    }

    /// Tells tasks apart: any number will do that is the same for one task and differs between tasks.
    ///
    /// An acquire that would wait for a lock that this task holds in a body ([`Held::enter`]) fails at once, with
    /// `INVALID_ARGUMENT`. A task that waits for a lock it holds without a body gets a warning event: somebody else may release
    /// it. Said more than once, the task is inside of all of them, and the last number is its own.
    #[must_use]
    pub fn caller(mut self, task: u64) -> Self {
        self.contexts.push(task);
        self
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The options, with the client's defaults filled in. No I/O.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: says which option, or that the name can't be a lock's.
    pub fn validate(&self) -> Result<&LockOptions, Error> {
        self.prepared().map(|prepared| &prepared.options)
    }

    fn prepared(&self) -> Result<&Prepared, Error> {
        let prepare = || {
            let base = self.client.options();
            let options = self.settings.over(&base.lock)?;
            let quorum_config = self.client.quorum_config();
            if quorum_config.is_some() && wire_millis(options.ttl) > millis(base.max_ttl) {
                let why =
                    Text::new("on a quorum a {ttl} is at most the client's {max_ttl}, which is {}", [Part::Time(base.max_ttl)]);
                return Err(Error::invalid_time("ttl", options.ttl, why));
            }
            if quorum_config.is_some() && options.fair {
                let why = "a quorum has no fair locks: independent servers can't agree on who is first; leave it out".to_owned();
                return Err(Error::invalid("fair", true, why));
            }
            let keys = Arc::new(Keys::new(Kind::Exclusive, &base.prefix, &self.name, quorum_config.is_none())?);
            Ok(Prepared { keys, options })
        };
        let prepared = if self.client.has_servers() { &self.prepared } else { &self.early };
        prepared.get_or_init(prepare).as_ref().map_err(Clone::clone)
    }

    fn session(&self) -> Result<(Arc<Session>, &Prepared), Error> {
        self.prepared()?;
        let session = self.client.session(Some(&self.name))?;
        // Only now the servers are known for sure.
        Ok((session, self.prepared()?))
    }

    fn recipe(&self, tries_once: bool) -> Result<(Arc<Session>, Arc<Recipe>), Error> {
        let (session, prepared) = self.session()?;
        let mut options = prepared.options.clone();
        if tries_once {
            options.wait = Wait::For(Duration::ZERO);
        }
        let recipe = Recipe {
            keys: Arc::clone(&prepared.keys),
            servers: Arc::clone(&session.addresses),
            quorum_config: session.quorum_config,
            options,
            hear_all_first: session.must_hear_all(),
            busy_is_none: tries_once,
            adopt: self.adopt.clone(),
            signature: Arc::clone(&session.signature),
            response_timeout: session.response_timeout(),
            unavailable_after: session.options.unavailable_after,
        };
        let body = if recipe.lines_up() { session.tasks.bodies.enclosing(&self.contexts, recipe.keys.lock()) } else { None };
        if let Some(body) = body {
            return Err(Error::waits_for_itself(&self.name, body.place.as_deref()));
        }
        Ok((session, Arc::new(recipe)))
    }

    /// Acquires the lock, waiting for it at most `wait`.
    ///
    /// ```
    /// # use locktender::{Client, Code};
    /// # use std::time::Duration;
    /// # let client = Client::open("memory://docs-acquire").unwrap();
    /// let held = client.lock("nightly").acquire_blocking()?;
    /// let second = client.lock("nightly").wait(Duration::from_millis(20)).acquire_blocking();
    /// assert_eq!(second.unwrap_err().code(), Code::AcquireTimeout);
    /// assert!(held.is_valid());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call gives the attempt up: what it may have written on a server is deleted in the background.
    ///
    /// # Errors
    /// `ACQUIRE_TIMEOUT`, `UNAVAILABLE`, `DENIED`, `KEY_CONFLICT`, `INVALID_ARGUMENT`, `CLOSED`.
    pub fn acquire(&self) -> Call<Held> {
        self.begin(false, Acquirer::Must)
    }

    /// Tries once to acquire the lock: `None` if it is busy.
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    ///
    /// # Errors
    /// As [`Lock::acquire`], but `ACQUIRE_TIMEOUT`.
    pub fn try_acquire(&self) -> Call<Option<Held>> {
        self.begin(true, Acquirer::Try)
    }

    fn begin<T: Send + 'static>(&self, tries_once: bool, acquirer: fn(Responder<T>) -> Acquirer) -> Call<T> {
        let (lock, context) = (self.clone(), self.contexts.last().copied());
        Call::new(move |responder| match lock.recipe(tries_once) {
            Ok((session, recipe)) => {
                let actor = LockActor::begin(session, recipe, context, acquirer(responder));
                let actor = Arc::downgrade(&actor);
                Some(Box::new(move || {
                    if let Some(actor) = actor.upgrade() {
                        actor.send(Input::Cancel);
                    }
                }))
            }
            Err(error) => {
                responder.respond(Err(error));
                None
            }
        })
    }

    /// [`Lock::acquire`], blocking this thread.
    ///
    /// # Errors
    /// As [`Lock::acquire`].
    pub fn acquire_blocking(&self) -> Result<Held, Error> {
        self.acquire().wait()
    }

    /// [`Lock::try_acquire`], blocking this thread.
    ///
    /// # Errors
    /// As [`Lock::try_acquire`].
    pub fn try_acquire_blocking(&self) -> Result<Option<Held>, Error> {
        self.try_acquire().wait()
    }

    /// Runs `body` while holding the lock.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-with").unwrap();
    /// let fence = client.lock("orders:42").with(async |held| held.fence()).await?;
    /// assert!(fence > 0);
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the future drops the body and releases the lock in the background.
    ///
    /// # Errors
    /// Those of [`Lock::acquire`], without a result; `LOCK_LOST` with the body's result if the lock was lost meanwhile.
    pub async fn with<T>(&self, body: impl AsyncFnOnce(&Held) -> T) -> Result<T, WithError<T>> {
        let held = self.acquire().await.map_err(WithError::before)?;
        self.enter(&held);
        let result = body(&held).await;
        WithError::settle(held.leave().await, result)
    }

    /// [`Lock::with`], blocking this thread.
    ///
    /// # Errors
    /// As [`Lock::with`].
    pub fn with_blocking<T>(&self, body: impl FnOnce(&Held) -> T) -> Result<T, WithError<T>> {
        let held = self.acquire_blocking().map_err(WithError::before)?;
        self.enter(&held);
        let result = body(&held);
        WithError::settle(held.leave().wait(), result)
    }

    fn enter(&self, held: &Held) {
        if let Some(task) = self.contexts.last() {
            held.enter(*task, None);
        }
    }

    /// Looks who holds the lock: `None` if nobody does. Changes nothing.
    ///
    /// # Errors
    /// `UNAVAILABLE`, `DENIED`, `KEY_CONFLICT`, `INVALID_ARGUMENT`, `CLOSED`.
    pub fn inspect(&self) -> Call<Option<LockInfo>> {
        let lock = self.clone();
        Call::new(move |responder| {
            match lock.session() {
                Ok((session, prepared)) => {
                    let op = Op::Inspect { keys: Arc::clone(&prepared.keys) };
                    let (name, servers) = (lock.name.clone(), Arc::clone(&session.addresses));
                    let timeout = session.response_timeout();
                    let judge = move |answers: &[_]| inspect(&name, &servers, answers);
                    AskAll::begin(&session, &[op], timeout, judge, responder);
                }
                Err(error) => responder.respond(Err(error)),
            }
            None
        })
    }

    /// [`Lock::inspect`], blocking this thread.
    ///
    /// # Errors
    /// As [`Lock::inspect`].
    pub fn inspect_blocking(&self) -> Result<Option<LockInfo>, Error> {
        self.inspect().wait()
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("name", &self.name).field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The failure of a `with`, and what the body had come to if it ran.
#[derive(Debug)]
#[non_exhaustive]
pub struct WithError<T> {
    /// What went wrong with the lock.
    pub error: Error,
    /// The body's result, if the body ran: the lock was lost before it ended.
    pub result: Option<T>,
}

impl<T> WithError<T> {
    fn before(error: Error) -> Self {
        Self { error, result: None }
    }

    fn settle(left: Result<(), Error>, result: T) -> Result<T, Self> {
        match left {
            Ok(()) => Ok(result),
            Err(error) => Err(Self { error, result: Some(result) }),
        }
    }
}

impl<T> fmt::Display for WithError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T: fmt::Debug> std::error::Error for WithError<T> {}

impl<T> From<WithError<T>> for Error {
    fn from(failed: WithError<T>) -> Self {
        failed.error
    }
}
