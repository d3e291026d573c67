//! The hold: its renewals, the extensions that callers ask for, and the two ways in which a lock is lost.
//!
//! *Refused* is loss at once: so many servers refused that no majority is left. *Unknown* (no answer) is loss when validity ends,
//! by the local clock. What the holder believes never exceeds what the servers keep: a round counts from its own request, by its
//! own answers, however late, and only while the old validity lasts.

mod noted;

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::error::{Error, Loss, LossReason, ServerFailure};
use crate::event::EventKind;
use crate::mutant::mutant;
use crate::op::{Answer, HoldState, Verb, Verdict};
use crate::options::wire_millis;
use crate::per_server::PerServer;
use crate::protocol::ballot::Late;
use crate::protocol::extend_requests::{self, ExtendRequests};
use crate::protocol::extension::{Extension, LONGEST_PAUSE, Progress, least_pause};
use crate::protocol::removal::{Concern, STRAGGLER};
use crate::protocol::round::Round;
use crate::protocol::rounds::{RoundAnswer, Rounds};
use crate::protocol::witness::Witness;
use crate::protocol::{Amount, CallId, Command, Recipe, Step, Tag};
use crate::server::Request;
use crate::validity::{self, Reading};

/// The connection for renewals is opened after the ttl divided by this number.
pub(super) const KEEP_WARM_DIVISOR: u32 = 20;

/// A granted lock.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) round: Round,
    pub(super) fence: u64,
    pub(super) granted: Tick,
    pub(super) validity_end: Tick,
    /// The end of the hold by `max_hold`.
    hold_end: Tick,
    pub(super) renewing: bool,
    pub(super) next_renewal: Tick,
    /// The time since which a server may have lost the key. An extension that is sent later, and confirmed, ends the suspicion.
    pub(super) suspected_at: Option<Tick>,
    /// The writing of a missing key that is under way, on a single server.
    pub(super) healing: Option<Box<Extension>>,
    /// The time at which a single server in quarantine answered the last heal.
    pub(super) healed_at: Tick,
    /// The time at which the connection for renewals is prepared, so that no renewal waits for a connection.
    keep_warm_at: Tick,
    pub(super) extensions: Rounds,
    /// The number of rounds in a row that timed out.
    timeouts: u32,
    /// The latest expiry that a server may have given to the key.
    pub(super) kept_until: Tick,
    /// Until when each server may still read a write of the key from a broken connection; `NEVER` while a heal has no answer.
    pub(super) unsure_until: PerServer<Tick>,
    pub(super) requests: ExtendRequests,
    /// Whether an extension found that a client waits.
    waits: bool,
    /// Whether its acquire found the lock held by another program.
    pub(super) met_busy: bool,
    /// Whether the history says that it holds, if it is to.
    is_noted: bool,
    /// Whether others may have been inside when it was granted.
    is_among: bool,
    /// Whether another node may answer since the grant.
    pub(super) failed_over: bool,
}

impl Hold {
    pub(super) fn begin(recipe: &Recipe, round: Round, fence: u64, now: Tick, out: &mut Vec<Command>) -> Self {
        let ttl = if mutant!(GraceBelieved) { recipe.key_ttl() } else { recipe.first_ttl() };
        let max_hold = recipe.options.max_hold.filter(|_| !mutant!(MaxHoldIgnored));
        let hold_end = max_hold.map_or(Tick::NEVER, |span| now.after(span));
        let validity_end = validity::end(if mutant!(GrantValidFromReply) { now } else { round.sent }, ttl);
        for (server, late) in round.ballot.others(fence).collect::<Vec<_>>() {
            match late {
                Late::Confirm if mutant!(NoWriteBack) => (),
                Late::Confirm => out.push(round.confirm(recipe, server, fence, now)),
                Late::Release => out.push(round.release(recipe, server, now)),
                Late::Keep => (),
            }
        }
        let unsure = |server: usize| if round.is_unsure(server) { now.after(STRAGGLER) } else { Tick::default() };
        let mut hold = Self {
            fence,
            kept_until: now.after(recipe.key_ttl()),
            unsure_until: (0..recipe.servers.len()).map(unsure).collect(),
            timeouts: 0,
            granted: now,
            validity_end: validity_end.min(hold_end),
            hold_end,
            renewing: recipe.options.renew,
            next_renewal: Tick::NEVER,
            suspected_at: round.suspected_at,
            healing: None,
            healed_at: Tick::default(),
            // A short hold never needs the connection, and on a slow link it takes long to open.
            keep_warm_at: if recipe.options.renew { round.sent.after(ttl / KEEP_WARM_DIVISOR) } else { Tick::NEVER },
            waits: false,
            met_busy: false,
            is_noted: false,
            is_among: noted::is_among(recipe, &round, fence),
            failed_over: round.suspected_at.is_some(),
            round,
            extensions: Rounds::default(),
            requests: ExtendRequests::default(),
        };
        hold.next_renewal = if hold.suspected_at.is_some() { now } else { hold.renewal_after(recipe) };
        hold.keep_warm(now, out);
        hold
    }

    pub(super) fn owner(&self) -> &Arc<str> {
        &self.round.owner
    }

    pub(super) fn round_number(&self) -> u32 {
        self.round.number
    }

    /// The part of a server in a release.
    pub(super) fn concern(&self, server: usize, now: Tick) -> Concern {
        if now < self.unsure_until[server] { Concern::AskTwice } else { Concern::Ask }
    }

    /// Whether an acquire or a heal has no answer so far: the server may write the key at any time.
    pub(super) fn is_writing(&self, server: usize) -> bool {
        self.unsure_until[server] == Tick::NEVER || self.round.ballot.is_pending(server)
    }

    /// The number of servers that voted for others since the grant, and the highest of these votes if they prove another hold.
    pub(super) fn others(&self, witness: &Witness) -> (usize, Option<u64>) {
        let is_pending = |server: usize| self.round.ballot.is_pending(server);
        let count = witness.count(self.fence, is_pending);
        (count, witness.latest(self.fence, is_pending).filter(|_| witness.proves(count)))
    }

    /// Adds the hold that came between to a loss, if the servers have shown one: a key that is gone may have been another's.
    pub(super) fn attribute(&self, loss: Loss, witness: &Witness) -> Loss {
        let (_, latest) = self.others(witness);
        let gone = matches!(loss.reason, LossReason::Missing);
        match loss.reason {
            LossReason::Missing | LossReason::Taken if loss.next_owner.is_some() || latest.is_some() => {
                let reason = if gone { LossReason::Taken } else { loss.reason };
                Loss { reason, next_fence: latest, ..loss }
            }
            _ => loss,
        }
    }

    /// Stops renewing and extending. The callers that wait for an extension get this error.
    pub(super) fn stop(&mut self, error: impl Fn() -> Error, out: &mut Vec<Command>) {
        (self.renewing, self.suspected_at) = (false, None);
        self.extensions.stop();
        out.extend(self.requests.cancel_all().into_iter().map(|call| Command::Extended(call, Err(error()))));
    }

    pub(super) fn wake_at(&self) -> Tick {
        let planned = if self.extends() { self.next_renewal } else { Tick::NEVER };
        let next = self.extensions.times_out().unwrap_or(planned);
        let keep_warm_at = if self.renewing { self.keep_warm_at } else { Tick::NEVER };
        next.min(self.requests.gives_up()).min(self.validity_end).min(keep_warm_at)
    }

    fn keep_warm(&mut self, now: Tick, out: &mut Vec<Command>) {
        if now >= self.keep_warm_at {
            self.keep_warm_at = Tick::NEVER;
            out.push(Command::KeepWarm);
        }
    }

    /// Lets callers wait longer, by the time in which this process did not run.
    pub(super) fn extend_for_pause(&mut self, late: Duration) {
        self.requests.extend_for_pause(late);
    }

    /// Takes a late answer to the granted round: a vote below the fence is confirmed, a vote above it released.
    pub(super) fn late_vote(
        &mut self,
        recipe: &Recipe,
        (server, step): (usize, Step),
        answer: &Answer,
        now: Tick,
        out: &mut Vec<Command>,
    ) -> Option<Loss> {
        match answer {
            Ok(reply) if step == Step::Acquire && reply.verdict == Verdict::Vote => {
                self.round.readings[server] = Some(Reading { sent: self.round.sent, server_us: reply.time_us });
                match self.round.ballot.cast(server, reply.fence).1 {
                    _ if mutant!(LateVoteReleased) => out.push(self.round.release(recipe, server, now)),
                    Late::Confirm => out.push(self.round.confirm(recipe, server, self.fence, now)),
                    Late::Release => out.push(self.round.release(recipe, server, now)),
                    Late::Keep => (),
                }
            }
            _ => self.forget_vote((server, step), answer, now),
        }
        self.healed_alone(recipe, step, answer, now, out)
    }

    /// Notes an answer that doesn't count. The release has to know whether the server may still write the key.
    pub(super) fn forget_vote(&mut self, (server, step): (usize, Step), answer: &Answer, now: Tick) {
        if matches!(step, Step::Acquire | Step::Heal) {
            let is_unsure = matches!(answer, Err(failure) if failure.maybe_applied);
            self.unsure_until[server] = if is_unsure { now.after(STRAGGLER) } else { Tick::default() };
        }
        if step == Step::Acquire && self.round.ballot.is_pending(server) {
            self.round.ballot.oppose(server);
        }
    }

    /// The loss of a hold whose validity has ended.
    pub(super) fn expiry_at(&self, recipe: &Recipe, now: Tick) -> Loss {
        let reason = if now >= self.hold_end { LossReason::MaxHold } else { LossReason::Expired };
        Loss { silence: self.extensions.silence(&recipe.servers), ..Loss::new(reason, now.since(self.validity_end)) }
    }

    /// Adds a caller's request for an extension. The span that shall remain is fixed now.
    pub(super) fn extend(&mut self, recipe: &Recipe, call: CallId, amount: Amount, now: Tick) -> Result<(), Error> {
        let span = extend_requests::reach(recipe, amount, self.validity_end.since(now))?;
        self.requests.add(recipe, call, span, now);
        if self.extensions.current().is_none() {
            self.next_renewal = now;
        }
        Ok(())
    }

    /// Acts on the time: the end of validity, of a round, or the begin of a renewal.
    pub(super) fn wake(&mut self, recipe: &Recipe, now: Tick, rounds: &mut u32, out: &mut Vec<Command>) -> Option<Loss> {
        if now >= self.validity_end {
            return Some(self.expiry_at(recipe, now));
        }
        self.keep_warm(now, out);
        let cancelled = self.requests.stop_waiting(now);
        let failures = || self.extensions.failures(&recipe.servers);
        out.extend(cancelled.into_iter().map(|call| unavailable(recipe, call, failures())));
        if self.extensions.times_out().is_some_and(|at| now >= at) {
            self.unknown(recipe, now, out);
        }
        if self.extensions.current().is_none() && now >= self.next_renewal {
            let mut least = if self.renewing { recipe.options.ttl } else { Duration::ZERO };
            if self.suspected_at.is_some() && !mutant!(LostExtensionIgnored) {
                // The server may have lost an extension, and not the key: it has to last as long as the hold does anyway.
                least = least.max(self.validity_end.since(now));
            }
            // One round fulfils all requests and is the renewal, too: it asks for the longest span of all. A renewal behind an
            // extension to a shorter span would come too late on a slow link.
            if let Some(span) = self.requests.span() {
                self.send(recipe, if mutant!(ExtendDelaysRenewal) { span } else { span.max(least) }, now, rounds, out);
                self.requests.sent(*rounds);
            } else if self.extends() {
                self.send(recipe, least, now, rounds, out);
            }
        }
        None
    }

    fn send(&mut self, recipe: &Recipe, span: Duration, now: Tick, rounds: &mut u32, out: &mut Vec<Command>) {
        *rounds += 1;
        // At most to the end that `max_hold` sets, which the last extension reaches.
        let span = span.min(validity::asking_for(self.hold_end.since(now)));
        // Three tries of equal length fit into the remaining time: ever shorter tries would never see a slow answer.
        let share = self.validity_end.since(now) / 3u32.saturating_sub(self.timeouts).max(1);
        let timeout = share.max(least_pause(recipe)).min(recipe.response_timeout);
        let key_span = recipe.key_span(span);
        self.kept_until = self.kept_until.max(now.after(key_span)).max(self.validity_end.after(key_span));
        if self.suspected_at.is_some() && self.is_on_one_server() && !mutant!(ClockNotRaised) {
            // The clock of the node that answers now may be behind. Nobody waits for the answer.
            let tag = Tag { round: 0, step: Step::Leave, sent: now };
            out.push(recipe.send(0, tag, (&self.round.owner, Verb::Confirm { fence: self.fence }), self.validity_end));
        }
        let tag = Tag { round: *rounds, step: Step::Extend, sent: now };
        let verb = Verb::Extend { ttl_ms: wire_millis(key_span), fence: self.fence };
        let op = recipe.op(Arc::clone(&self.round.owner), verb);
        let request = Request::new(op, self.validity_end);
        out.extend((0..recipe.servers.len()).map(|server| Command::Send { server, tag, request: request.clone() }));
        let extension = Extension::new(*rounds, now, span, now.after(timeout), recipe.quorum());
        self.extensions.begin(extension);
    }

    /// Takes a server's answer to an extension.
    pub(super) fn answer(
        &mut self,
        recipe: &Recipe,
        (server, tag): (usize, Tag),
        answer: Answer,
        now: Tick,
        out: &mut Vec<Command>,
    ) -> Option<Loss> {
        match self.extensions.answer((server, tag.round), now, &self.round.owner, answer, &mut self.round.readings) {
            RoundAnswer::Forgot if now < self.validity_end => {
                self.heal(recipe, server, now, out);
                None
            }
            RoundAnswer::Nothing | RoundAnswer::Forgot => None,
            RoundAnswer::Open(Progress::Refused(LossReason::Missing, _), is_current) if self.heals_alone(recipe, tag.sent) => {
                self.heal_missing(recipe, is_current, now, out);
                None
            }
            RoundAnswer::Open(Progress::Refused(reason, seen), _) => {
                let loss = Loss::new(reason, now.since(self.validity_end));
                let conflict = reason == LossReason::Conflict;
                Some(if conflict { Loss { found: seen, ..loss } } else { Loss { next_owner: seen, ..loss } })
            }
            // Validity has ended: the timer reports that, whatever has arrived since.
            _ if now >= self.validity_end && !mutant!(LateExtension) => None,
            RoundAnswer::Confirmed(extension) => {
                self.confirmed(recipe, &extension, now, out);
                None
            }
            RoundAnswer::Open(Progress::Unknown, true) => {
                self.unknown(recipe, now, out);
                None
            }
            RoundAnswer::Open(..) => None,
        }
    }

    pub(super) fn confirmed(&mut self, recipe: &Recipe, extension: &Extension, now: Tick, out: &mut Vec<Command>) {
        let latest = self.extensions.current().map_or(extension.sent, |current| current.sent);
        let counted_from = match extension.sent {
            _ if mutant!(ExtensionValidFromReply) => now,
            _ if mutant!(EarlierRoundFromLatest) => latest,
            sent => sent,
        };
        let end = validity::end(counted_from, extension.span).min(self.hold_end);
        let remaining = self.validity_end.since(now);
        self.validity_end = if mutant!(RenewalShortens) { end } else { self.validity_end.max(end) };
        (self.timeouts, self.round.is_bare) = (0, false);
        self.waits |= extension.waits;
        self.next_renewal = self.renewal_after(recipe).max(now);
        let fulfilled = self.requests.fulfil(extension.round);
        let kind = if fulfilled.is_empty() { EventKind::Renewed } else { EventKind::Extended };
        let mut event = self.event(recipe, kind);
        (event.took, event.remaining) = (Some(now.since(extension.sent)), Some(remaining));
        // Before the answers: an event of what a caller does next must not overtake this one.
        out.push(Command::emit(event));
        out.extend(fulfilled.into_iter().map(|call| Command::Extended(call, Ok(()))));
        if !std::mem::replace(&mut self.is_noted, true) {
            out.extend(self.note(recipe, HoldState::Holds).map(Command::Log));
        }
        self.suspected_at = self.suspected_at.filter(|since| extension.sent < *since && !mutant!(EarlierReplidConfirms));
        if !self.requests.is_empty() || self.suspected_at.is_some() {
            self.next_renewal = now;
        }
        for server in (0..recipe.servers.len()).filter(|server| extension.is_forgetful(*server)) {
            self.heal(recipe, server, now, out);
        }
    }

    /// The time of the next renewal; `NEVER` once validity reaches the end that `max_hold` sets.
    fn renewal_after(&self, recipe: &Recipe) -> Tick {
        let next = validity::next_renewal(self.validity_end, recipe.options.ttl);
        if self.validity_end < self.hold_end { next } else { Tick::NEVER }
    }

    /// Ends a round without a majority: tries again while validity lasts, and answers callers that have waited long enough.
    fn unknown(&mut self, recipe: &Recipe, now: Tick, out: &mut Vec<Command>) {
        let Some(extension) = self.extensions.end_current() else { return };
        let failures = || extension.failures(&recipe.servers);
        out.extend(self.requests.stop_trying(now).into_iter().map(|call| unavailable(recipe, call, failures())));
        let left = self.validity_end.since(now);
        let mut pause = (left / 8).min(LONGEST_PAUSE).max(least_pause(recipe));
        if self.suspected_at.is_some_and(|suspected_at| extension.sent < suspected_at) {
            // The connection to the old primary was closed, and the one to the new primary is there.
            pause = Duration::ZERO;
        }
        if now >= extension.times_out {
            self.timeouts += 1;
            // The round has waited already.
            pause = least_pause(recipe).saturating_sub(now.since(extension.sent));
        }
        let again = now.after(pause).min(self.requests.last_try());
        // If an earlier round was confirmed meanwhile, there is no hurry.
        self.next_renewal =
            if self.requests.is_empty() && self.suspected_at.is_none() { again.max(self.renewal_after(recipe)) } else { again };
    }
}

/// The answer for the caller of an extend that no majority answered.
fn unavailable(recipe: &Recipe, call: CallId, failures: Vec<ServerFailure>) -> Command {
    Command::Extended(call, Err(Error::unavailable(Some(recipe.name()), recipe.servers.len(), failures)))
}

#[cfg(test)]
#[path = "hold_tests.rs"]
pub(in crate::protocol) mod tests;

#[cfg(test)]
#[path = "hold_amount_tests.rs"]
mod amount_tests;
