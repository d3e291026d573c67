//! Places in the servers' queues, once a round is granted.

use super::Acquiring;
use crate::clock::Tick;
use crate::mutant::mutant;
use crate::name::Kind;
use crate::op::Adoption;
use crate::protocol::context::Context;
use crate::protocol::round::Round;
use crate::protocol::{Recipe, leave};

impl Acquiring {
    // Readers of one process have waited in one place, and enter together.

    /// The reader of the same slot beside whom this one enters.
    pub(super) fn beside(&self, recipe: &Recipe) -> Option<Adoption> {
        let slot = self.waiting.slot().filter(|_| recipe.keys.kind() == Kind::Read)?;
        slot.reader(self.started).map(|owner| Adoption { owner, or_acquire: true, beside: true })
    }

    /// The round is granted: the others of its slot may enter beside it.
    pub(super) fn entered(&self, recipe: &Recipe, round: &Round, now: Tick) {
        if let Some(slot) = self.waiting.slot().filter(|_| recipe.keys.kind() == Kind::Read) {
            slot.entered(&round.owner, round.is_beside, now);
        }
    }

    /// Whether the slot is in the queues behind a grant, as far as this process knows. A hint since the request may have taken it out again, and
    /// names a waiter that needs it no more.
    pub(super) fn slot_stays(&self, recipe: &Recipe, round: &Round) -> bool {
        round.stays && (!self.waiting.is_called(recipe) || mutant!(HintDuringRoundLost))
    }

    /// Leaves the servers' queues after a grant, so that no server notifies us in vain. If other waiters of this process use our
    /// slot, they begin at the tail.
    pub(super) fn leave_queues(&self, round: &Round, now: Tick, context: &mut Context<'_>) {
        let Some(slot) = self.waiting.slot().filter(|_| !mutant!(WinnerNotTakenOut)) else { return };
        slot.outage.end();
        if slot.is_shared() {
            let was_taken_out = |server: usize| round.readings[server].is_some() && !round.may_have_place(slot, server);
            return slot.served(now, round.stays || mutant!(NextKeepsPlace), was_taken_out);
        }
        let standing = (0..context.recipe.servers.len()).filter(|server| round.may_have_place(slot, *server));
        context.out.extend(standing.map(|server| leave(context.recipe, server, slot.entry(), now)));
    }
}
