//! Downgrade: a writer becomes a reader. It is a hand-over to oneself.

use std::sync::Arc;
use std::time::Duration;

use super::{Acquired, Hold};
use crate::clock::Tick;
use crate::error::Error;
use crate::io::call::Call;
use crate::io::canceller::Canceller;
use crate::name::{Kind, LockKind};
use crate::op::{Adoption, LockOp, Op, Verb};
use crate::options::LockOptions;
use crate::protocol::{Input, Recipe};
use crate::server::{Completion, Request};
use crate::session::actor::LockActor;
use crate::session::caller::Caller;

impl Hold {
    /// Makes a writer's hold a reader's, without a gap: gives a new hold of [`Client::read_lock`], and other readers may enter. This
    /// handle ends. The new hold has the options of this one and a fence of its own, above this one's; what is left of `min_hold` ends.
    ///
    /// There is no way back: two readers that wait to become a writer would wait for each other. Release, and acquire the lock.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-downgrade")?;
    /// let writer = client.lock("prices").acquire_blocking()?; // writes, and then
    /// let reader = writer.downgrade().blocking()?;
    /// assert!(reader.fence() > writer.fence() && !writer.is_valid());
    /// assert!(client.read_lock("prices").try_acquire_blocking()?.is_some());
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Cancel safety
    /// Once it has begun this hold is over. Dropping the call releases the lock in the background, and so does an error.
    ///
    /// # Errors
    /// `LOCK_LOST`, with the reason [`Ended`](crate::LossReason::Ended) if the server doesn't have this hold any more, or if an answer was
    /// lost; `NOT_HELD` after a release or a hand-over; `INVALID_ARGUMENT` of a hold that is no plain lock's on one server; `FORKED` in a
    /// forked child; otherwise as [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// [`Client::read_lock`]: crate::Client::read_lock
    pub fn downgrade(&self) -> Call<Self> {
        let recipe = &self.actor.recipe;
        if !self.others.is_empty() || recipe.keys.kind() != Kind::Exclusive || recipe.keys.label().kind != LockKind::Lock {
            let why =
                "only the hold of a lock on one server, that is no reader's, permit's, job's or leader's, becomes a reader's";
            return Call::refused(Error::invalid("downgrade", self.name(), why));
        }
        if let Err(error) = self.own() {
            return Call::refused(error);
        }
        let (actor, owner) = (Arc::clone(&self.actor), Arc::clone(&self.grant.owner));
        Call::undoing(
            |held: Self| held.undo(),
            move |responder| {
                let ended = Arc::clone(&actor);
                let handed_over = Call::started(move |responder| ended.call(Caller::HandOver(responder), Input::HandOver));
                // No I/O.
                let (_, responder) = responder.unless_failed(handed_over.blocking())?;
                // Without a reader's hold in its place the writer's ends.
                let (session, until) = (Arc::clone(&actor.session), Tick::now().after(actor.recipe.key_ttl()));
                let verb = Verb::Release { leave: None, kept_ms: 0 };
                let release = LockOp { keys: Arc::clone(&actor.recipe.keys), by: Arc::clone(&owner), verb };
                let give_back = move || {
                    let request = Request::new(Op::Lock(release.clone()), until);
                    session.server(0).submit(request, Completion::new(drop));
                };
                let keys = Arc::new(actor.recipe.keys.of_kind(Kind::Read));
                let adopt = Some(Adoption { owner, or_acquire: false, beside: false });
                let options = LockOptions { min_hold: Duration::ZERO, ..actor.recipe.options.clone() };
                let recipe = Recipe { keys, adopt, options, busy_is_none: false, ..(*actor.recipe).clone() };
                let io = responder.io().clone();
                let on_error = give_back.clone();
                let acquirer = Box::new(move |answered: Result<_, Error>| {
                    let held = answered.and_then(Acquired::of).and_then(Acquired::held);
                    if held.is_err() {
                        on_error();
                    }
                    responder.respond(held);
                });
                let reader = LockActor::begin(Arc::clone(&actor.session), Arc::new(recipe), None, acquirer, &io);
                let reader = Arc::downgrade(&reader);
                Some(Canceller::by(move |io| {
                    if let Some(reader) = reader.upgrade() {
                        reader.send(Input::Cancel, &io);
                    }
                    give_back();
                }))
            },
        )
    }
}
