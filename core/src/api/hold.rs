//! Hold: one acquisition. Only its handle can extend or release it.

mod blocking;
mod downgrade;
mod host;
mod loss;
pub(super) mod multi;
mod several;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::error::Error;
use crate::io::call::{Call, Responder};
use crate::io::reactor::Io;
use crate::name::Kind;
use crate::op::job::JobEnd;
use crate::protocol::{Amount, Answered, Grant, Input, Manner, Release};
use crate::session::actor::LockActor;
use crate::session::caller::Caller;

/// A hold: the lock is ours until it is released, handed over, or lost.
///
/// The core's own thread renews it in the background, unless [`renew`](crate::Lock::renew) is off. So a blocked or busy executor
/// doesn't let it expire. It isn't tied to a task or thread: any may extend or release it.
///
/// Dropping it releases the lock in the background, without waiting for the outcome.
pub struct Hold {
    pub(super) actor: Arc<LockActor>,
    pub(super) grant: Grant,
    /// Those of the other names, if several locks were acquired together.
    others: Vec<Self>,
}

/// How an acquire ended that did not fail.
pub(super) enum Acquired {
    Held(Hold),
    Busy,
    Over(JobEnd),
}

impl Acquired {
    pub(super) fn of((actor, answered): (Arc<LockActor>, Answered)) -> Result<Self, Error> {
        Ok(match answered {
            Answered::Granted(grant) => Self::Held(Hold { actor, grant, others: Vec::new() }),
            Answered::Several(grant) => Self::Held(Hold::of_several(&actor, &grant)?),
            Answered::Busy => Self::Busy,
            Answered::Over(end) => Self::Over(end),
        })
    }

    /// The hold of one attempt, which may find the lock busy.
    pub(super) fn tried(self) -> Result<Option<Hold>, Error> {
        match self {
            Self::Held(held) => Ok(Some(held)),
            Self::Busy => Ok(None),
            Self::Over(_) => Err(unanswered()),
        }
    }

    /// The hold of an acquire that ends with nothing else.
    pub(super) fn held(self) -> Result<Hold, Error> {
        match self {
            Self::Held(held) => Ok(held),
            Self::Busy | Self::Over(_) => Err(unanswered()),
        }
    }
}

/// The error of an acquire that ended in a way that it can't end.
pub(super) fn unanswered() -> Error {
    Error::internal(None, "an acquire ended without a lock and without an error")
}

impl Hold {
    /// The lock's name, without the client's prefix.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-held-name")?;
    /// assert_eq!(client.lock("nightly").acquire_blocking()?.name(), "nightly");
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        self.actor.recipe.keys.name()
    }

    /// The owner value: the value of the key on the servers begins with it. It is unique to this hold, and a person can read it in
    /// `redis-cli`.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-owner")?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// let fields = locktender::OwnerFields::parse(hold.owner()).expect("it is ours");
    /// assert_eq!(fields.pid, Some(std::process::id()));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.grant.owner
    }

    /// The fencing token: larger than that of every earlier hold of this name. Send it with each write, and let the resource
    /// refuse a token smaller than the largest that it has seen. Tokens of different names can't be compared.
    ///
    /// ```
    /// # use locktender::Error;
    /// # let client = locktender::Client::open("memory://docs-fence")?;
    /// let first = client.lock("orders:42").with_blocking(|hold| Ok::<_, Error>(hold.fence()))?;
    /// let second = client.lock("orders:42").with_blocking(|hold| Ok::<_, Error>(hold.fence()))?;
    /// assert!(second > first);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.grant.fence
    }

    /// Whether the lock is held now. No I/O.
    ///
    /// Never true after the key has expired on the servers. It may be false a little earlier.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-is-valid")?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// assert!(hold.is_valid());
    /// hold.release_blocking()?;
    /// assert!(!hold.is_valid());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let valid = !self.is_inherited() && Tick::now() < self.valid_until();
        if !valid {
            self.note_holder_knows();
        }
        valid
    }

    /// How long the lock is guaranteed to be held if nothing renews it; zero if it is not held. No I/O.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-remaining")?;
    /// let hold = client.lock("nightly").ttl(Duration::from_secs(10)).acquire_blocking()?;
    /// assert!(hold.remaining() > Duration::from_secs(5) && hold.remaining() <= Duration::from_secs(10));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Duration {
        let remaining = if self.is_inherited() { Duration::ZERO } else { self.valid_until().since(Tick::now()) };
        if remaining.is_zero() {
            self.note_holder_knows();
        }
        remaining
    }

    /// Fails unless the lock is held now: [`Hold::is_valid`] with a reason. No I/O.
    ///
    /// ```
    /// # use locktender::{Client, Code};
    /// # let client = Client::open("memory://docs-held-check")?;
    /// let hold = client.lock("nightly").acquire_blocking()?;
    /// hold.check()?;
    /// hold.release_blocking()?;
    /// assert_eq!(hold.check().unwrap_err().code(), Code::NotHeld);
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LOCK_LOST`, `NOT_HELD` after a release or a hand-over, `FORKED` in a forked child.
    pub fn check(&self) -> Result<(), Error> {
        self.own()?;
        let checked = match &self.others[..] {
            [] => self.actor.check(),
            _ => several::all_done(self.each().map(|hold| hold.actor.check()).collect()),
        };
        if checked.is_err() {
            self.note_holder_knows();
        }
        checked
    }

    /// Extends the hold now, so that at least `ttl` remains. An extension never shortens.
    ///
    /// `ttl` is from 10 ms to 24 h, on a quorum at most the client's [`max_ttl`](crate::ClientBuilder::max_ttl).
    ///
    /// It goes no further than [`max_hold`](crate::Lock::max_hold). Later renewals have the lock's own ttl again.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-extend").unwrap();
    /// let hold = client.lock("report").ttl(Duration::from_secs(2)).renew(false).acquire_blocking()?;
    /// hold.extend(Duration::from_secs(60)).blocking()?; // from inside the work, before a step that takes long
    /// assert!(hold.remaining() > Duration::from_secs(58));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call doesn't take the extension back.
    ///
    /// # Errors
    /// * `LOCK_LOST`: the lock was lost before; see [`Error::loss`].
    /// * `NOT_HELD`: the lock was released or handed over before.
    /// * `UNAVAILABLE`: no majority answered for the client's [`unavailable_after`](crate::ClientBuilder::unavailable_after), and a
    ///   response timeout. The lock is still held as long as [`Hold::is_valid`].
    /// * `INVALID_ARGUMENT`: more would remain than is allowed.
    /// * `FORKED`: this is a forked child, and the lock is its parent's.
    pub fn extend(&self, ttl: Duration) -> Call<()> {
        self.extend_to(Amount::To(ttl))
    }

    /// Renews the hold now, instead of in the background: [`Hold::extend`] with the lock's own [`ttl`](crate::Lock::ttl).
    ///
    /// For a hold without background renewal, or to know that a majority of the servers agrees at this moment.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-renew-now").unwrap();
    /// let hold = client.lock("report").ttl(Duration::from_secs(30)).renew(false).acquire().await?;
    /// hold.renew_now().await?; // 30 s from now
    /// assert!(hold.remaining() > Duration::from_secs(28));
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// As [`Hold::extend`].
    ///
    /// # Errors
    /// As [`Hold::extend`].
    pub fn renew_now(&self) -> Call<()> {
        self.extend_to(Amount::Own)
    }

    /// Extends the hold now by `more`: [`Hold::remaining`] grows by it, as far as [`max_hold`](crate::Lock::max_hold) allows.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-extend-by").unwrap();
    /// let hold = client.lock("report").ttl(Duration::from_secs(10)).acquire().await?;
    /// hold.extend_by(Duration::from_secs(60)).await?;
    /// assert!(hold.remaining() > Duration::from_secs(65));
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// As [`Hold::extend`].
    ///
    /// # Errors
    /// As [`Hold::extend`].
    pub fn extend_by(&self, more: Duration) -> Call<()> {
        self.extend_to(Amount::By(more))
    }

    fn extend_to(&self, amount: Amount) -> Call<()> {
        let extend = move |actor: &Arc<LockActor>, responder: Responder<()>| {
            actor.call(Caller::Extend(responder), |call| Input::Extend(call, amount));
        };
        self.with_each(several::End::Not, extend, several::all_done)
    }

    fn valid_until(&self) -> Tick {
        self.each().map(|hold| hold.actor.valid_until()).min().unwrap_or_default()
    }

    fn note_holder_knows(&self) {
        self.each().for_each(|hold| hold.actor.note_holder_knows());
    }

    /// Releases the lock, and returns what the servers had: the lock was still ours, it had expired, or another hold had begun.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # use locktender::{Client, Outcome};
    /// # let client = Client::open("memory://docs-release").unwrap();
    /// let hold = client.lock("nightly").acquire().await?;
    /// assert_eq!(hold.release().await?.outcome, Outcome::Released);
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Once started the release continues, also if the call is dropped.
    ///
    /// # Errors
    /// * `UNAVAILABLE`: the outcome is still unknown after the client's
    ///   [`unavailable_after`](crate::ClientBuilder::unavailable_after). The release continues in the background. Call it again to learn
    ///   the outcome.
    /// * `NOT_HELD`: the lock was released or handed over before.
    /// * `FORKED`: this is a forked child, and the lock is its parent's.
    pub fn release(&self) -> Call<Release> {
        let release = |actor: &Arc<LockActor>, responder: Responder<Release>| {
            actor.call(Caller::Release(responder), |call| Input::Release(call, Manner::Explicit));
        };
        self.with_each(several::End::Unasked, release, several::worst_release)
    }

    /// Hands the lock over to another process: gives a ticket, a string for one use by [`Client::adopt`](crate::Client::adopt). No
    /// I/O.
    ///
    /// This handle ends without a release. The lock is no longer renewed: it stays taken until it is adopted, at most for what
    /// remains of it.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-hand-over")?;
    /// let hold = client.lock("report").acquire_blocking()?;
    /// let ticket = hold.hand_over()?; // send it to another process
    /// assert!(!hold.is_valid());
    /// let theirs = client.adopt_blocking(&ticket)?;
    /// assert!(theirs.fence() > hold.fence());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// `LOCK_LOST`; `NOT_HELD` after a release or a hand-over; `FORKED` in a forked child.
    pub fn hand_over(&self) -> Result<String, Error> {
        if self.grant.attempt.is_some() {
            let why = "an attempt of a job can't be handed over: give it back, and the next worker begins it again";
            return Err(Error::invalid("hand_over", self.name(), why));
        }
        if !self.others.is_empty() {
            let why = "several locks at once can't be handed over: give them back, and the other process takes them";
            return Err(Error::invalid("hand_over", self.names().join(", "), why));
        }
        if let Kind::Semaphore(_) = self.actor.recipe.keys.kind() {
            let why = "a permit can't be handed over: give it back, and the other process takes one";
            return Err(Error::invalid("hand_over", self.name(), why));
        }
        let actor = Arc::clone(&self.actor);
        self.call(move |responder| actor.call(Caller::HandOver(responder), Input::HandOver)).blocking()
    }

    pub(super) fn call<T: Send + 'static>(&self, start: impl FnOnce(Responder<T>) + Send + 'static) -> Call<T> {
        self.own().map_or_else(Call::refused, |()| Call::started(start))
    }

    fn is_inherited(&self) -> bool {
        self.actor.session.is_inherited()
    }

    fn own(&self) -> Result<(), Error> {
        if self.is_inherited() { Err(Error::forked(self.name())) } else { Ok(()) }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // In a forked child the lock is the parent's, and its locks may have been copied while taken.
        if !self.others.is_empty() && !self.is_inherited() {
            several::notice_unseen_loss(&self.actors());
            // From the last to the first.
            while self.others.pop().is_some() {}
        }
        if !self.actor.is_released() && !self.is_inherited() {
            self.actor.notice_unseen_loss();
            // The caller's runtime may be about to end.
            self.actor.send(Input::Release(0, Manner::Background), &Io::Background);
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("name", &self.name())
            .field("owner", &self.owner())
            .field("fence", &self.fence())
            .field("valid", &self.is_valid())
            .finish()
    }
}
