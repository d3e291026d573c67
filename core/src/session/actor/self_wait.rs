//! Self-waits: an acquire for a lock that its own task holds, or whose holder may wait for the acquire.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::LockActor;
use crate::clock::Tick;
use crate::event::{EventKind, LockEvent};
use crate::name::Kind;
use crate::options::Wait;

impl LockActor {
    /// Warns about an acquire that waits long for a lock that this client held before the acquire began: the same task, or, if the
    /// caller names none and waits without an end, any. Whether the holder waits for the acquire only the program knows: a task may have
    /// left its body suspended, and another one may end it. There is one warning for each hold.
    pub(super) fn notice_own_hold(&self, began: Tick) {
        if self.context.is_none() && self.recipe.options.wait != Wait::Forever {
            return;
        }
        let now = Tick::now();
        let own_holds = |lock: &str| self.session.own_holds.of(lock, now, || self.session.registry.all());
        let all: Vec<_> = self.recipe.keys.each().flat_map(|keys| own_holds(keys.lock())).collect();
        // A process that limits its own work waits for permits of its own all the time.
        let is_limit =
            |own: &Self| matches!((self.recipe.keys.kind(), own.recipe.keys.kind()), (Kind::Semaphore(_), Kind::Semaphore(_)));
        let is_own = |own: &&Arc<Self>| (self.context.is_none() || own.context == self.context) && !is_limit(own);
        let held = |own: &Arc<Self>| own.hold_at(now).filter(|(_, _, since)| *since <= began).map(|hold| (Arc::clone(own), hold));
        let Some((own, (owner, _, since))) = all.iter().filter(is_own).find_map(held) else { return };
        if own.waited_for.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut warning = LockEvent::of(EventKind::Warning, &self.recipe.keys);
        warning.holder = Some(owner.to_string());
        warning.self_wait = true;
        let what = match self.context {
            None => {
                "by this same client, one of whose acquires waits for it without an end: if the holder waits for that acquire, both \
                 wait without end; pass the hold down instead"
            }
            Some(_) => {
                "by the thread or task that now waits for it: unless another one releases it, this may be a wait for itself; locks are \
                 not re-entrant: pass the hold down instead"
            }
        };
        let held_for = now.since(since).as_secs_f64();
        warning.message = Some(format!("lock {:?} has been held for {held_for:.1} s {what}", own.recipe.name()));
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
