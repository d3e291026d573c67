//! Events: what reaches an acquire that waits, and what it emits.

use super::Acquiring;
use crate::clock::Tick;
use crate::error::{Holder, Remaining};
use crate::event::EventKind;
use crate::op::holder::KEPT;
use crate::protocol::Command;
use crate::protocol::context::Context;
use crate::wait::Hint;

impl Acquiring {
    /// A hint of a server arrived.
    pub(in crate::protocol) fn hint(&mut self, (server, hint): (usize, Hint), now: Tick, context: &mut Context<'_>) {
        if hint.is_now() {
            context.emit(EventKind::Notified, |_| ());
        }
        let at = self.waiting.hint(context.recipe, (server, hint), now, context.rng);
        self.next_try = self.next_try.min(at);
    }

    /// A server announces releases from now on, or no longer.
    pub(in crate::protocol) fn listens(&mut self, server: usize, now: Tick) {
        if self.waiting.listens(server) {
            self.next_try = self.next_try.min(now);
        }
    }

    pub(super) fn emit_busy(&mut self, holder: &Holder, now: Tick, context: &mut Context<'_>) {
        let took = Some(now.since(self.started));
        // Nobody holds the lock of a job that may not begin yet.
        let owner = Some(holder.owner.clone()).filter(|owner| owner != KEPT);
        let kind = if context.recipe.busy_is_none { EventKind::NotAcquired } else { EventKind::Busy };
        context.emit(kind, |event| (event.holder, event.took) = (owner, took));
        if holder.remaining == Remaining::Forever && !self.warned {
            self.warned = true;
            context.emit(EventKind::Warning, |event| {
                event.holder = Some(holder.owner.clone());
                event.message =
                    Some("the holder's key has no expiry: if its process died, only deleting the key frees the lock".to_owned());
            });
        }
    }

    /// Emits once that the acquire waits in the queue, and asks the actor to listen for releases.
    pub(super) fn emit_queued(&mut self, rank: Option<u64>, context: &mut Context<'_>) {
        if rank.is_some() && !self.queued_emitted {
            self.queued_emitted = true;
            context.emit(EventKind::Queued, |event| event.rank = rank);
            context.out.push(Command::Listen);
        }
    }
}
