//! Self-waits: an acquire for a lock that its own task holds, or whose holder may wait for the acquire.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::LockActor;
use crate::clock::Tick;
use crate::event::{Event, EventKind};

impl LockActor {
    /// Warns a task that waits for a lock that it holds itself: the acquire can only time out.
    pub(super) fn notice_self_wait(&self, event: &Event) {
        let rival = event.rival.as_deref().filter(|_| event.kind == EventKind::Busy);
        if self.context.is_none() || rival.is_none_or(|rival| self.session.tasks.holder(rival) != self.context) {
            return;
        }
        if std::mem::replace(&mut self.state.lock().warned, true) {
            return;
        }
        let mut warning = Event::new(EventKind::Warning);
        (warning.lock, warning.key) = (event.lock.clone(), event.key.clone());
        warning.rival.clone_from(&event.rival);
        warning.message = Some("the lock is held by the very task that waits for it; locks are not re-entrant".to_owned());
        self.session.emit(&warning);
    }

    /// Warns about an acquire that waits long and without an end, for a lock that this client held before the acquire began. Only
    /// the caller knows whether the holder waits for the acquire. There is one warning for each hold.
    pub(super) fn notice_own_hold(&self, began: Tick) {
        // A caller that named its task gets an error at once inside of its own body.
        if self.context.is_some() {
            return;
        }
        let now = Tick::now();
        let Some(own) = self.session.tasks.own_holds.find(self.recipe.keys.lock(), now, || self.session.registry.all()) else {
            return;
        };
        let Some((owner, _, since)) = own.hold_at(now).filter(|(_, _, since)| *since <= began) else { return };
        if own.waited_for.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut warning = Event::of(EventKind::Warning, &self.recipe.keys);
        warning.rival = Some(owner.to_string());
        warning.self_wait = true;
        warning.message = Some(format!(
            "lock {:?} has been held for {:.1} s by this same client, one of whose acquires waits for it without an end: \
             if the holder waits for that acquire, both wait for ever; pass the hold down instead",
            self.recipe.name(),
            now.since(since).as_secs_f64(),
        ));
        self.session.emit(&warning);
    }

    /// The value of the hold, its fence, and the time of its grant, if the hold is valid at `now`.
    pub(crate) fn hold_at(&self, now: Tick) -> Option<(Arc<str>, u64, Tick)> {
        if now >= self.valid_until() {
            return None;
        }
        self.state.lock().machine.hold().map(|(owner, fence, since)| (Arc::clone(owner), fence, since))
    }
}

#[cfg(test)]
#[path = "self_wait_tests.rs"]
mod tests;
