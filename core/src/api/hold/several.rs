//! Several: the holds of locks that were acquired together are one hold. It is valid while all of them are: with the first that is lost
//! the others are no longer renewed: they are given back when the work ends, and end at the latest with their ttl.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::Hold;
use crate::error::{Code, Error, Loss};
use crate::io::call::{Call, Responder};
use crate::io::reactor::Io;
use crate::protocol::{Answered, GrantOfSeveral, Input, Outcome, Release};
use crate::session::actor::{Acquirer, LockActor};
use crate::sync::Mutex;

/// Whether an operation ends the hold without a question for it: then a loss that its holder never learnt of is a warning.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Unasked,
    Not,
}

/// The results of one operation on each of several holds.
type Results<T> = Vec<Result<T, Error>>;

impl Hold {
    /// The hold of several locks that this acquisition has got.
    pub(super) fn of_several(acquisition: &Arc<LockActor>, grant: &GrantOfSeveral) -> Result<Self, Error> {
        let begun = Arc::new(Mutex::new(Vec::new()));
        acquisition.begin_holds(grant, || {
            let begun = Arc::clone(&begun);
            Box::new(move |answered| begun.lock().push(answered)) as Acquirer
        });
        let held = |answered: Result<_, Error>| match answered? {
            (actor, Answered::Granted(grant)) => Ok(Self { actor, grant, others: Vec::new() }),
            _ => Err(super::unanswered()),
        };
        // If one has failed, the others are released.
        let mut holds = std::mem::take(&mut *begun.lock()).into_iter().map(held).collect::<Result<Vec<_>, Error>>()?;
        for (at, hold) in holds.iter().enumerate() {
            let others = holds.iter().enumerate().filter(|(other, _)| *other != at);
            let others: Vec<_> = others.map(|(_, other)| Arc::downgrade(&other.actor)).collect();
            hold.actor.observe(Box::new(move |loss| {
                if loss.is_some() {
                    others.iter().filter_map(Weak::upgrade).for_each(|other| other.send(Input::StopRenewing, &Io::Background));
                }
            }));
        }
        let given = acquisition.recipe.keys.together();
        holds.sort_by_key(|hold| given.and_then(|given| given.iter().position(|name| **name == *hold.name())));
        let others = holds.split_off(1.min(holds.len()));
        let mut first = holds.pop().ok_or_else(super::unanswered)?;
        first.others = others;
        Ok(first)
    }

    /// Each of the holds, in the order of the names.
    pub(super) fn each(&self) -> impl DoubleEndedIterator<Item = &Self> {
        std::iter::once(self).chain(&self.others)
    }

    /// The names of all locks that it holds, in the order in which they were given.
    #[doc(hidden)]
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.each().map(Self::name).collect()
    }

    /// The fencing token of each name.
    #[doc(hidden)]
    #[must_use]
    pub fn fences(&self) -> Vec<(&str, u64)> {
        self.each().map(|hold| (hold.name(), hold.grant.fence)).collect()
    }

    /// The acquisition of each of the holds.
    pub(super) fn actors(&self) -> Vec<Arc<LockActor>> {
        self.each().map(|hold| Arc::clone(&hold.actor)).collect()
    }

    /// Does the same with each hold, from the last to the first. `settle` makes the result of all.
    pub(super) fn with_each<T: Send + 'static>(
        &self,
        ends: End,
        call: impl Fn(&Arc<LockActor>, Responder<T>) + Send + Sync + 'static,
        settle: fn(Results<T>) -> Result<T, Error>,
    ) -> Call<T> {
        if self.others.is_empty() {
            let actor = Arc::clone(&self.actor);
            return self.call(move |responder| {
                if ends == End::Unasked {
                    actor.notice_unseen_loss();
                }
                call(&actor, responder);
            });
        }
        let actors = self.actors();
        self.call(move |responder| {
            if ends == End::Unasked {
                notice_unseen_loss(&actors);
            }
            let io = responder.io().clone();
            let (count, call) = (actors.len(), Arc::new(call));
            let collected = Arc::new(Mutex::new((Vec::with_capacity(count), Some(responder))));
            for actor in actors.into_iter().rev() {
                let (collected, call) = (Arc::clone(&collected), Arc::clone(&call));
                let one = Call::started(move |responder| call(&actor, responder));
                one.then_by(io.clone(), move |result| {
                    let mut collected = collected.lock();
                    collected.0.push(result);
                    if collected.0.len() < count {
                        return;
                    }
                    let (results, responder) = (std::mem::take(&mut collected.0), collected.1.take());
                    drop(collected);
                    if let Some(responder) = responder {
                        responder.respond(settle(results));
                    }
                });
            }
        })
    }
}

/// Has `report` called once: with the first loss of any of the holds and the name of its lock, or with `None` once all have ended
/// without one. Gives what forgets it.
pub(super) fn watch_each(
    actors: &[Arc<LockActor>],
    report: impl FnOnce(Option<(String, Loss)>) + Send + 'static,
) -> Box<dyn FnOnce() + Send> {
    let shared = Arc::new(Mutex::new((actors.len(), Some(report))));
    let watch = |actor: &Arc<LockActor>| {
        let (shared, recipe) = (Arc::clone(&shared), Arc::clone(&actor.recipe));
        let watcher = actor.watch(Box::new(move |loss| {
            let mut state = shared.lock();
            state.0 -= 1;
            let report = if loss.is_some() || state.0 == 0 { state.1.take() } else { None };
            drop(state);
            if let Some(report) = report {
                report(loss.map(|loss| (recipe.name().to_owned(), loss)));
            }
        }));
        watcher.map(|watcher| (Arc::downgrade(actor), watcher))
    };
    let watchers: Vec<_> = actors.iter().filter_map(watch).collect();
    Box::new(move || {
        for (actor, watcher) in watchers {
            if let Some(actor) = Weak::upgrade(&actor) {
                actor.unwatch(watcher);
            }
        }
    })
}

/// Warns once that the hold was lost, if its holder never learnt of that.
pub(super) fn notice_unseen_loss(actors: &[Arc<LockActor>]) {
    if !actors.iter().any(|actor| actor.holder_knows.load(Ordering::Relaxed)) {
        let is_lost = |actor: &&Arc<LockActor>| actor.check().is_err_and(|error| error.loss().is_some());
        actors.iter().find(is_lost).into_iter().for_each(|actor| actor.notice_unseen_loss());
    }
    actors.iter().for_each(|actor| actor.note_holder_knows());
}

/// A loss, or else the first error; but any other before that of a hold that is over: where one was lost, the others were released then.
fn worst_error(errors: impl Iterator<Item = Error>) -> Option<Error> {
    errors.min_by_key(|error| match error.code() {
        Code::LockLost => 0,
        Code::NotHeld => 2,
        _ => 1,
    })
}

/// Done, if all are.
pub(super) fn all_done(results: Results<()>) -> Result<(), Error> {
    worst_error(results.into_iter().filter_map(Result::err)).map_or(Ok(()), Err)
}

/// The outcome that is farthest from a release of all.
pub(super) fn worst_release(results: Results<Release>) -> Result<Release, Error> {
    let (released, errors): (Results<Release>, Results<Release>) = results.into_iter().partition(Result::is_ok);
    let farthest = released.into_iter().flatten().max_by_key(|release| match release.outcome {
        Outcome::Released => 0,
        Outcome::Expired => 1,
        Outcome::Taken => 2,
    });
    match (worst_error(errors.into_iter().filter_map(Result::err)), farthest) {
        (Some(error), None) => Err(error),
        (Some(error), Some(_)) if error.code() != Code::NotHeld => Err(error),
        (_, farthest) => farthest.ok_or_else(super::unanswered),
    }
}
