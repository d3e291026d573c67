//! Heal: how a hold gets its key back on a server that lost it.
//!
//! On a quorum a majority has to confirm the hold first. A single server in quarantine needs no majority: since the failover nobody
//! was granted anything, and nobody will be until every hold of the time before has ended. So a key that is missing was lost, and may
//! be written again while the hold is valid.

use std::time::Duration;

use crate::clock::Tick;
use crate::error::{Loss, LossReason};
use crate::mutant::mutant;
use crate::op::{Answer, Verb, Verdict};
use crate::options::wire_millis;
use crate::protocol::extension::Extension;
use crate::protocol::hold::Hold;
use crate::protocol::{Command, Recipe, Step, Tag};

impl Hold {
    /// Whether there is a reason for a next extension.
    pub(super) fn extends(&self) -> bool {
        self.renewing || self.suspected_at.is_some() || !self.requests.is_empty()
    }

    /// A server may have lost the key: the next extension is due now, also of a hold that isn't renewed.
    pub(super) fn suspect(&mut self, now: Tick) {
        (self.suspected_at, self.failed_over) = (Some(now), !mutant!(FailoverExcludes));
        if self.extensions.current().is_none() {
            self.next_renewal = now;
        }
    }

    /// Writes the key again on a server that lost it, after a majority confirmed that it is ours.
    pub(super) fn heal(&mut self, recipe: &Recipe, server: usize, now: Tick, out: &mut Vec<Command>) {
        let Some(confirmed) = self.extensions.confirmed() else { return };
        // Behind the heal the server may still read our acquire, whose new vote would be released, or the release of such a vote.
        // Either would delete the key on which validity counts. One heal is enough.
        let ballot = &self.round.ballot;
        let overtakes = now < self.unsure_until[server] || ballot.is_pending(server) || ballot.is_above(server, self.fence);
        if overtakes && !mutant!(HealOvertakes) {
            return;
        }
        let verb = Verb::Heal { ttl_ms: wire_millis(recipe.key_span(confirmed.span)), fence: self.fence };
        self.unsure_until[server] = if mutant!(HealForgotten) { Tick::default() } else { Tick::NEVER };
        let tag = Tag { round: self.round.number, step: Step::Heal, sent: now };
        out.push(recipe.send(server, tag, (&self.round.owner, verb), self.validity_end));
    }

    /// Whether a key may be written again that an extension, sent at `sent`, did not find: on a single server in quarantine, since a
    /// failover. The extension may have been read ahead of a heal whose answer was not there yet.
    pub(super) fn heals_alone(&self, recipe: &Recipe, sent: Tick) -> bool {
        let is_single = recipe.quorum_config.is_some_and(|config| config.servers == 1);
        let overtakes_heal = sent < self.healed_at && !mutant!(RefusalFromBeforeHeal);
        let is_suspect = self.suspected_at.is_some() || overtakes_heal || mutant!(DeletedKeyHealed);
        is_single && is_suspect && !recipe.keys.kind().is_shared() && !mutant!(LostKeyNotHealed)
    }

    /// Writes the key again, which a round did not find. The answer decides. A round that timed out is not the last one, which
    /// shows the same; and behind a heal on its way an answer may be older than that.
    pub(super) fn heal_missing(&mut self, recipe: &Recipe, is_current: bool, now: Tick, out: &mut Vec<Command>) {
        if !is_current || self.is_writing(0) {
            return;
        }
        let Some(missed) = self.extensions.end_current() else { return };
        let left = self.validity_end.since(now);
        let verb = Verb::Heal { ttl_ms: wire_millis(recipe.key_span(missed.span)), fence: self.fence };
        self.unsure_until[0] = Tick::NEVER;
        let key_span = recipe.key_span(missed.span);
        self.kept_until = self.kept_until.max(now.after(key_span)).max(self.validity_end.after(key_span));
        let tag = Tag { round: self.round.number, step: Step::Heal, sent: now };
        out.push(recipe.send(0, tag, (&self.round.owner, verb), self.validity_end));
        // Without an answer an extension shows whether the key was written.
        self.next_renewal = now.after((left / 3).min(recipe.response_timeout).max(Duration::from_millis(2)));
        self.healing = Some(Box::new(Extension::new(missed.round, now, missed.span, self.next_renewal, recipe.quorum())));
    }

    /// Takes the answer to that. A key that is another's, or whose fence is newer, ends the hold.
    pub(super) fn healed_alone(
        &mut self,
        recipe: &Recipe,
        step: Step,
        answer: &Answer,
        now: Tick,
        out: &mut Vec<Command>,
    ) -> Option<Loss> {
        let healing = self.healing.take_if(|_| step == Step::Heal)?;
        let reply = answer.as_ref().ok()?;
        match &reply.verdict {
            Verdict::Ok if now < self.validity_end => {
                self.healed_at = now;
                self.confirmed(recipe, &healing, now, out);
                None
            }
            Verdict::Ok => None,
            _ => {
                let next_owner = reply.other_owner().map(str::to_owned);
                let reason = if next_owner.is_some() { LossReason::Taken } else { LossReason::Missing };
                Some(Loss { next_owner, ..Loss::new(reason, now.since(self.validity_end)) })
            }
        }
    }
}

#[cfg(test)]
#[path = "heal_tests.rs"]
mod tests;
