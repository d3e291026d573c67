//! Several: the holds of locks that were acquired together are one hold. It is valid while all of them are: with the first that is lost
//! the others are released.

use std::sync::{Arc, Weak};

use super::Hold;
use crate::error::{Code, Error, Loss};
use crate::io::call::{Call, Responder};
use crate::io::reactor::Io;
use crate::protocol::{Answered, GrantOfSeveral, Input, Manner, Outcome, Release};
use crate::session::actor::{Acquirer, LockActor};
use crate::sync::Mutex;

/// The results of one operation on each of several holds.
type Results<T> = Vec<Result<T, Error>>;

impl Hold {
    /// The hold of several locks that this acquisition has got.
    pub(super) fn of_several(acquisition: &Arc<LockActor>, grant: &GrantOfSeveral) -> Option<Self> {
        let begun = Arc::new(Mutex::new(Vec::new()));
        acquisition.begin_holds(grant, || {
            let begun = Arc::clone(&begun);
            Box::new(move |answered| begun.lock().push(answered)) as Acquirer
        });
        let held = |answered: Result<_, Error>| match answered {
            Ok((actor, Answered::Granted(grant))) => Some(Self { actor, grant, others: Vec::new() }),
            _ => None,
        };
        let mut holds = std::mem::take(&mut *begun.lock()).into_iter().map(held).collect::<Option<Vec<_>>>()?;
        for (at, hold) in holds.iter().enumerate() {
            let others = holds.iter().enumerate().filter(|(other, _)| *other != at);
            let others: Vec<_> = others.map(|(_, other)| Arc::downgrade(&other.actor)).collect();
            hold.actor.observe(Box::new(move |loss| {
                if loss.is_some() {
                    release_all(&others);
                }
            }));
        }
        let others = holds.split_off(1);
        let mut first = holds.pop()?;
        first.others = others;
        Some(first)
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
        call: impl Fn(&Arc<LockActor>, Responder<T>) + Send + Sync + 'static,
        settle: fn(Results<T>) -> Result<T, Error>,
    ) -> Call<T> {
        if self.others.is_empty() {
            let actor = Arc::clone(&self.actor);
            return self.call(move |responder| call(&actor, responder));
        }
        let actors = self.actors();
        self.call(move |responder| {
            let io = responder.io().clone();
            let (count, call) = (actors.len(), Arc::new(call));
            let collected = Arc::new(Mutex::new((Vec::with_capacity(count), Some(responder))));
            for actor in actors.into_iter().rev() {
                let (collected, call) = (Arc::clone(&collected), Arc::clone(&call));
                let one = Call::new(move |responder| {
                    call(&actor, responder);
                    None
                });
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

/// Releases the other holds of several, one of which is lost. What is to be said of that one its own release says.
fn release_all(actors: &[Weak<LockActor>]) {
    for actor in actors.iter().rev().filter_map(Weak::upgrade) {
        actor.send(Input::Release(0, Manner::Background), &Io::Background);
    }
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
