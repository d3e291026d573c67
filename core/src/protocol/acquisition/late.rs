//! Late answers: what an answer means when its round is over, or when the others have decided already.

use super::Acquisition;
use crate::clock::Tick;
use crate::mutant::mutant;
use crate::op::{Answer, Queued, Reply, Verdict};
use crate::protocol::removal::Removal;
use crate::protocol::state::State;
use crate::protocol::{Command, Recipe, Step, Tag, leave};

impl Acquisition {
    /// The request of the round under way had no place, though others wait in ours since: its vote puts that into no queue.
    pub(in crate::protocol) fn was_sent_without_place(&mut self) {
        if let State::Acquiring(acquiring) = &mut self.state
            && let Some(round) = &mut acquiring.round
        {
            round.stays = mutant!(FastPlaceBelieved) && round.stays;
        }
    }

    /// Updates our place in the queues, also by an answer that comes after the others have decided. A server must not notify us
    /// in vain when we have the lock, or have given up.
    pub(super) fn track_queue_place(
        &self,
        recipe: &Recipe,
        (server, tag): (usize, Tag),
        answer: &Answer,
        now: Tick,
        out: &mut Vec<Command>,
    ) {
        let Some(slot) = self.slot.as_ref().filter(|_| tag.step == Step::Acquire) else { return };
        let stands = match answer {
            Ok(Reply { queued: Queued::At { arrival, .. }, verdict, .. }) => {
                slot.arrived(server, *arrival, (tag.sent, *verdict == Verdict::Vote));
                true
            }
            Ok(Reply { verdict: Verdict::Vote, .. }) => false,
            _ => slot.has_arrived_at(server),
        };
        let leaves_already = |removal: &Removal| removal.value.round == tag.round && removal.value.leaves.is_some();
        if stands && !slot.is_used() && !mutant!(LateEnqueueKept) && !self.removals.iter().any(leaves_already) {
            out.push(leave(recipe, server, slot.entry(), now));
        }
    }

    /// Takes an answer to a round that is over. If that round has written our value there, the value is deleted again.
    pub(super) fn straggler(
        &mut self,
        recipe: &Recipe,
        (server, tag): (usize, Tag),
        answer: &Answer,
        now: Tick,
        out: &mut Vec<Command>,
    ) {
        if let (State::Acquiring(acquiring), Ok(Reply { verdict: Verdict::Held { .. }, .. })) = (&mut self.state, answer) {
            acquiring.waiting.late_refusal(server);
        }
        let Some(removal) = self.removals.iter_mut().find(|removal| removal.value.round == tag.round) else { return };
        match tag.step {
            Step::Acquire if mutant!(LateSuccessKept) => removal.awaited = removal.awaited.saturating_sub(1),
            Step::Acquire | Step::Heal => removal.late_write(recipe, server, now, answer, out),
            _ => (),
        }
    }
}
