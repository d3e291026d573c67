//! Round: one round of an acquire over all servers, with its requests and its answers.

use crate::op::job::{AttemptNumber, EarlierRun, Ending, JobEnd, OpenAttempt};
use crate::op::{Answer, Failure, FailureKind, Reply, Verb, Verdict, holder};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::deadline::Deadline;
use crate::error::Holder;
use crate::mutant::mutant;
use crate::per_server::{PerServer, per_server};
use crate::protocol::ballot::{Ballot, Standing};
use crate::protocol::removal::{Concern, Removal, Value};
use crate::protocol::{Command, GrantOfSeveral, Recipe, Step, Tag};
use crate::validity::{self, Reading};
use crate::wait::Slot;

/// The refusal of one server.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    Held(Holder),
    /// The hold that was handed over isn't there. With the value in the key, if any.
    Gone(Option<String>),
    Conflict(String),
    Mismatch(String),
    Failed(Failure),
    /// The job is done or dead.
    Over(JobEnd),
    /// The job's next attempt may begin after this time. With the last error.
    Later(Duration, String),
}

/// One round over all servers.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) number: u32,
    pub(super) owner: Arc<str>,
    pub(super) sent: Tick,
    pub(super) ballot: Ballot,
    /// The time since which a server may have lost its vote: another node answers for it.
    pub(super) suspected_at: Option<Tick>,
    pub(super) readings: PerServer<Option<Reading>>,
    /// The number of waiters before us on each server that put us into its queue.
    pub(super) ranks: PerServer<Option<u64>>,
    /// The number of times that each server had put our slot into its queue when the round began; empty without a slot.
    pub(super) enqueue_counts: PerServer<u64>,
    /// Whether it asks to enter beside a reader.
    pub(super) is_beside: bool,
    /// Whether a vote moves our slot to the tail, for other waiters of this process.
    pub(super) stays: bool,
    pub(super) refusals: PerServer<Option<Refusal>>,
    /// Of several locks: which of them a refusal is about, and the fences of all if they are granted.
    pub(super) at: usize,
    pub(super) fences: Vec<u64>,
    /// The number of the attempt that a vote begins, of a job.
    pub(super) attempt: Option<AttemptNumber>,
    /// The run that it leaves behind.
    pub(super) earlier: Option<Box<EarlierRun>>,
    /// Whether nothing stands behind the owner in the key of the only server.
    pub(super) is_bare: bool,
    /// The run ids of the servers.
    pub(super) run_ids: PerServer<Option<Arc<str>>>,
    deadline: Deadline,
    /// The time since which the servers without an answer are silent. It begins with the request, and leaves out the time in
    /// which this process did not run.
    pub(super) silent_since: Tick,
}

impl Round {
    pub(super) fn new(recipe: &Recipe, number: u32, owner: Arc<str>, stays: bool, now: Tick) -> Self {
        let servers = recipe.servers.len();
        Self {
            number,
            owner,
            sent: now,
            ballot: Ballot::new(recipe.quorum()),
            suspected_at: None,
            readings: per_server(None, servers),
            ranks: per_server(None, servers),
            enqueue_counts: PerServer::new(),
            is_beside: false,
            stays,
            refusals: per_server(None, servers),
            at: 0,
            fences: Vec::new(),
            attempt: None,
            earlier: None,
            is_bare: false,
            run_ids: per_server(None, servers),
            deadline: Deadline::until(now.after(recipe.response_timeout)),
            silent_since: now,
        }
    }

    /// The round in which one of several locks was granted, at this place among them.
    pub(super) fn of_part(recipe: &Recipe, grant: &GrantOfSeveral, fence: u64) -> Self {
        let (sent, server_us) = grant.sent;
        let mut round = Self::new(recipe, 1, Arc::clone(&grant.owner), false, sent);
        round.ballot.cast(0, fence);
        round.readings[0] = Some(Reading { sent, server_us });
        (round.suspected_at, round.run_ids[0]) = (grant.suspected_at, grant.run_id.clone());
        round
    }

    /// What is granted with this round of several locks.
    pub(super) fn grant_of_several(&self, waited: Duration, notified_at: Option<Tick>, met_busy: bool) -> GrantOfSeveral {
        let server_us = self.readings.first().and_then(Option::as_ref).map_or(0, |reading| reading.server_us);
        GrantOfSeveral {
            owner: Arc::clone(&self.owner),
            fences: self.fences.as_slice().into(),
            sent: (self.sent, server_us),
            suspected_at: self.suspected_at,
            run_id: self.run_ids.first().cloned().flatten(),
            waited,
            notified_at,
            met_busy,
        }
    }

    /// The end of the time to wait for answers. If a granted round waits for all servers, at most half of the ttl is used.
    pub(super) fn ends(&self, recipe: &Recipe) -> Tick {
        match self.ballot.standing() {
            Standing::Granted(_) => self.deadline.ends().min(self.sent.after(recipe.options.ttl / 2)),
            _ => self.deadline.ends(),
        }
    }

    /// Moves the deadline by the time in which this process did not run. A granted round needs no other answer.
    pub(super) fn extend_for_pause(&mut self, recipe: &Recipe, now: Tick) {
        if !matches!(self.ballot.standing(), Standing::Granted(_)) {
            let late = self.deadline.extend_for_pause(now, recipe.response_timeout);
            self.silent_since = self.silent_since.after(late);
        }
    }

    /// Whether any server has not answered the acquire.
    pub(super) fn is_awaited(&self) -> bool {
        (0..self.refusals.len()).any(|server| self.ballot.is_pending(server))
    }

    /// Another server of this round that has the same run id.
    pub(super) fn same_server(&mut self, server: usize, reply: &Reply) -> Option<usize> {
        let id = reply.run_id.as_ref()?;
        self.run_ids[server] = Some(Arc::clone(id));
        (0..self.run_ids.len()).find(|other| *other != server && self.run_ids[*other].as_ref() == Some(id))
    }

    /// Whether a server may have our slot in its queue although the lock is ours. A server that has not answered yet is checked
    /// with its answer.
    pub(super) fn may_have_place(&self, slot: &Slot, server: usize) -> bool {
        let voted = self.readings[server].is_some();
        let refused = !voted && !self.ballot.is_pending(server);
        // A vote took our slot out. But another waiter of this process may have put it in again, behind the vote, since the round
        // began.
        let since = voted && slot.enqueue_counts(server) != self.enqueue_counts[server] && !mutant!(LateCompanionKept);
        self.ranks[server].is_some() || refused && slot.has_arrived_at(server) || since
    }

    pub(super) fn refuse(&mut self, server: usize, answer: Answer, last_fence: &mut u64) {
        self.refusals[server] = Some(match answer {
            Ok(Reply { verdict: Verdict::Held { holder, remaining }, fence, .. }) => {
                *last_fence = (*last_fence).max(fence);
                Refusal::Held(Holder { owner: holder, remaining })
            }
            Ok(Reply { verdict: Verdict::No { holder, .. }, fence, .. }) => {
                *last_fence = (*last_fence).max(fence);
                Refusal::Gone(holder.filter(|holder| !holder::is_claim(holder)))
            }
            Ok(Reply { verdict: Verdict::Conflict { found }, .. }) => Refusal::Conflict(found),
            Ok(Reply { verdict: Verdict::Mismatch { quorum }, .. }) => Refusal::Mismatch(quorum),
            Ok(Reply { verdict: Verdict::Over(end), .. }) => Refusal::Over(*end),
            Ok(Reply { verdict: Verdict::Later { left, error }, .. }) => Refusal::Later(left, error),
            Ok(Reply { verdict: Verdict::Quarantine { left }, .. }) => {
                let message = format!("is new or lost its data, votes in {} s", left.as_secs() + 1);
                Refusal::Failed(Failure::not_applied(FailureKind::Quarantine, message))
            }
            Ok(reply) => {
                let message = format!("answered {:?} to an acquire", reply.verdict);
                Refusal::Failed(Failure::unknown(FailureKind::Protocol, message))
            }
            Err(failure) => Refusal::Failed(failure),
        });
    }

    /// A confirmation has no answer. Our acquire may still be read where that has none, either.
    pub(super) fn confirmation_failed(&mut self, server: usize, failure: Failure) {
        if !self.is_unsure(server) || mutant!(ConfirmationSettlesAcquire) {
            self.refusals[server] = Some(Refusal::Failed(failure));
        }
    }

    pub(super) fn refuse_confirmation(&mut self, server: usize, reply: Reply) {
        if self.is_unsure(server) && !mutant!(ConfirmationSettlesAcquire) {
            return;
        }
        self.refusals[server] = Some(match reply.verdict {
            Verdict::No { holder: Some(owner), remaining } if *owner != *self.owner => Refusal::Held(Holder { owner, remaining }),
            Verdict::Conflict { found } => Refusal::Conflict(found),
            _ => {
                let message = "lost its key, or cast a newer vote, before the fence was confirmed";
                Refusal::Failed(Failure::not_applied(FailureKind::Other, message))
            }
        });
    }

    pub(super) fn fail(&mut self, server: usize, message: String) {
        self.refusals[server] = Some(Refusal::Failed(Failure::unknown(FailureKind::Timeout, message)));
    }

    pub(super) fn confirm_all(&self, recipe: &Recipe, fence: u64, now: Tick, out: &mut Vec<Command>) {
        for server in 0..recipe.servers.len() {
            if !self.ballot.is_against(server) {
                out.push(self.confirm(recipe, server, fence, now));
            }
        }
    }

    /// A request to raise the server's vote to the fence.
    pub(super) fn confirm(&self, recipe: &Recipe, server: usize, fence: u64, now: Tick) -> Command {
        let tag = Tag { round: self.number, step: Step::Confirm, sent: now };
        recipe.send(server, tag, (&self.owner, Verb::Confirm { fence }), validity::end(self.sent, recipe.options.ttl))
    }

    /// A request to take our value off a server whose vote is above the fence.
    pub(super) fn release(&self, recipe: &Recipe, server: usize, now: Tick) -> Command {
        let verb = Verb::Release { leave: None, kept_ms: 0 };
        let tag = Tag { round: self.number, step: Step::Release, sent: now };
        recipe.send(server, tag, (&self.owner, verb), now.after(recipe.options.ttl))
    }

    /// Whether the only server has voted, and only its replicas have not confirmed that.
    pub(super) fn is_unreplicated(&self) -> bool {
        matches!(&*self.refusals, [Some(Refusal::Failed(failure))] if failure.kind == FailureKind::NotReplicated)
    }

    /// Whether the server may still read our acquire from a broken connection.
    pub(super) fn is_unsure(&self, server: usize) -> bool {
        let failed = |refusal: &Refusal| matches!(refusal, Refusal::Failed(failure) if failure.maybe_applied);
        self.readings[server].is_none() && self.refusals[server].as_ref().is_some_and(failed)
    }

    /// Takes our value off every server that has or may have it, and the waiter `leaves` out of the queues.
    pub(super) fn undo(
        &self,
        recipe: &Recipe,
        now: Tick,
        leaves: Option<Arc<str>>,
        removals: &mut Vec<Removal>,
        out: &mut Vec<Command>,
    ) {
        let concern = |server: usize| match &self.refusals[server] {
            _ if mutant!(LateSuccessKept) && self.ballot.is_pending(server) => Concern::None,
            // The server has not answered yet, or it voted. A vote whose confirmation failed is still a vote.
            _ if self.ballot.is_pending(server) || self.readings[server].is_some() => Concern::Ask,
            // A request that ended without an answer may still be read from a broken connection.
            _ if self.is_unsure(server) => Concern::AskTwice,
            _ if leaves.is_some() => Concern::Ask,
            _ => Concern::None,
        };
        let ends = recipe.job.map(|_| (Ending::GivenBack, OpenAttempt::default()));
        let value = Value {
            round: self.number,
            owner: Arc::clone(&self.owner),
            leaves: leaves.clone(),
            ends,
            keeps_until: Tick::default(),
            shown: None,
        };
        let mut removal = Removal::begin(recipe, value, now, None, now, concern, out);
        removal.await_writes(recipe, |server| self.ballot.is_pending(server), now);
        removals.push(removal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Remaining;
    use crate::protocol::waiting::tests::{at, recipe};

    #[test]
    fn a_key_that_is_no_lock_has_no_holder_when_a_vote_is_to_be_confirmed() {
        let mut round = Round::new(&recipe(3), 1, "us".into(), false, at(0));
        round.refuse_confirmation(0, Reply::new(Verdict::Conflict { found: "list".into() }, 0, 0));
        assert!(matches!(&round.refusals[0], Some(Refusal::Conflict(found)) if found == "list"));
    }

    fn an_acquire_without_an_answer_may_still_be_read_whatever_a_confirmation_finds() {
        let mut round = Round::new(&recipe(3), 1, "me".into(), false, at(0));
        for server in 0..2 {
            round.refuse(server, Err(Failure::unknown(FailureKind::Disconnected, "it broke")), &mut 0);
        }
        round.refuse_confirmation(0, Reply::new(Verdict::No { holder: None, remaining: Remaining::Gone }, 0, 7));
        round.confirmation_failed(1, Failure::not_applied(FailureKind::Refused, "nobody listens"));
        assert_eq!([0, 1, 2].map(|server| round.is_unsure(server)), [true, true, false]);
    }

    #[test]
    fn a_confirmation_says_nothing_of_an_acquire_without_an_answer() {
        an_acquire_without_an_answer_may_still_be_read_whatever_a_confirmation_finds();
    }

    #[test]
    fn the_table_notices_what_is_left_out() {
        use crate::mutant::{Mutant, assert_noticed};
        let table = an_acquire_without_an_answer_may_still_be_read_whatever_a_confirmation_finds;
        assert_noticed(Mutant::ConfirmationSettlesAcquire, table);
    }
}
