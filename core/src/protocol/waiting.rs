//! Waiting: a waiter between two rounds, its notices, and the time of its next try.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::error::Holder;
use crate::mutant::mutant;
use crate::op::{QueuePlace, Queued};
use crate::per_server::{PerServer, per_server};
use crate::protocol::{Command, Recipe};
use crate::wait::{self, Hint, Role, Slot, Waiter};

/// The wait after which an acquire is checked: this client itself may hold the lock.
pub(super) const LONG_WAIT: Duration = Duration::from_secs(5);

/// The holder that a failed round found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub(super) holder: &'a Holder,
    /// Whether a majority shows the same holder; else the lock may have none.
    pub(super) by_majority: bool,
    /// Whether any answer shows a holder of another library. A round ends with as many answers as decide it, so a majority may
    /// show that holder all the same.
    pub(super) shows_foreign: bool,
    /// The number of waiters before us.
    pub(super) rank: Option<u64>,
}

/// The waiting part of an acquire. Without a waiter it makes one attempt.
#[derive(Debug)]
pub(super) struct Waiting {
    waiter: Option<Waiter>,
    /// The servers that have sent a hint since the round began that the lock can be taken.
    hints: PerServer<bool>,
    /// The next try by the hints since the round began, if they are still true then.
    look_at: Tick,
    /// The time of the hint that led to the round.
    pub(super) notified_at: Option<Tick>,
    /// Whether the votes of the last round were split. If so, the hints until the next round come from the undo of such rounds.
    split: bool,
    /// The servers that voted for the last round, or still may, although it failed. The undo of such rounds makes these servers
    /// send hints that the lock is free. But other servers still refuse it.
    in_vain: PerServer<bool>,
    polls: u32,
    /// The time at which the wait is long; `NEVER` once that was reported.
    pub(super) long_at: Tick,
}

impl Waiting {
    pub(super) fn new(recipe: &Recipe, waiter: Option<Waiter>, now: Tick) -> Self {
        let none = per_server(false, recipe.servers.len());
        let long_at = if recipe.waits_in_queues() { now.after(LONG_WAIT) } else { Tick::NEVER };
        Self {
            waiter,
            hints: none.clone(),
            look_at: Tick::NEVER,
            notified_at: None,
            split: false,
            in_vain: none,
            polls: 0,
            long_at,
        }
    }

    /// Reports once that a wait is long, which began at `started`.
    pub(super) fn report_long(&mut self, started: Tick, now: Tick, out: &mut Vec<Command>) {
        if now >= self.long_at {
            self.long_at = Tick::NEVER;
            out.push(Command::WaitsLong { since: started });
        }
    }

    pub(super) fn slot(&self) -> Option<&Arc<Slot>> {
        self.waiter.as_ref().map(|waiter| &waiter.slot)
    }

    pub(super) fn place(&self, server: usize) -> Option<QueuePlace> {
        self.slot().map(|slot| slot.place(server))
    }

    /// The time of the first try; `deadline` is the time of the last one.
    pub(super) fn first_try(&self, now: Tick, deadline: Tick) -> Tick {
        if self.is_parked() { deadline } else { now }
    }

    fn is_parked(&self) -> bool {
        self.waiter.as_ref().is_some_and(|waiter| waiter.role == Role::Parked)
    }

    /// Begins a round, which uses up all hints so far.
    pub(super) fn round_begins(&mut self) {
        self.hints.fill(false);
        self.look_at = Tick::NEVER;
        self.split = false;
        self.in_vain.fill(false);
    }

    /// Notes which servers voted for a failed round, or still may.
    pub(super) fn round_failed(&mut self, in_vain: impl Iterator<Item = bool>) {
        self.in_vain = in_vain.collect();
    }

    /// Notes a refusal that arrived after the end of its round: the lock is not free on that server.
    pub(super) fn late_refusal(&mut self, server: usize) {
        self.in_vain[server] = false;
    }

    /// The next try after a round that found the lock held.
    pub(super) fn after_busy(&mut self, recipe: &Recipe, found: Found<'_>, now: Tick, rng: &mut fastrand::Rng) -> Tick {
        self.notified_at = None;
        let polls = self.polls;
        self.polls = self.polls.saturating_add(1);
        if !found.by_majority {
            self.split = !mutant!(SplitWakes);
            let again = wait::after_split(now, polls, rng);
            let looks = found.shows_foreign && !mutant!(ForeignTrusted);
            return if looks { again.min(wait::after_foreign(now, rng)) } else { again };
        }
        if mutant!(HintDuringRoundLost) {
            self.round_begins();
        }
        if self.is_called(recipe) {
            self.notified_at = Some(now);
            return now;
        }
        let look_at = std::mem::replace(&mut self.look_at, Tick::NEVER);
        let Some(waiter) = &mut self.waiter else { return look_at };
        match waiter.role {
            Role::First => {
                let is_notified = found.rank.is_some() && waiter.slot.listen_state.suffices(recipe.quorum().needed());
                let is_foreign = wait::is_foreign(&found.holder.owner) && !mutant!(ForeignTrusted);
                let again = match is_notified {
                    true if is_foreign => wait::after_foreign(now, rng),
                    true if mutant!(NoLook) => Tick::NEVER,
                    _ => wait::after_busy(now, is_notified, polls, rng),
                };
                let expiry = wait::after_expiry(now, found.holder.remaining, found.rank.unwrap_or(0), rng);
                again.min(if mutant!(ExpiryUnnoticed) { Tick::NEVER } else { expiry }).min(look_at)
            }
            Role::OneTry | Role::Parked => {
                waiter.role = Role::Parked;
                look_at
            }
        }
    }

    /// Whether enough servers have sent a hint since the round began.
    pub(super) fn is_called(&self, recipe: &Recipe) -> bool {
        self.hints.iter().filter(|hint| **hint).count() >= recipe.quorum().needed()
    }

    /// Takes a server's hint. Gives the latest time of the next try because of it.
    pub(super) fn hint(&mut self, recipe: &Recipe, (server, hint): (usize, Hint), now: Tick, rng: &mut fastrand::Rng) -> Tick {
        let Some(waiter) = self.waiter.as_mut().filter(|_| !self.split) else { return Tick::NEVER };
        if waiter.role == Role::Parked {
            waiter.role = Role::OneTry;
        }
        let at = match hint {
            Hint::Next(_) if mutant!(NextIgnored) => Tick::NEVER,
            Hint::Next(window) => wait::after_hint(now, window, rng),
            Hint::Free | Hint::Claim => {
                self.hints[server] = true;
                match self.is_called(recipe) {
                    false if self.in_vain[server] && !mutant!(UndoneWakes) => return Tick::NEVER,
                    false if mutant!(MinorityIgnored) => return Tick::NEVER,
                    called => {
                        self.notified_at.get_or_insert(now);
                        if called { now } else { wait::soon(now, rng) }
                    }
                }
            }
        };
        self.look_at = self.look_at.min(at);
        at
    }

    /// Takes the news that a server announces releases from now on, or no longer: notices may have been lost. Gives whether this
    /// waiter is to try.
    pub(super) fn listens(&mut self, server: usize) -> bool {
        let is_first =
            !self.split && !mutant!(ListeningIgnored) && self.waiter.as_ref().is_some_and(|own| own.role == Role::First);
        if is_first {
            self.hints[server] = true;
        }
        is_first
    }

    /// Takes a new role in the local queue, after a waiter left or the servers failed.
    pub(super) fn take_role(&mut self, role: Role) {
        // The first waiter of a local queue stays so until it leaves, in whatever order its wake-ups arrive.
        if let Some(waiter) = self.waiter.as_mut().filter(|waiter| waiter.role != Role::First || mutant!(FirstRoleTaken)) {
            waiter.role = role;
        }
    }

    /// The number of waiters before us, if a server put us into its queue.
    pub(super) fn rank(&self, queued: &Queued) -> Option<u64> {
        if let (Some(_), Queued::At { rank, .. }) = (self.slot(), queued) { Some(*rank) } else { None }
    }
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
pub(super) mod tests;
