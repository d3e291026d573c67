//! The acquire loop: rounds until the lock is granted, the wait is over, or trying makes no sense.

use std::sync::Arc;

use crate::clock::{Now, Tick};
use crate::error::{Error, Holder, Remaining};
use crate::event::{Event, EventKind};
use crate::mutant::mutant;
use crate::options::{Wait, wire_millis};
use crate::protocol::ballot::{Ballot, Late, Standing};
use crate::protocol::farewell::Farewell;
use crate::protocol::round::{Refusal, Round};
use crate::protocol::tally::Tally;
use crate::protocol::{Command, Recipe, Step, Tag};
use crate::server::{Answer, Op, Request, Verdict};
use crate::validity::{self, Reading};
use crate::wait;

/// What the acquire loop decided.
#[derive(Debug)]
pub(super) enum Decision {
    /// Go on.
    Pending,
    /// The round grants the lock with this token.
    Granted(Round, u64),
    /// The lock is somebody's, and one attempt was all that was wanted.
    Busy,
    /// It failed for good.
    Failed(Error),
}

/// The state of the loop.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) started: Tick,
    /// When the wait is over; `NEVER` without an end.
    deadline: Tick,
    round: Option<Round>,
    next_try: Tick,
    unavailable_since: Option<Tick>,
    polls: u32,
    failures: u32,
    last_fence: u64,
    warned: bool,
}

impl Attempt {
    pub(super) fn new(recipe: &Recipe, now: Tick) -> Self {
        let deadline = match recipe.options.wait {
            _ if recipe.one_shot => now,
            Wait::For(span) => now.after(span),
            Wait::Forever => Tick::NEVER,
        };
        Self {
            started: now,
            deadline,
            round: None,
            next_try: now,
            unavailable_since: None,
            polls: 0,
            failures: 0,
            last_fence: 0,
            warned: false,
        }
    }

    pub(super) fn wake_at(&self, recipe: &Recipe) -> Tick {
        self.round.as_ref().map_or(self.next_try, |round| round.ends(recipe))
    }

    /// Ends the loop; the round under way, if any, must be undone.
    pub(super) fn abandon(&mut self) -> Option<Round> {
        self.next_try = Tick::NEVER;
        self.round.take()
    }

    /// Whether `round` is the one under way.
    pub(super) fn is_in(&self, round: u32) -> bool {
        self.round.as_ref().is_some_and(|current| current.number == round)
    }

    /// Starts a round.
    fn send(&mut self, recipe: &Recipe, number: u32, now: Now, rng: &mut fastrand::Rng, out: &mut Vec<Command>) {
        let owner = match self.started.as_micros() {
            started if mutant!(OwnerReused) => recipe.signature.owner(started, started.into()),
            _ => recipe.signature.owner(now.wall_us, rng.u128(..)),
        };
        let ttl = recipe.options.ttl;
        let tag = Tag { round: number, step: Step::Acquire, sent: now.tick };
        let request = Request::new(
            Op::Acquire {
                keys: Arc::clone(&recipe.keys),
                owner: Arc::clone(&owner),
                ttl_ms: wire_millis(ttl),
                proposal: now.wall_us.max(self.last_fence + 1),
                adopt: recipe.adopt.clone(),
                fleet: recipe.fleet,
            },
            validity::end(now.tick, ttl).min(now.tick.after(recipe.response_timeout)),
        );
        let mut attempt = Event::new(EventKind::Attempt);
        attempt.lock = Some(recipe.name().to_owned());
        attempt.owner = Some(owner.to_string());
        out.push(Command::Emit(attempt));
        let servers = recipe.servers.len();
        self.round = Some(Round {
            number,
            owner,
            sent: now.tick,
            ballot: Ballot::new(recipe.quorum()),
            readings: vec![None; servers],
            refusals: vec![None; servers],
            run_ids: vec![None; servers],
            times_out: now.tick.after(recipe.response_timeout),
        });
        for server in 0..servers {
            out.push(Command::Send { server, tag, request: request.clone() });
        }
    }

    /// Time passed: a round times out, or the next one starts.
    pub(super) fn wake(
        &mut self,
        recipe: &Recipe,
        now: Now,
        rounds: &mut u32,
        rng: &mut fastrand::Rng,
        farewells: &mut Vec<Farewell>,
        out: &mut Vec<Command>,
    ) -> Decision {
        if let Some(round) = &mut self.round {
            if now.tick < round.ends(recipe) {
                return Decision::Pending;
            }
            for server in 0..recipe.servers.len() {
                if round.ballot.is_pending(server) {
                    let message = format!("no answer within {} ms", recipe.response_timeout.as_millis());
                    round.fail(server, message);
                } else if round.ballot.is_unconfirmed(server) {
                    round.fail(server, format!("no confirmation within {} ms", recipe.response_timeout.as_millis()));
                }
            }
            if let Standing::Granted(token) = round.ballot.standing() {
                return self.granted(recipe, token, now.tick, rng, farewells, out);
            }
            return self.round_failed(recipe, now.tick, rng, farewells, out);
        }
        if now.tick >= self.next_try {
            *rounds += 1;
            self.send(recipe, *rounds, now, rng, out);
        }
        Decision::Pending
    }

    /// A server answered to the round under way (the caller has checked the tag's round).
    pub(super) fn answer(
        &mut self,
        recipe: &Recipe,
        (server, tag): (usize, Tag),
        answer: Answer,
        now: Tick,
        rng: &mut fastrand::Rng,
        farewells: &mut Vec<Farewell>,
        out: &mut Vec<Command>,
    ) -> Decision {
        let Some(round) = &mut self.round else { return Decision::Pending };
        if let Some(twin) = answer.as_ref().ok().and_then(|reply| round.twin(server, reply)) {
            let twins = [&recipe.servers[twin], &recipe.servers[server]];
            let why = "these are one and the same server; a quorum needs independent ones".to_owned();
            let error = Error::invalid("servers", twins, why);
            if let Some(round) = self.round.take() {
                round.undo(recipe, now, farewells, out);
            }
            return Decision::Failed(error);
        }
        let standing = match (tag.step, answer) {
            (Step::Acquire, Ok(reply)) if reply.verdict == Verdict::Vote => {
                self.last_fence = self.last_fence.max(reply.fence);
                round.readings[server] = Some(Reading { sent: tag.sent, server_us: reply.time_us });
                let (standing, late) = round.ballot.cast(server, reply.fence);
                match (late, round.ballot.token()) {
                    (Late::Release, _) => out.push(round.release(recipe, server, now)),
                    (Late::Confirm, Some(token)) => out.push(round.confirm(recipe, server, token, now)),
                    _ => (),
                }
                standing
            }
            (Step::Acquire, answer) => {
                round.refuse(server, answer, &mut self.last_fence);
                round.ballot.oppose(server)
            }
            (Step::Confirm, Ok(reply)) if reply.verdict == Verdict::Ok => round.ballot.confirm(server),
            // It overtook the acquire.
            (Step::Confirm, _) if round.ballot.is_pending(server) => return Decision::Pending,
            (Step::Confirm, Ok(reply)) => {
                round.refuse_confirmation(server, reply);
                round.ballot.refuse_confirmation(server)
            }
            // The vote stands, only its confirmation is unknown.
            (Step::Confirm, Err(failure)) => {
                round.refusals[server] = Some(Refusal::Failed(failure));
                round.ballot.refuse_confirmation(server)
            }
            _ => return Decision::Pending,
        };
        match standing {
            Standing::Open => Decision::Pending,
            Standing::Confirm(token) => {
                round.confirm_all(recipe, token, now, out);
                Decision::Pending
            }
            Standing::Granted(_) if recipe.introduce && round.is_awaited() => Decision::Pending,
            Standing::Granted(token) => self.granted(recipe, token, now, rng, farewells, out),
            // Lost for sure, but to a holder or to an outage? That takes as many answers as winning does.
            Standing::Failed if !Tally::of(recipe, round).is_decided(recipe) => Decision::Pending,
            Standing::Failed => self.round_failed(recipe, now, rng, farewells, out),
        }
    }

    /// A majority attests the token; it counts only if validity is left.
    fn granted(
        &mut self,
        recipe: &Recipe,
        token: u64,
        now: Tick,
        rng: &mut fastrand::Rng,
        farewells: &mut Vec<Farewell>,
        out: &mut Vec<Command>,
    ) -> Decision {
        let tally = self.round.as_ref().filter(|_| recipe.introduce).map(|round| Tally::of(recipe, round));
        if tally.is_some_and(|tally| tally.mismatch.is_some()) {
            return self.round_failed(recipe, now, rng, farewells, out);
        }
        let in_time = self.round.as_ref().is_some_and(|round| now < validity::end(round.sent, recipe.options.ttl));
        if let Some(round) = self.round.take_if(|_| in_time || mutant!(LateGrant)) {
            return Decision::Granted(round, token);
        }
        if let Some(round) = &mut self.round {
            for server in 0..recipe.servers.len() {
                if round.readings[server].is_some() {
                    round.fail(server, "answered later than the ttl allows".to_owned());
                }
            }
        }
        self.round_failed(recipe, now, rng, farewells, out)
    }

    /// The round can't be won: undo it, and see whether to try again.
    fn round_failed(
        &mut self,
        recipe: &Recipe,
        now: Tick,
        rng: &mut fastrand::Rng,
        farewells: &mut Vec<Farewell>,
        out: &mut Vec<Command>,
    ) -> Decision {
        let Some(round) = self.round.take() else { return Decision::Pending };
        round.undo(recipe, now, farewells, out);
        let tally = Tally::of(recipe, &round);
        if let Some(error) = tally.final_error(recipe) {
            return Decision::Failed(error);
        }
        if let Some(holder) = &tally.holder {
            self.unavailable_since = None;
            self.failures = 0;
            self.tell_busy(recipe, holder, out);
            if recipe.one_shot {
                return Decision::Busy;
            }
            if now >= self.deadline {
                return Decision::Failed(Error::acquire_timeout(recipe.name(), now.since(self.started), holder.clone()));
            }
            self.next_try = wait::after_busy(now, holder.remaining, self.polls, rng).min(self.deadline);
            self.polls = self.polls.saturating_add(1);
            return Decision::Pending;
        }
        let since = *self.unavailable_since.get_or_insert(round.sent);
        let given_up = now.since(since) >= recipe.unavailable_after;
        if now >= self.deadline || given_up {
            return Decision::Failed(Error::unavailable(Some(recipe.name()), tally.failures));
        }
        // Try a last time when the wait, or the patience, ends.
        let latest = self.deadline.min(since.after(recipe.unavailable_after));
        self.next_try = wait::after_failure(now, self.failures, rng).min(latest);
        self.failures = self.failures.saturating_add(1);
        Decision::Pending
    }

    fn tell_busy(&mut self, recipe: &Recipe, holder: &Holder, out: &mut Vec<Command>) {
        let mut event = Event::new(EventKind::Busy);
        event.lock = Some(recipe.name().to_owned());
        event.rival = Some(holder.owner.clone());
        out.push(Command::Emit(event));
        if holder.remaining == Remaining::Forever && !self.warned {
            self.warned = true;
            let mut event = Event::new(EventKind::Warning);
            event.lock = Some(recipe.name().to_owned());
            event.rival = Some(holder.owner.clone());
            event.message =
                Some("the holder's key has no expiry: if its process died, only deleting the key frees the lock".to_owned());
            out.push(Command::Emit(event));
        }
    }
}
