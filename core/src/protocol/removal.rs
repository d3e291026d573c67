//! Removal: a release on N servers, or the undo of a round, deletes our value wherever it is or may be.

mod concern;

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::error::ServerFailure;
use crate::error::sentence::each;
use crate::machine::ALIVE_MS;
use crate::mutant::mutant;
use crate::op::holder::kept;
use crate::op::job::{Ending, OpenAttempt};
use crate::op::{Answer, Failure, FailureKind, Op, Queued, Reply, Verb, Verdict};
use crate::per_server::{PerServer, per_server};
use crate::protocol::overlap::Refused;
use crate::protocol::release::{Outcome, Release};
use crate::protocol::{Command, Quorum, Recipe, Step, Tag, leave, release};
use crate::server::Request;

pub(super) use concern::Concern;

/// The progress of a removal on one server.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    /// Nothing of ours can be there.
    Unneeded,
    /// Asked. With it: whether an earlier request ended without an answer; whether our acquire or heal turned out to have written
    /// the value since; and the end of the time to wait for the answer.
    Asked {
        sent: Tick,
        unsure: bool,
        late: bool,
        until: Tick,
    },
    /// To be asked again.
    Again {
        at: Tick,
        unsure: bool,
    },
    Deleted,
    Gone,
    /// It was asked, and did not answer. The key has expired by now.
    Unanswered,
    Taken(String),
    /// The key holds what no lock writes there.
    Conflict(String),
}

/// The pause before a release without an answer is sent again.
const RETRY: Duration = Duration::from_millis(100);

/// The pause before one more request after a broken connection: behind our undo, the server may still read our acquire from it.
pub(super) const STRAGGLER: Duration = Duration::from_millis(500);

/// The value to take off the servers.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) round: u32,
    pub(super) owner: Arc<str>,
    /// The waiter that leaves the queues with it.
    pub(super) leaves: Option<Arc<str>>,
    /// How the attempt ends that has this value, and which one that is, of a job.
    pub(super) ends: Option<(Ending, OpenAttempt)>,
    /// Until when nobody else may get the lock.
    pub(super) keeps_until: Tick,
    /// The whole value of the key until the first request, if that is enough for it.
    pub(super) shown: Option<Arc<str>>,
}

/// One value being deleted on N servers, until all answered or `deadline`.
#[derive(Clone, Debug)]
pub(super) struct Removal {
    pub(super) value: Value,
    /// For how long the first request keeps the lock.
    kept: Duration,
    quorum: Quorum,
    /// Whether this is the undo of a round, not the release of a hold.
    undoes: bool,
    /// Whether the first request was sent within validity. If so, a later request that finds no value finds our own work.
    within_validity: bool,
    overrun: Duration,
    /// The time by which the key has expired.
    deadline: Tick,
    /// The time until which an acquire without an answer may put the waiter into a queue.
    leaves_until: Tick,
    /// The number of acquires and heals of the same value without an answer: each may succeed late.
    pub(super) awaited: usize,
    servers: PerServer<Progress>,
    /// The time of one more request to each server, whatever the server has answered.
    stragglers: PerServer<Tick>,
    failed: PerServer<Option<Failure>>,
    /// The last refusal, unless an earlier request may have been done.
    pub(super) refused: Option<Refused>,
}

impl Removal {
    /// Starts a removal of `owner` on the servers that `concerned` selects. `validity_end` is `None` for an undone round. No
    /// server keeps the value longer than `kept_until`, or a ttl from now.
    pub(super) fn begin(
        recipe: &Recipe,
        value: Value,
        now: Tick,
        validity_end: Option<Tick>,
        kept_until: Tick,
        concerned: impl Fn(usize) -> Concern,
        out: &mut Vec<Command>,
    ) -> Self {
        let mut removal = Self {
            kept: value.keeps_until.since(now),
            value,
            quorum: recipe.quorum(),
            undoes: validity_end.is_none(),
            within_validity: validity_end.is_none_or(|end| now < end),
            overrun: validity_end.map_or(Duration::ZERO, |end| now.since(end)),
            deadline: kept_until,
            leaves_until: now,
            awaited: 0,
            servers: per_server(Progress::Unneeded, recipe.servers.len()),
            stragglers: per_server(Tick::NEVER, recipe.servers.len()),
            failed: per_server(None, recipe.servers.len()),
            refused: None,
        };
        removal.prolong(recipe, now);
        for server in 0..recipe.servers.len() {
            match concerned(server) {
                Concern::None => (),
                Concern::Ask => removal.ask(recipe, server, now, false, out),
                Concern::AskTwice => {
                    removal.ask(recipe, server, now, false, out);
                    removal.stragglers[server] = now.after(STRAGGLER);
                }
            }
        }
        removal
    }

    /// Moves the deadline: a key that was written until now expires after its ttl.
    fn prolong(&mut self, recipe: &Recipe, now: Tick) {
        self.deadline = self.deadline.max(now.after(recipe.key_ttl()));
        if self.value.ends.is_some() {
            // The end of an attempt is noted also when the key has expired. Its caller learns before that there was no answer.
            self.deadline = self.deadline.max(now.after(recipe.unavailable_after + recipe.response_timeout));
        }
        self.prolong_place(now);
    }

    /// Moves the end of the place: the queue drops a place that was taken until now when its client is silent. A release doesn't
    /// wait for that: its outcome is known when the key is gone.
    fn prolong_place(&mut self, now: Tick) {
        let until = now.after(Duration::from_millis(ALIVE_MS));
        match (&self.value.leaves, self.undoes) {
            (Some(_), true) if !mutant!(PlaceExpiresWithKey) => {
                self.leaves_until = until;
                self.deadline = self.deadline.max(until);
            }
            (Some(_), false) if !mutant!(HoldersPlaceExpiresWithKey) => self.leaves_until = until,
            _ => (),
        }
    }

    /// Whether `value` is the value of this removal.
    pub(super) fn is_of(&self, value: &str) -> bool {
        *self.value.owner == *value
    }

    fn ask(&mut self, recipe: &Recipe, server: usize, now: Tick, unsure: bool, out: &mut Vec<Command>) {
        self.servers[server] = Progress::Asked { sent: now, unsure, late: false, until: now.after(recipe.response_timeout * 2) };
        self.send(recipe, server, now, out);
    }

    fn send(&mut self, recipe: &Recipe, server: usize, now: Tick, out: &mut Vec<Command>) {
        let (op, shown) = (self.request(recipe, now), self.value.shown.take());
        let tag = Tag { round: self.value.round, step: Step::Release, sent: now };
        // Without a connection it fails by then with the reason, before its caller gives up or another request takes another way.
        let answered_by = now.after(recipe.response_timeout.min(recipe.unavailable_after / 2));
        out.push(Command::Send { server, tag, request: Request::new(op, self.deadline.min(answered_by)).of_value(shown) });
    }

    fn request(&self, recipe: &Recipe, now: Tick) -> Op {
        let (owner, leave) = (Arc::clone(&self.value.owner), self.value.leaves.clone());
        match &self.value.ends {
            Some((ending, attempt)) => recipe.op(owner, Verb::EndAttempt { ending: ending.clone(), attempt: *attempt, leave }),
            None => release(recipe, owner, leave, self.value.keeps_until.since(now)),
        }
    }

    /// Notes the servers on which an acquire or a heal of the value is under way. Its answer may never arrive, because the loop
    /// that would read it has stopped. So one more request follows, behind the write that ours overtook.
    pub(super) fn await_writes(&mut self, recipe: &Recipe, is_awaited: impl Fn(usize) -> bool, now: Tick) {
        let without_answer = now.after(recipe.response_timeout * 2 + STRAGGLER);
        for server in (0..self.servers.len()).filter(|server| is_awaited(*server)) {
            self.awaited += 1;
            if !mutant!(LateSuccessKept) {
                self.stragglers[server] = without_answer;
            }
        }
    }

    /// Takes the waiter out of the queues with every request that is still to come: an unanswered acquire may put it into one.
    pub(super) fn take_along(&mut self, entry: &Arc<str>, now: Tick) {
        if self.value.leaves.is_none() {
            self.value.leaves = Some(Arc::clone(entry));
            self.prolong_place(now);
        }
    }

    /// Asks once more, because our acquire or heal succeeded late.
    fn straggler(&mut self, recipe: &Recipe, server: usize, now: Tick, out: &mut Vec<Command>) {
        self.prolong(recipe, now);
        self.ask(recipe, server, now, true, out);
    }

    /// Takes an answer to an acquire or a heal of the value that arrived after the removal began.
    pub(super) fn late_write(&mut self, recipe: &Recipe, server: usize, now: Tick, answer: &Answer, out: &mut Vec<Command>) {
        self.awaited = self.awaited.saturating_sub(1);
        self.stragglers[server] = Tick::NEVER;
        match answer {
            // A request under way may have been sent before the waiter left.
            Ok(reply) if self.value.leaves.is_some() && reply.queued != Queued::Nothing => {
                self.straggler(recipe, server, now, out)
            }
            Ok(reply) if matches!(reply.verdict, Verdict::Vote | Verdict::Ok) => {
                if let Progress::Asked { late, .. } = &mut self.servers[server] {
                    // Most likely the server read the request after the write. The answer will show it.
                    *late = true;
                    // A heal may follow one that our request has undone.
                    if reply.verdict == Verdict::Ok && !mutant!(SecondHealKept) {
                        self.stragglers[server] = now;
                    }
                    self.prolong(recipe, now);
                } else {
                    self.straggler(recipe, server, now, out);
                }
            }
            // The server may still read the write. After a close, the connection itself undoes the write.
            Err(failure) if failure.maybe_applied && failure.kind != FailureKind::Closed => {
                self.prolong(recipe, now);
                self.stragglers[server] = now.after(STRAGGLER);
                // A silent socket stays open only for a while, and there nothing can be read before the write.
                if failure.kind == FailureKind::Timeout && !mutant!(UndoneOnceSilent) {
                    match self.servers[server] {
                        Progress::Asked { .. } | Progress::Again { .. } => self.ask(recipe, server, now, true, out),
                        // What it has answered stays its answer.
                        _ => self.send(recipe, server, now, out),
                    }
                }
            }
            Ok(_) | Err(_) => (),
        }
    }

    /// Takes a server's answer.
    pub(super) fn answer(&mut self, (server, sent): (usize, Tick), now: Tick, answer: &Answer) {
        let Progress::Asked { sent: last, unsure, late, .. } = self.servers[server] else { return };
        let is_done = matches!(self.value.ends, Some((Ending::Done { .. }, _)));
        // The failure of an earlier request is known: another request is on its way.
        if answer.is_err() && sent != last {
            return;
        }
        self.refused = match answer {
            Ok(reply) if !(unsure || reply.repeated) || mutant!(ProofWhileUnanswered) => Some(Refused::of(reply)),
            _ => None,
        };
        self.servers[server] = match answer {
            Ok(reply) if reply.verdict == Verdict::Ok => Progress::Deleted,
            // The request may have come before the write. Or the answer to the write was read late, and another program has taken
            // the key away.
            Ok(_) if late => Progress::Again { at: now, unsure },
            // That the work is done is noted by the first request that says so, and by a repeated one again.
            Ok(reply) if (unsure || reply.repeated) && self.within_validity && !is_done => Progress::Deleted,
            // An earlier request of ours, whose answer was lost, keeps the lock.
            Ok(reply) if reply.holder() == Some(&*kept(&self.value.owner)) => Progress::Deleted,
            Ok(Reply { verdict: Verdict::Conflict { found }, .. }) => Progress::Conflict(found.clone()),
            Ok(reply) => reply.other_owner().map_or(Progress::Gone, |next_owner| Progress::Taken(next_owner.to_owned())),
            Err(failure) => {
                self.failed[server] = Some(failure.clone());
                Progress::Again { at: now.after(RETRY), unsure: unsure || failure.maybe_applied }
            }
        };
    }

    /// Sends the requests that are due.
    pub(super) fn wake(&mut self, recipe: &Recipe, now: Tick, out: &mut Vec<Command>) {
        for server in 0..self.servers.len() {
            let has_expired = now >= self.deadline;
            if has_expired && matches!(self.servers[server], Progress::Asked { .. } | Progress::Again { .. }) {
                self.servers[server] = Progress::Unanswered;
            }
            if now >= self.ends() {
                self.stragglers[server] = Tick::NEVER;
                continue;
            }
            let straggling = now >= self.stragglers[server];
            match self.servers[server] {
                // Only the place is left to undo.
                _ if has_expired && straggling => {
                    self.stragglers[server] = Tick::NEVER;
                    out.extend(self.value.leaves.iter().map(|entry| leave(recipe, server, entry, now)));
                }
                Progress::Again { at, unsure } if now >= at => self.ask(recipe, server, now, unsure, out),
                // A request may be stuck on a connection whose I/O no thread drives: another one takes another way.
                Progress::Asked { until, .. } if now >= until => self.ask(recipe, server, now, true, out),
                // The answer under way may be older than the late write.
                Progress::Asked { .. } if straggling => self.stragglers[server] = now.after(RETRY),
                Progress::Again { .. } | Progress::Asked { .. } => (),
                _ if straggling => {
                    self.stragglers[server] = Tick::NEVER;
                    self.ask(recipe, server, now, true, out);
                }
                _ => (),
            }
        }
    }

    /// The time from the end of validity to the first request.
    pub(super) const fn overrun(&self) -> Duration {
        self.overrun
    }

    /// The time by which key and place are gone by themselves.
    fn ends(&self) -> Tick {
        self.deadline.max(self.leaves_until)
    }

    /// The time of the next request; `None` if there is none.
    pub(super) fn wake_at(&self) -> Option<Tick> {
        let again = |(progress, straggler): (&Progress, &Tick)| match progress {
            Progress::Again { at, .. } => (*at).min(self.deadline),
            Progress::Asked { until, .. } => (*until).min(*straggler).min(self.deadline),
            _ if *straggler == Tick::NEVER => Tick::NEVER,
            _ => (*straggler).min(self.ends()),
        };
        self.servers.iter().zip(&self.stragglers).map(again).min().filter(|at| *at != Tick::NEVER)
    }

    /// Whether the value is gone, and can't come back.
    pub(super) fn is_over(&self) -> bool {
        let settled = self.awaited == 0 && self.stragglers.iter().all(|at| *at == Tick::NEVER);
        settled && !self.servers.iter().any(|progress| matches!(progress, Progress::Asked { .. } | Progress::Again { .. }))
    }

    /// The outcome, once a majority decides it. `later` is the number of servers that have voted for others since. `proves` says
    /// whether so many servers prove another hold.
    pub(super) fn outcome(&self, later: usize, proves: impl Fn(usize) -> bool) -> Option<Release> {
        let count = |is: fn(&Progress) -> bool| self.servers.iter().filter(|progress| is(progress)).count();
        let deleted = count(|progress| matches!(progress, Progress::Deleted));
        if deleted >= self.quorum.needed() {
            return Some(Release::ours(self.overrun, self.kept));
        }
        let against = count(|progress| !matches!(progress, Progress::Deleted | Progress::Asked { .. } | Progress::Again { .. }));
        if !self.quorum.blocked_by(against) {
            return None;
        }
        let (mut next_owner, mut conflict) = (None, None);
        for progress in self.servers.iter().rev() {
            match progress {
                Progress::Taken(owner) => next_owner = Some(owner.clone()),
                Progress::Conflict(found) => conflict = Some(found.clone()),
                _ => (),
            }
        }
        // Some servers have voted for others since. Those that were asked a moment ago may complete the proof, which has the fence.
        let asked = count(|progress| matches!(progress, Progress::Asked { unsure: false, .. }));
        if later > 0 && !proves(later) && proves(later + asked) {
            return None;
        }
        let outcome = if next_owner.is_some() || proves(later) { Outcome::Taken } else { Outcome::Expired };
        Some(Release { next_owner, conflict, ..Release::of(outcome, self.overrun) })
    }

    /// The outcome in words, if too few servers have answered for one, and so only the ttl has ended the hold.
    pub(super) fn without_answer(&self, recipe: &Recipe) -> Option<String> {
        let answered = self.servers.iter().filter(|progress| **progress != Progress::Unanswered).count();
        let who = if self.servers.len() == 1 { "the server" } else { "a majority of the servers" };
        let errors = each(&self.errors(recipe));
        (answered < self.quorum.needed()).then(|| format!("{who} could not be asked ({errors}); by its ttl the key has expired"))
    }

    /// The errors of the servers that have not answered.
    pub(super) fn errors(&self, recipe: &Recipe) -> Vec<ServerFailure> {
        let open = |each: &Progress| matches!(each, Progress::Asked { .. } | Progress::Again { .. } | Progress::Unanswered);
        let silent = self.servers.iter().enumerate().filter(|(_, leave)| open(leave));
        silent
            .map(|(server, _)| match &self.failed[server] {
                Some(failure) => ServerFailure::of(&recipe.servers[server], failure),
                None => ServerFailure::new(&recipe.servers[server], FailureKind::Timeout, "no answer in time"),
            })
            .collect()
    }
}

#[cfg(test)]
#[path = "removal_tests.rs"]
mod tests;
