//! The acquire loop: rounds until the lock is granted, the wait is over, or trying makes no sense.

mod events;
mod places;

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Now, Tick};
use crate::error::{Error, Holder, Remaining};
use crate::event::EventKind;
use crate::mutant::mutant;
use crate::op::holder::KEPT;
use crate::op::job::JobEnd;
use crate::op::{Answer, Verb, Verdict};
use crate::options::{Wait, wire_millis};
use crate::protocol::ballot::{Late, Standing};
use crate::protocol::context::Context;
use crate::protocol::outage::Outage;
use crate::protocol::round::Round;
use crate::protocol::tally::Tally;
use crate::protocol::waiting::{Found, Waiting};
use crate::protocol::{Command, Recipe, Step, Tag, leave};
use crate::server::Request;
use crate::validity::{self, Reading};
use crate::wait::{self, LeaveReason, Role, Waiter};

/// The decision of one step of the acquire loop.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "it is moved once, and a grant is the usual end")]
pub(super) enum Decision {
    /// The loop continues.
    Pending,
    /// The round grants the lock with this fence.
    Granted(Round, u64),
    /// The acquire has ended: the lock is busy and one attempt was all that the caller wanted, or the job is over, or the acquire
    /// failed for good.
    Ended(Result<Option<JobEnd>, Error>),
}

/// The state of the loop.
#[derive(Debug)]
pub(super) struct Acquiring {
    pub(super) started: Tick,
    /// The end of the wait; `NEVER` for a wait without an end.
    deadline: Tick,
    pub(super) round: Option<Round>,
    next_try: Tick,
    outage: Outage,
    last_fence: u64,
    pub(super) waiting: Waiting,
    /// Whether any server may have put us into its queue.
    enqueued: bool,
    queued_emitted: bool,
    warned: bool,
    /// Whether the lock was another's in an earlier round.
    pub(super) met_busy: bool,
    /// The time since which another node may answer.
    pub(super) suspected_at: Option<Tick>,
    /// The owner value of the first round, if it is given.
    pub(super) owner: Option<Arc<str>>,
    /// The last round, if it has taken a hold over and is not undone: the next one asks again with its owner value.
    unreplicated: Option<Round>,
}

impl Acquiring {
    pub(super) fn new(recipe: &Recipe, waiter: Option<Waiter>, now: Tick) -> Self {
        let deadline = match recipe.options.wait {
            Wait::For(span) => now.after(span),
            Wait::Forever => Tick::NEVER,
        };
        let waiting = Waiting::new(recipe, waiter, now);
        Self {
            started: now,
            deadline,
            round: None,
            next_try: waiting.first_try(now, deadline),
            outage: Outage::default(),
            last_fence: 0,
            waiting,
            enqueued: false,
            queued_emitted: false,
            warned: false,
            met_busy: false,
            suspected_at: None,
            owner: None,
            unreplicated: None,
        }
    }

    pub(super) fn wake_at(&self, recipe: &Recipe) -> Tick {
        self.round.as_ref().map_or(self.next_try, |round| round.ends(recipe)).min(self.waiting.long_at)
    }

    /// Takes note that this process runs again, and of how long it did not.
    pub(super) fn runs(&mut self, recipe: &Recipe, late: Duration, now: Tick, out: &mut Vec<Command>) {
        self.waiting.report_long(self.started, now, out);
        if let (false, Some(since), Some(slot)) = (late.is_zero(), self.outage.extend_for_pause(late), self.waiting.slot()) {
            slot.outage.begin(since);
        }
        if let Some(round) = &mut self.round {
            round.extend_for_pause(recipe, now);
        }
    }

    /// The time of the hint that led to the round.
    pub(super) fn notified_at(&self) -> Option<Tick> {
        self.waiting.notified_at
    }

    /// Ends the loop: undoes the round under way, and leaves the local queue.
    pub(super) fn abandon(&mut self, now: Tick, context: &mut Context<'_>) {
        self.cancel(now, context);
        self.quit(LeaveReason::GaveUp, context);
    }

    /// Takes us off the servers, unless other waiters of this process use the same slot.
    fn cancel(&mut self, now: Tick, context: &mut Context<'_>) {
        let entry =
            self.waiting.slot().filter(|slot| !slot.is_shared() && !mutant!(LeaverStays)).map(|slot| Arc::clone(slot.entry()));
        if let Some(entry) = entry.as_ref().filter(|_| !mutant!(LeaverOvertaken)) {
            context.removals.iter_mut().for_each(|removal| removal.take_along(entry, now));
        }
        match self.round.take().or_else(|| self.unreplicated.take()) {
            Some(round) => round.undo(context.recipe, now, entry, context.removals, context.out),
            None => {
                // Another waiter of this process, which has the lock by now, may have put the slot into the queues.
                let stands =
                    self.enqueued || self.waiting.slot().is_some_and(|slot| slot.has_arrived()) && !mutant!(EnqueuedByAnother);
                if let Some(entry) = entry.filter(|_| stands) {
                    let servers = 0..context.recipe.servers.len();
                    context.out.extend(servers.map(|server| leave(context.recipe, server, &entry, now)));
                }
            }
        }
    }

    fn quit(&self, reason: LeaveReason, context: &mut Context<'_>) {
        if self.waiting.slot().is_some() {
            context.out.push(Command::Quit(reason));
        }
    }

    /// Whether `round` is the one under way.
    pub(super) fn is_in(&self, round: u32) -> bool {
        self.round.as_ref().is_some_and(|current| current.number == round)
    }

    /// Takes a new role in the local queue; `at` is the time of the next try.
    pub(super) fn take_role(&mut self, role: Role, at: Option<Tick>, now: Tick, context: &mut Context<'_>) {
        self.waiting.take_role(role);
        if role == Role::First && !mutant!(FirstRoleDoesNotListen) {
            // The waiter before it may have got the lock at once, with this one behind it. Then this client doesn't listen yet.
            context.out.push(Command::Listen);
        }
        let at = at
            .map_or(now, |at| if mutant!(FirstRoleTrustsTtl) { at } else { at.min(wait::after_busy(now, true, 0, context.rng)) });
        self.next_try = self.next_try.min(at);
        if let Some(since) = self.waiting.slot().and_then(|slot| slot.outage.since()) {
            self.outage.join(since.max(self.started));
        }
    }

    /// Starts a round.
    fn send(&mut self, number: u32, now: Now, context: &mut Context<'_>) {
        let recipe = context.recipe;
        let given = self.owner.take().or_else(|| self.unreplicated.take().map(|round| round.owner));
        let random = context.rng.u128(..);
        let owner = given.unwrap_or_else(|| match self.started.as_micros() {
            started if mutant!(OwnerReused) => recipe.signature.owner(started, started.into()),
            _ => recipe.signature.owner(now.wall_us, random),
        });
        let ttl = recipe.first_ttl();
        let tag = Tag { round: number, step: Step::Acquire, sent: now.tick };
        let deadline = validity::end(now.tick, ttl).min(now.tick.after(recipe.response_timeout));
        context.emit(EventKind::Round, |event| event.owner = Some(Arc::clone(&owner)));
        self.waiting.round_begins();
        let servers = recipe.servers.len();
        let adopt = recipe.adopt.clone().or_else(|| self.beside(recipe));
        let mut stays = false;
        for server in 0..servers {
            let place = self.waiting.place(server);
            stays |= place.as_ref().is_some_and(|place| place.stays);
            let verb = Verb::Acquire {
                ttl_ms: wire_millis(recipe.key_ttl()),
                // On one server the clock of its slot gives the fence, above the one that was seen.
                proposal: if servers > 1 { now.proposal(servers).max(self.last_fence + 1) } else { self.last_fence },
                adopt: adopt.clone(),
                fair: recipe.options.fair,
                place,
                quorum_config: recipe.quorum_config,
                job: recipe.job.map(Box::new),
            };
            let request = Request::new(recipe.op(Arc::clone(&owner), verb), deadline);
            context.out.push(Command::Send { server, tag, request });
        }
        let mut round = Round::new(recipe, number, owner, stays, now.tick);
        round.is_beside = adopt.is_some_and(|adopt| adopt.beside);
        if let Some(slot) = self.waiting.slot() {
            round.enqueue_counts.extend((0..servers).map(|server| slot.enqueue_counts(server)));
        }
        self.round = Some(round);
    }

    /// Acts on the time: a round times out, or the next one starts.
    pub(super) fn wake(&mut self, now: Now, rounds: &mut u32, context: &mut Context<'_>) -> Decision {
        let recipe = context.recipe;
        if let Some(round) = &mut self.round {
            if now.tick < round.ends(recipe) {
                return Decision::Pending;
            }
            for server in 0..recipe.servers.len() {
                let within = recipe.response_timeout.as_millis();
                if round.ballot.is_pending(server) {
                    round.fail(server, format!("no answer within {within} ms"));
                } else if round.ballot.is_unconfirmed(server) {
                    round.fail(server, format!("no confirmation within {within} ms"));
                }
            }
            if let Standing::Granted(fence) = round.ballot.standing() {
                return self.granted(fence, now.tick, context);
            }
            return self.round_failed(now.tick, context);
        }
        if now.tick >= self.next_try {
            *rounds += 1;
            self.send(*rounds, now, context);
        }
        Decision::Pending
    }

    /// A server answered the round under way. The acquisition has checked the round of the tag.
    pub(super) fn answer(
        &mut self,
        (server, tag): (usize, Tag),
        answer: Answer,
        now: Tick,
        context: &mut Context<'_>,
    ) -> Decision {
        let recipe = context.recipe;
        let Some(round) = &mut self.round else { return Decision::Pending };
        if let Some(same_server) = answer.as_ref().ok().and_then(|reply| round.same_server(server, reply)) {
            let twins = [&recipe.servers[same_server], &recipe.servers[server]];
            let why = "these are one and the same server; a quorum needs independent ones".to_owned();
            let error = Error::invalid("servers", twins, why);
            return self.failed(error, now, context);
        }
        if let (Step::Acquire, Ok(reply)) = (tag.step, &answer) {
            round.at = reply.at;
            round.ranks[server] = self.waiting.rank(&reply.queued);
            self.enqueued |= round.ranks[server].is_some();
        }
        let standing = match (tag.step, answer) {
            (Step::Acquire, Ok(reply)) if reply.verdict == Verdict::Vote => {
                self.last_fence = self.last_fence.max(reply.fence);
                round.readings[server] = Some(Reading { sent: tag.sent, server_us: reply.time_us });
                (round.attempt, round.earlier, round.is_bare) = (reply.attempt, reply.earlier, reply.is_bare);
                round.fences = reply.fences;
                let (standing, late) = round.ballot.cast(server, reply.fence);
                match (late, round.ballot.fence()) {
                    (Late::Release, _) => context.out.push(round.release(recipe, server, now)),
                    (Late::Confirm, Some(fence)) => context.out.push(round.confirm(recipe, server, fence, now)),
                    _ => (),
                }
                standing
            }
            (Step::Acquire, answer) => {
                round.refuse(server, answer, &mut self.last_fence);
                round.ballot.oppose(server)
            }
            (Step::Confirm, Ok(reply)) if reply.verdict == Verdict::Ok => round.ballot.confirm(server),
            // The request to confirm overtook the acquire.
            (Step::Confirm, _) if round.ballot.is_pending(server) => return Decision::Pending,
            (Step::Confirm, Ok(reply)) => {
                round.refuse_confirmation(server, reply);
                round.ballot.refuse_confirmation(server)
            }
            // The vote stands; only its confirmation is unknown.
            (Step::Confirm, Err(failure)) => {
                round.confirmation_failed(server, failure);
                round.ballot.refuse_confirmation(server)
            }
            _ => return Decision::Pending,
        };
        match standing {
            Standing::Open => Decision::Pending,
            Standing::Confirm(fence) => {
                round.confirm_all(recipe, fence, now, context.out);
                Decision::Pending
            }
            Standing::Granted(_) if recipe.ask_all_first && round.is_awaited() => Decision::Pending,
            Standing::Granted(fence) => self.granted(fence, now, context),
            // The round is lost for sure, but to a holder or to an outage? That takes as many answers as a majority.
            Standing::Failed if !Tally::of(recipe, round).is_decided(recipe) => Decision::Pending,
            Standing::Failed => self.round_failed(now, context),
        }
    }

    /// A majority attests the fence. The grant counts only if validity is left.
    fn granted(&mut self, fence: u64, now: Tick, context: &mut Context<'_>) -> Decision {
        let recipe = context.recipe;
        let tally = self.round.as_ref().filter(|_| recipe.ask_all_first).map(|round| Tally::of(recipe, round));
        if tally.is_some_and(|tally| tally.mismatch.is_some()) {
            return self.round_failed(now, context);
        }
        let end = |round: &Round| validity::end(round.sent, recipe.first_ttl());
        if let Some(round) = self.round.take_if(|round| now < end(round) || mutant!(LateGrant)) {
            self.entered(recipe, &round, now);
            self.leave_queues(&round, now, context);
            self.quit(LeaveReason::Granted { until: end(&round), stays: self.slot_stays(recipe, &round) }, context);
            return Decision::Granted(round, fence);
        }
        if let Some(round) = &mut self.round {
            for server in 0..recipe.servers.len() {
                if round.readings[server].is_some() {
                    round.fail(server, "answered later than the ttl allows".to_owned());
                }
            }
        }
        if self.waiting.slot().is_some() {
            context.out.push(Command::Yield);
        }
        self.round_failed(now, context)
    }

    /// Undoes a round that can't be won any more, and decides whether to try again.
    fn round_failed(&mut self, now: Tick, context: &mut Context<'_>) -> Decision {
        let recipe = context.recipe;
        let Some(round) = self.round.take() else { return Decision::Pending };
        let mut tally = Tally::of(recipe, &round);
        tally.disown(|value| context.removals.iter().any(|removal| removal.is_of(value)));
        let voted = |server: usize| round.readings[server].is_some() || round.ballot.is_pending(server);
        self.waiting.round_failed((0..recipe.servers.len()).map(voted));
        let (rank, at, silent_since) = (round.ranks.iter().flatten().min().copied(), round.at, round.silent_since);
        self.undo(round, now, context);
        if let Some(error) = tally.final_error(recipe) {
            return self.failed(error, now, context);
        }
        if let Some(end) = tally.end {
            self.abandon(now, context);
            return Decision::Ended(Ok(Some(end)));
        }
        let slot = self.waiting.slot();
        // Until the next attempt of a job may begin, its lock counts as one that is kept after its release.
        let kept = tally.later.as_ref().map(|(left, _)| Holder { owner: KEPT.to_owned(), remaining: Remaining::For(*left) });
        if let Some((holder, by_majority)) = tally.holder.or_else(|| kept.map(|kept| (kept, true))) {
            slot.inspect(|slot| slot.outage.end());
            self.outage.end();
            self.met_busy = true;
            self.emit_busy(&holder, now, context);
            if recipe.busy_is_none {
                return Decision::Ended(Ok(None));
            }
            self.emit_queued(rank, context);
            if now >= self.deadline {
                self.abandon(now, context);
                let waited = now.since(self.started);
                let error = match tally.later {
                    Some((left, error)) => Error::not_due(recipe.name(), waited, left, &error),
                    None => Error::acquire_timeout(recipe.name_at(at), waited, holder, rank),
                };
                return Decision::Ended(Err(error));
            }
            let found = Found { holder: &holder, by_majority, shows_foreign: tally.shows_foreign, rank };
            self.next_try = self.waiting.after_busy(recipe, found, now, context.rng).min(self.deadline);
            return Decision::Pending;
        }
        let since = self.outage.fail(silent_since);
        slot.inspect(|slot| slot.outage.begin(since));
        let Some(next_try) = self.outage.next_try(recipe, self.deadline, now, context.rng) else {
            return self.failed(Error::unavailable(Some(recipe.name()), recipe.servers.len(), tally.failures), now, context);
        };
        self.next_try = next_try;
        Decision::Pending
    }

    /// Undoes a failed round. One that has taken a hold over stays if only replicas have not confirmed it: without its value there would be
    /// nothing left to take over.
    fn undo(&mut self, round: Round, now: Tick, context: &mut Context<'_>) {
        if context.recipe.adopt.is_some() && round.is_unreplicated() {
            self.unreplicated = Some(round);
        } else {
            round.undo(context.recipe, now, None, context.removals, context.out);
        }
    }

    /// Ends the acquire with an error that the other waiters of the local queue will probably meet, too.
    fn failed(&mut self, error: Error, now: Tick, context: &mut Context<'_>) -> Decision {
        self.cancel(now, context);
        self.quit(LeaveReason::Failed, context);
        Decision::Ended(Err(error))
    }
}

#[cfg(test)]
#[path = "acquiring_tests.rs"]
pub(in crate::protocol) mod tests;
