//! Endings: the events of an acquire that ends without the lock, and of a hold that ends without a release.

use std::time::Duration;

use crate::error::{Code, Error};
use crate::event::{Event, EventKind};
use crate::protocol::Recipe;
use crate::protocol::hold::Hold;

/// The event of an acquire that ended with an error after a wait of `waited`.
pub(super) fn failed(recipe: &Recipe, error: &Error, waited: Duration) -> Event {
    let timed_out = error.code() == Code::AcquireTimeout;
    let mut event = Event::of(if timed_out { EventKind::TimedOut } else { EventKind::Failed }, &recipe.keys);
    event.took = Some(waited);
    event.rival = error.holder().map(|holder| holder.owner.clone());
    event.rank = error.rank();
    event.message = (!timed_out).then(|| error.to_string());
    event
}

/// The event of an acquire that was cancelled after a wait of `waited`.
pub(super) fn cancelled(recipe: &Recipe, closed: bool, waited: Duration) -> Event {
    let mut event = Event::of(EventKind::Cancelled, &recipe.keys);
    event.took = Some(waited);
    event.message = closed.then(|| "the client was closed".to_owned());
    event
}

/// The event of a hold whose handle was dropped.
pub(super) fn dropped(recipe: &Recipe, hold: &Hold) -> Event {
    let mut event = hold.event(recipe, EventKind::Warning);
    event.message = Some("a held lock was dropped without release; it is no longer renewed and expires by itself".to_owned());
    event
}
