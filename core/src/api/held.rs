//! A held lock: one acquisition, which alone can extend or release it.

mod blocking;
mod host;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::call::{Call, Responder};
use crate::clock::Tick;
use crate::error::{Error, Loss};
use crate::io::runtime::at_home;
use crate::protocol::{Amount, Grant, Input, Manner, Release};
use crate::session::actor::LockActor;
use crate::session::caller::Caller;

/// A lock that is ours: until it is released, handed over, or lost.
///
/// It is renewed in the background (unless `renew` is off) on the core's own thread, so neither a blocked executor nor a busy
/// one lets it expire. It isn't tied to a task or thread: any may extend or release it. Dropping it releases it in the
/// background, without waiting.
pub struct Held {
    actor: Arc<LockActor>,
    grant: Grant,
}

impl Held {
    pub(crate) fn new(actor: Arc<LockActor>, grant: Grant) -> Self {
        Self { actor, grant }
    }

    /// The lock's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.actor.recipe.keys.name()
    }

    /// The value on the servers, unique to this acquisition and readable in `redis-cli`.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.grant.owner
    }

    /// The fencing token: larger than that of every earlier hold of this name. Hand it to the resource, and let the
    /// resource refuse smaller ones.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.grant.fence
    }

    /// Whether the lock is held now. No I/O; never true later than the servers' expiry.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let valid = !self.is_inherited() && Tick::now() < self.actor.valid_until();
        if !valid {
            self.actor.holder_is_told();
        }
        valid
    }

    /// How long the lock is surely held if nothing renews it; zero if it is not held. No I/O.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        let remaining = if self.is_inherited() { Duration::ZERO } else { self.actor.valid_until().since(Tick::now()) };
        if remaining.is_zero() {
            self.actor.holder_is_told();
        }
        remaining
    }

    /// Fails unless the lock is held now. No I/O.
    ///
    /// # Errors
    /// `LOCK_LOST`, `NOT_HELD` after a release or a hand-over, `FORKED` in a forked child.
    pub fn check(&self) -> Result<(), Error> {
        self.own()?;
        let checked = self.actor.check();
        if checked.is_err() {
            self.actor.holder_is_told();
        }
        checked
    }

    /// Makes at least `ttl` remain. An extension never shortens.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-extend").unwrap();
    /// let held = client.lock("report").ttl(Duration::from_secs(2)).renew(false).acquire_blocking()?;
    /// held.extend(Duration::from_secs(60)).wait()?; // from inside the work, before a step that takes long
    /// assert!(held.remaining() > Duration::from_secs(58));
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call doesn't take the extension back.
    ///
    /// # Errors
    /// `LOCK_LOST`, `NOT_HELD`, `INVALID_ARGUMENT`, `FORKED`; `UNAVAILABLE` if no majority answered for `unavailable_after`,
    /// told a response timeout later at the latest (the lock is still held while [`Held::is_valid`] says so).
    pub fn extend(&self, ttl: Duration) -> Call<()> {
        self.extend_to(Amount::To(ttl))
    }

    /// Makes at least the lock's own ttl remain; see [`Held::extend`].
    pub fn renew_now(&self) -> Call<()> {
        self.extend_to(Amount::Own)
    }

    /// Makes what remains now and `more` remain: [`Held::remaining`] grows by `more`, as far as `max_hold` allows. See
    /// [`Held::extend`].
    pub fn extend_by(&self, more: Duration) -> Call<()> {
        self.extend_to(Amount::By(more))
    }

    fn extend_to(&self, amount: Amount) -> Call<()> {
        let actor = Arc::clone(&self.actor);
        self.call(move |responder| actor.call(Caller::Extend(responder), |call| Input::Extend(call, amount)))
    }

    /// Gives the lock back, and tells what was found: released, expired, or taken by a rival.
    ///
    /// # Cancel safety
    /// Once started the release goes on, also if the call is dropped.
    ///
    /// # Errors
    /// `UNAVAILABLE` if the outcome is still unknown after `unavailable_after`: the release goes on in the background, and
    /// may be called again to learn the outcome. `NOT_HELD` if it was released or handed over before, `FORKED` in a child.
    pub fn release(&self) -> Call<Release> {
        let actor = Arc::clone(&self.actor);
        self.call(move |responder| {
            actor.notice_unseen_loss();
            actor.call(Caller::Release(responder), |call| Input::Release(call, Manner::Explicit));
        })
    }

    /// Ends this handle without releasing, and gives a single-use string for `Client::adopt` in another process. Until then,
    /// at most for what remains of the ttl, the lock stays taken; it is no longer renewed.
    ///
    /// # Errors
    /// `LOCK_LOST`, `NOT_HELD`, `FORKED`.
    pub fn hand_over(&self) -> Result<String, Error> {
        let actor = Arc::clone(&self.actor);
        self.call(move |responder| actor.call(Caller::HandOver(responder), Input::HandOver)).wait()
    }

    /// Waits for the loss of the lock. Never ends if the lock is released before.
    pub fn lost(&self) -> Call<Loss> {
        let told = |responder: Responder<Loss>, loss| match loss {
            Some(loss) => responder.respond(Ok(loss)),
            None => responder.never(),
        };
        self.watching(told)
    }

    /// Waits for the end of the lock, however it comes: the loss, or `None` once it was released or handed over.
    ///
    /// # Cancel safety
    /// Dropping the call changes nothing.
    ///
    /// # Errors
    /// `FORKED` in a child.
    pub fn ended(&self) -> Call<Option<Loss>> {
        self.watching(|responder, loss| responder.respond(Ok(loss)))
    }

    fn watching<T: Send + 'static>(&self, told: fn(Responder<T>, Option<Loss>)) -> Call<T> {
        if let Err(error) = self.own() {
            return Call::ready(Err(error));
        }
        let actor = Arc::clone(&self.actor);
        Call::new(move |responder| {
            let watcher = actor.watch(Box::new(move |loss| told(responder, loss)))?;
            let actor = Arc::downgrade(&actor);
            Some(Box::new(move || {
                if let Some(actor) = actor.upgrade() {
                    actor.unwatch(watcher);
                }
            }))
        })
    }

    /// Calls `told` once, when the lock is lost: on any thread, at once if it is lost already. Must not block. A panic in it ends
    /// there, with an event of kind `warning`.
    pub fn on_lost(&self, told: impl FnOnce(Loss) + Send + 'static) {
        if !self.is_inherited() {
            self.actor.watch(Box::new(|loss| {
                if let Some(loss) = loss {
                    told(loss);
                }
            }));
        }
    }

    fn call<T: Send + 'static>(&self, start: impl FnOnce(Responder<T>) + Send + 'static) -> Call<T> {
        match self.own() {
            Ok(()) => Call::new(move |responder| {
                start(responder);
                None
            }),
            Err(error) => Call::ready(Err(error)),
        }
    }

    fn is_inherited(&self) -> bool {
        self.actor.session.is_inherited()
    }

    fn own(&self) -> Result<(), Error> {
        if self.is_inherited() { Err(Error::forked(self.name())) } else { Ok(()) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // In a forked child the lock is the parent's, and its locks may have been copied while taken.
        if !self.is_inherited() {
            self.actor.notice_unseen_loss();
            // The caller's runtime may be about to end.
            at_home(|| self.actor.send(Input::Release(0, Manner::Background)));
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("name", &self.name())
            .field("owner", &self.owner())
            .field("fence", &self.fence())
            .field("valid", &self.is_valid())
            .finish()
    }
}
