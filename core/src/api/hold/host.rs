//! Ends: the end of a body, and of a handle that was forgotten. `Lock::with` and bindings need them, and Rust programs do not.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Hold;
use super::several::{End, all_done};
use crate::io::call::{Call, Responder};
use crate::io::reactor::Io;
use crate::protocol::{Input, Manner};
use crate::session::actor::LockActor;
use crate::session::caller::Caller;

#[doc(hidden)]
impl Hold {
    /// Ends a body: releases the lock unless that was done, and fails if it was lost meanwhile. An outcome that stays unknown
    /// for a response timeout is no error; the release continues in the background.
    ///
    /// # Cancel safety
    /// As [`Hold::release`].
    ///
    /// # Errors
    /// `LOCK_LOST`; `FORKED` in a child.
    pub fn leave(&self) -> Call<()> {
        let leave = |actor: &Arc<LockActor>, responder: Responder<()>| {
            actor.call(Caller::EndOfBody(responder), |call| Input::Release(call, Manner::EndOfBody));
        };
        self.with_each(End::Not, leave, all_done)
    }

    /// As [`Hold::leave`], for a language whose end of a body learns nothing of the body. A loss is a warning event besides, unless
    /// the loss was reported to the holder.
    ///
    /// # Errors
    /// As [`Hold::leave`].
    pub fn dispose(&self) -> Call<()> {
        let dispose = |actor: &Arc<LockActor>, responder: Responder<()>| {
            actor.call(Caller::EndOfBody(responder), |call| Input::Release(call, Manner::EndOfBody));
        };
        self.with_each(End::Unasked, dispose, all_done)
    }

    /// Whether the holder has learnt that the lock is not held: from an error, a watcher or an answer.
    #[must_use]
    pub fn holder_knows(&self) -> bool {
        self.each().any(|hold| hold.actor.holder_knows.load(Ordering::Relaxed))
    }

    /// Notes that a body of `task` begins under this hold, at `place`: a file and a line, say. As long as the lock is held, an
    /// acquire by the same task (see [`Lock::caller`](crate::Lock::caller)) that would wait for it fails at once. `number` is for the
    /// question of [`Lock::caller_in`](crate::Lock::caller_in).
    pub fn enter(&self, task: u64, place: Option<&str>, number: u64) {
        if !self.is_inherited() {
            self.each().for_each(|hold| hold.actor.enter(task, &hold.grant.owner, (place, number)));
        }
    }

    /// Whether the lock was released without a loss, and its holder knows the outcome. From then on every call that needs the lock
    /// fails with [`Error::released`](crate::Error::released), and a binding can drop the handle.
    #[must_use]
    pub fn is_released(&self) -> bool {
        !self.is_inherited() && self.each().all(|hold| hold.actor.is_released())
    }

    /// Releases in the background a hold that its caller did not get: nobody has worked under it, so [`min_hold`] doesn't count.
    ///
    /// [`min_hold`]: crate::Lock::min_hold
    pub fn undo(&self) {
        if !self.is_inherited() {
            self.each().rev().for_each(|hold| hold.actor.send(Input::Release(0, Manner::Unclaimed), &Io::Background));
        }
    }

    /// Stops renewing and forgets the lock without releasing it, with a warning event: what a garbage-collected handle means
    /// in a language where the work may still be running.
    pub fn abandon(&self) {
        if !self.is_inherited() {
            self.each().for_each(|hold| hold.actor.send(Input::Abandon, &Io::Background));
        }
    }
}
