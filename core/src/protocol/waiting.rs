//! A waiter between two rounds: what it was told, and when it tries again.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::error::Holder;
use crate::mutant::mutant;
use crate::op::{Place, Queued};
use crate::options::Wait;
use crate::protocol::{Command, Recipe};
use crate::wait::{self, Hint, Role, Seat, Slot};

/// How long an acquire without an end of its wait waits before it is asked whether it waits for its own client.
pub(super) const LONG_WAIT: Duration = Duration::from_secs(5);

/// What a failed round says of the lock's holder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub(super) holder: &'a Holder,
    /// Whether a majority shows the same one; else nobody may have the lock.
    pub(super) by_majority: bool,
    /// Whether any of the answers shows another library's. A round ends with as many answers as decide it: a majority may show
    /// that one all the same.
    pub(super) shows_foreign: bool,
    /// How many wait before us.
    pub(super) rank: Option<u64>,
}

/// The waiting part of an acquire; without a seat it is a single attempt.
#[derive(Debug)]
pub(super) struct Waiting {
    seat: Option<Seat>,
    /// The servers that said since the round began that the lock may be had.
    hints: Vec<bool>,
    /// When to try if what a server said while the round was under way is still true then.
    look_at: Tick,
    /// When the hint came on which the round was begun.
    pub(super) woken: Option<Tick>,
    /// The votes of the last round were split: what the servers tell until the next one comes of undoing such rounds.
    split: bool,
    /// The servers that voted for the last round, in vain, or may yet: there the lock is free, and whoever undoes such a round
    /// has them tell the next one so, but it isn't where it counts.
    in_vain: Vec<bool>,
    polls: u32,
    /// When a wait without an end is long; `NEVER` once that was told.
    pub(super) long_at: Tick,
}

impl Waiting {
    pub(super) fn new(recipe: &Recipe, seat: Option<Seat>, now: Tick) -> Self {
        let none = vec![false; recipe.servers.len()];
        let is_endless = recipe.lines_up() && recipe.options.wait == Wait::Forever;
        let long_at = if is_endless { now.after(LONG_WAIT) } else { Tick::NEVER };
        Self { seat, hints: none.clone(), look_at: Tick::NEVER, woken: None, split: false, in_vain: none, polls: 0, long_at }
    }

    /// Tells once that the wait, which began at `started` and has no end, is long.
    pub(super) fn tell_long(&mut self, started: Tick, now: Tick, out: &mut Vec<Command>) {
        if now >= self.long_at {
            self.long_at = Tick::NEVER;
            out.push(Command::WaitsLong { since: started });
        }
    }

    pub(super) fn slot(&self) -> Option<&Arc<Slot>> {
        self.seat.as_ref().map(|seat| &seat.slot)
    }

    pub(super) fn place(&self, server: usize) -> Option<Place> {
        self.slot().map(|slot| slot.place(server))
    }

    /// When to try for the first time; `deadline` is when to try for the last.
    pub(super) fn first_try(&self, now: Tick, deadline: Tick) -> Tick {
        if self.is_parked() { deadline } else { now }
    }

    fn is_parked(&self) -> bool {
        self.seat.as_ref().is_some_and(|seat| seat.role == Role::Parked)
    }

    /// A round begins: what was said before is used up.
    pub(super) fn round_begins(&mut self) {
        self.hints.fill(false);
        self.look_at = Tick::NEVER;
        self.split = false;
        self.in_vain.fill(false);
    }

    /// A round has failed: which servers voted for it, or may yet.
    pub(super) fn round_failed(&mut self, in_vain: impl Iterator<Item = bool>) {
        self.in_vain = in_vain.collect();
    }

    /// A server says after the end of a round that the lock is somebody's there.
    pub(super) fn late_refusal(&mut self, server: usize) {
        self.in_vain[server] = false;
    }

    /// The lock is somebody's: when to try again.
    pub(super) fn after_busy(&mut self, recipe: &Recipe, found: Found<'_>, now: Tick, rng: &mut fastrand::Rng) -> Tick {
        self.woken = None;
        let polls = self.polls;
        self.polls = self.polls.saturating_add(1);
        if !found.by_majority {
            self.split = !mutant!(SplitStirs);
            let again = wait::after_split(now, polls, rng);
            let looks = found.shows_foreign && !mutant!(ForeignTrusted);
            return if looks { again.min(wait::after_foreign(now, rng)) } else { again };
        }
        if mutant!(HintDuringRoundLost) {
            self.round_begins();
        }
        if self.is_called(recipe) {
            self.woken = Some(now);
            return now;
        }
        let look_at = std::mem::replace(&mut self.look_at, Tick::NEVER);
        let Some(seat) = &mut self.seat else { return look_at };
        match seat.role {
            Role::First => {
                let is_told = found.rank.is_some() && seat.slot.listen_state().suffices(recipe.quorum().needed());
                let is_foreign = wait::is_foreign(&found.holder.owner) && !mutant!(ForeignTrusted);
                let again = match is_told {
                    true if is_foreign => wait::after_foreign(now, rng),
                    true if mutant!(NoLook) => Tick::NEVER,
                    _ => wait::after_busy(now, is_told, polls, rng),
                };
                let expiry = wait::after_expiry(now, found.holder.remaining, found.rank.unwrap_or(0), rng);
                again.min(if mutant!(ExpiryUnnoticed) { Tick::NEVER } else { expiry }).min(look_at)
            }
            Role::OneTry | Role::Parked => {
                seat.role = Role::Parked;
                look_at
            }
        }
    }

    fn is_called(&self, recipe: &Recipe) -> bool {
        self.hints.iter().filter(|hint| **hint).count() >= recipe.quorum().needed()
    }

    /// A server told something. The answer is when to try at the latest because of it.
    pub(super) fn hint(&mut self, recipe: &Recipe, (server, hint): (usize, Hint), now: Tick, rng: &mut fastrand::Rng) -> Tick {
        let Some(seat) = self.seat.as_mut().filter(|_| !self.split) else { return Tick::NEVER };
        if seat.role == Role::Parked {
            seat.role = Role::OneTry;
        }
        let at = match hint {
            Hint::Next(_) if mutant!(NextIgnored) => Tick::NEVER,
            Hint::Next(window) => wait::after_hint(now, window, rng),
            Hint::Free | Hint::Claim => {
                self.hints[server] = true;
                match self.is_called(recipe) {
                    false if self.in_vain[server] && !mutant!(UndoneStirs) => return Tick::NEVER,
                    false if mutant!(MinorityIgnored) => return Tick::NEVER,
                    called => {
                        self.woken.get_or_insert(now);
                        if called { now } else { wait::soon(now, rng) }
                    }
                }
            }
        };
        self.look_at = self.look_at.min(at);
        at
    }

    /// A server tells of releases from now on, or no longer: of some it may not have told. Whether this waiter is to look.
    pub(super) fn listens(&mut self, server: usize) -> bool {
        let is_front = !self.split && !mutant!(HearsIgnored) && self.seat.as_ref().is_some_and(|seat| seat.role == Role::First);
        if is_front {
            self.hints[server] = true;
        }
        is_front
    }

    /// The line moved on, or the servers are gone.
    pub(super) fn take_role(&mut self, role: Role) {
        // Who speaks for the line does so until it leaves, in whatever order it hears of its turns.
        if let Some(seat) = self.seat.as_mut().filter(|seat| seat.role != Role::First || mutant!(SpeakerDemoted)) {
            seat.role = role;
        }
    }

    /// How many wait before us, where a server put us in its queue.
    pub(super) fn rank(&self, queued: &Queued) -> Option<u64> {
        if let (Some(_), Queued::At { rank, .. }) = (self.slot(), queued) { Some(*rank) } else { None }
    }
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
pub(super) mod tests;
