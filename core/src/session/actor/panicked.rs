//! Panicked: the end of an acquisition whose state machine panicked, by a bug of the library.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{ActorState, LockActor};
use crate::error::{Error, Loss, LossReason};
use crate::event::EventKind;
use crate::event::callback::Panic;
use crate::io::reactor::Io;
use crate::sync::MutexGuard;
use crate::wait::LeaveReason;

impl LockActor {
    /// Ends an acquisition whose machine panicked, by a bug of the library: all callers get an error, and a hold counts as lost.
    pub(super) fn fail(&self, mut state: MutexGuard<'_, ActorState>, panic: &Panic) {
        let held = self.valid_until.swap(0, Ordering::AcqRel) != 0;
        state.failed = true;
        self.is_released.store(false, Ordering::Release);
        let set = state.alarm;
        // Nobody renews the hold any more.
        let loss = held.then_some(Loss::new(LossReason::Expired, Duration::ZERO));
        state.loss = state.loss.take().or_else(|| loss.clone());
        self.measured.acquire_ended(EventKind::AcquireFailed, None);
        self.measured.hold_ended(EventKind::Lost, None);
        self.refuse(state);
        let mut warning = panic.warning("the lock's state machine");
        warning.lock_name = Some(self.recipe.keys.shared().0);
        self.session.emit(&warning);
        self.session.leave_queue(&self.recipe, self.id, LeaveReason::GaveUp, &Io::Background);
        self.session.runtime().cancel_alarm(set, self.id);
        self.session.remove(self.id);
        self.call_watchers(loss.as_ref());
    }

    pub(super) fn panicked(&self) -> Error {
        Error::internal(Some(self.recipe.name()), "the lock's state machine panicked")
    }

    /// Answers all calls under way, and all later calls, with an error.
    pub(super) fn refuse(&self, mut state: MutexGuard<'_, ActorState>) {
        state.inbox.clear();
        state.asks = None;
        let acquirer = state.acquirer.take();
        let callers = std::mem::take(&mut state.callers);
        drop(state);
        let error = || self.panicked();
        if let Some(acquirer) = acquirer {
            acquirer(Err(error()));
        }
        callers.into_iter().for_each(|(_, caller)| caller.fail(error()));
    }
}
