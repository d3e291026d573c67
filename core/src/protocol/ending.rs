//! Endings: the events of an acquire that ends without the lock, and of a hold that ends without a release.

use std::time::{Duration, UNIX_EPOCH};

use crate::clock::Tick;
use crate::error::{Code, Error, Loss};
use crate::event::{EventKind, LockEvent};
use crate::op::job::{EarlierRun, JobEnd, NotBegun};
use crate::protocol::Recipe;
use crate::protocol::hold::Hold;

/// The loss of this hold as its holder meets it at `now`: the holder has continued until then.
pub(super) fn met_at(now: Tick, hold: &Hold, loss: &Loss) -> Loss {
    loss.clone().after(now.since(hold.validity_end))
}

/// The event of an acquire that ended with an error after a wait of `waited`.
pub(super) fn failed(recipe: &Recipe, error: &Error, waited: Duration) -> LockEvent {
    let timed_out = error.code() == Code::AcquireTimeout;
    let mut event = LockEvent::of(if timed_out { EventKind::TimedOut } else { EventKind::AcquireFailed }, &recipe.keys);
    event.took = Some(waited);
    event.holder = error.holder().map(|holder| holder.owner.clone());
    event.rank = error.rank();
    event.message = (!timed_out).then(|| error.to_string());
    event
}

/// The event of an acquire that was cancelled after a wait of `waited`.
pub(super) fn cancelled(recipe: &Recipe, closed: bool, waited: Duration) -> LockEvent {
    let message = closed.then(|| "the client was closed".to_owned());
    LockEvent { took: Some(waited), message, ..LockEvent::of(EventKind::Cancelled, &recipe.keys) }
}

/// The event of an acquire that begins no attempt, after a wait of `waited`: its job is over, or its scheduled time is.
pub(super) fn over(recipe: &Recipe, end: &JobEnd, waited: Duration) -> LockEvent {
    let (kind, message) = match end.why {
        NotBegun::Done => (EventKind::Done, None),
        NotBegun::Dead => (EventKind::Dead, Some(end.text.clone())),
        NotBegun::Running | NotBegun::Missed | NotBegun::TooLate | NotBegun::TooEarly => {
            (EventKind::Skipped, Some(end.why.as_str().to_owned()))
        }
    };
    let mut event = LockEvent::of(kind, &recipe.keys);
    (event.took, event.attempt) = (Some(waited), Some(end.attempts).filter(|_| kind != EventKind::Skipped));
    event.last_owner = Some(end.by.clone()).filter(|by| !by.is_empty());
    event.message = message;
    event
}

/// The event of an earlier run that the first attempt for a later scheduled time has left behind: its work has not succeeded, and
/// will not be tried again.
pub(super) fn unfinished(recipe: &Recipe, hold: &Hold) -> Option<LockEvent> {
    let EarlierRun { scheduled_time_ms, attempts, by, error, .. } = &**hold.round.earlier.as_ref()?;
    if *scheduled_time_ms == 0 || error.is_empty() {
        return None;
    }
    let scheduled_time = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(*scheduled_time_ms));
    let mut event = LockEvent::of(EventKind::Dead, &recipe.keys);
    (event.attempt, event.last_owner) = (Some(*attempts), Some(by.clone()).filter(|by| !by.is_empty()));
    event.message = Some(format!("for the scheduled time {scheduled_time}: {error}"));
    Some(event)
}

/// The warning of an attempt whose job has other terms than this client names.
pub(super) fn other_terms(recipe: &Recipe, hold: &Hold) -> Option<LockEvent> {
    let terms = recipe.job?;
    let (ours, max) = (terms.max_attempts, u32::from(hold.round.attempt?.max));
    let message = match hold.round.earlier.as_deref() {
        _ if ours != max => format!("the first client of this job allows {max} attempts, this one {ours}: the first one's count"),
        Some(EarlierRun { scheduled_time_ms: 0, .. }) => {
            "this name was that of a job without scheduled times, whose record is replaced: what was done there may run again"
                .to_owned()
        }
        Some(EarlierRun { retention_ms, .. }) if *retention_ms != terms.retention_ms => {
            "another client runs this schedule with another lateness: it may run a scheduled time that the record has forgotten"
                .to_owned()
        }
        _ => return None,
    };
    Some(LockEvent { message: Some(message), ..hold.event(recipe, EventKind::Warning) })
}

/// The event of a hold whose handle was dropped.
pub(super) fn dropped(recipe: &Recipe, hold: &Hold, now: Tick) -> LockEvent {
    let message = Some("a held lock was dropped without release; it is no longer renewed and expires by itself".to_owned());
    LockEvent { took: Some(now.since(hold.granted)), message, ..hold.event(recipe, EventKind::Dropped) }
}
