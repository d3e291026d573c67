//! The waiters of one client, lock by lock.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use crate::clock::Tick;
use crate::mutant::mutant;
use crate::wait::passed::PassedTurns;
use crate::wait::trouble::Trouble;
use crate::wait::{Hearing, Hint, Hinted, Seat, Slot, Turn};

/// The lines of one client: for every lock whoever of this process waits for it, in the order in which they came.
#[derive(Debug)]
pub struct Lines {
    client: Arc<str>,
    who: Arc<str>,
    hearing: Arc<Hearing>,
    servers: usize,
    lines: BTreeMap<Box<str>, Line>,
    last_number: u64,
    passed: PassedTurns,
}

#[derive(Debug, Default)]
struct Line {
    /// The slot of those that don't queue by principle.
    shared: Option<Arc<Slot>>,
    trouble: Arc<Trouble>,
    waiters: VecDeque<(u64, Arc<Slot>)>,
}

/// Why a waiter left its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It got the lock, and at best the next one gets it at `until`.
    Granted {
        /// The end of its validity.
        until: Tick,
        /// The slot lined up again in the same moment.
        stays: bool,
    },
    /// It gave up: what it was told, or was about to be told, is for the next one.
    GaveUp,
    /// It failed, and so may the others: each finds out for itself.
    Failed,
}

/// What a waiter is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// The waiter.
    pub waiter: u64,
    /// What it may do from now on.
    pub turn: Turn,
    /// When to try; `None` for at once.
    pub at: Option<Tick>,
}

impl Lines {
    /// No lines. `client` is unique, `who` are the readable fields of this process.
    #[must_use]
    pub fn new(client: &str, who: &str, servers: usize) -> Self {
        Self {
            client: client.into(),
            who: who.into(),
            hearing: Arc::new(Hearing::new(servers)),
            servers,
            lines: BTreeMap::new(),
            last_number: 0,
            passed: PassedTurns::default(),
        }
    }

    /// Which servers tell of releases.
    #[must_use]
    pub fn hearing(&self) -> &Arc<Hearing> {
        &self.hearing
    }

    /// The entry of a waiter of this client.
    #[must_use]
    pub fn entry(&self, fair: bool, number: u64) -> Arc<str> {
        let mut entry = String::with_capacity(self.client.len() + self.who.len() + 16);
        let _ = write!(entry, "{}:{}:{number} {}", if fair { 'f' } else { 'b' }, self.client, self.who);
        entry.into()
    }

    fn slot(&mut self, lock: &str, fair: bool) -> Arc<Slot> {
        self.last_number += 1;
        let entry = self.entry(fair, self.last_number);
        let trouble = Arc::clone(&self.lines.entry(lock.into()).or_default().trouble);
        Arc::new(Slot::new(self.last_number, fair, entry, self.servers, (trouble, Arc::clone(&self.hearing))))
    }

    /// Puts a waiter at the end of the line for the lock with the key `lock`.
    pub fn join(&mut self, lock: &str, waiter: u64, fair: bool) -> Seat {
        let known = self.lines.get(lock);
        let is_first = known.is_none_or(|line| line.waiters.is_empty());
        let shared = known.and_then(|line| line.shared.clone()).filter(|_| !fair || mutant!(FairSharesPlace));
        // A new slot has to be made known to the servers.
        let turn = match (is_first, &shared) {
            (true, _) => Turn::Front,
            (false, None) => Turn::Once,
            (false, Some(_)) => Turn::Parked,
        };
        let slot = shared.unwrap_or_else(|| self.slot(lock, fair));
        slot.enter();
        let line = match self.lines.get_mut(lock) {
            Some(line) => line,
            None => self.lines.entry(lock.into()).or_default(),
        };
        if !fair {
            line.shared = Some(Arc::clone(&slot));
        }
        line.waiters.push_back((waiter, Arc::clone(&slot)));
        Seat { slot, turn }
    }

    /// Takes a waiter out of its line; the answer is what others are to be told.
    pub fn quit(&mut self, lock: &str, waiter: u64, departure: Departure) -> Vec<Told> {
        let Some(line) = self.lines.get_mut(lock) else { return Vec::new() };
        let Some(at) = line.waiters.iter().position(|(other, _)| *other == waiter) else { return Vec::new() };
        let Some((_, slot)) = line.waiters.remove(at) else { return Vec::new() };
        if slot.quit() && !slot.fair {
            line.shared = None;
        }
        let told = line.after(at == 0, &slot, departure);
        if line.waiters.is_empty() {
            self.lines.remove(lock);
        }
        told
    }

    /// A waiter can't make use of its turn, but goes on: what the others are to be told.
    #[must_use]
    pub fn pass(&self, lock: &str, waiter: u64) -> Vec<Told> {
        let others = self.lines.get(lock).into_iter().flat_map(|line| &line.waiters).filter(|(other, _)| *other != waiter);
        others.filter(|_| !mutant!(YieldKept)).map(|(other, _)| Told { waiter: *other, turn: Turn::Once, at: None }).collect()
    }

    /// Who is meant by a hint; `None` if nobody waits there any more.
    #[must_use]
    pub fn find(&self, hinted: &Hinted<'_>) -> Option<u64> {
        let line = self.lines.get(hinted.lock)?;
        let is_meant = |slot: &Slot| slot.number == hinted.number && slot.fair == hinted.fair && !mutant!(HintMissed);
        line.waiters.iter().find(|(_, slot)| is_meant(slot)).map(|(waiter, _)| *waiter)
    }

    /// Whether the turn of a waiter that is gone is to be passed on to the next one: for each server and lock once in a claim
    /// window, because anybody who may publish can make up such waiters. What is not passed on costs the next one that window.
    pub fn passes_on(&mut self, server: usize, hinted: &Hinted<'_>, now: Tick) -> bool {
        hinted.hint.is_now() && self.passed.may_pass(server, hinted.lock, now)
    }

    /// The front of every line.
    pub fn fronts(&self) -> impl Iterator<Item = u64> {
        self.lines.values().filter_map(|line| line.waiters.front()).map(|(waiter, _)| *waiter)
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

impl Line {
    fn after(&self, was_front: bool, slot: &Arc<Slot>, departure: Departure) -> Vec<Told> {
        // They all try at once then; that the next of them fails, too, is no news.
        if departure == Departure::Failed && !mutant!(FailureKept) && self.trouble.spreads() {
            let others = self.waiters.iter().enumerate();
            return others
                .map(|(at, (waiter, _))| Told { waiter: *waiter, turn: if at == 0 { Turn::Front } else { Turn::Once }, at: None })
                .collect();
        }
        let front = self.waiters.front().filter(|_| was_front && !mutant!(TurnKept));
        let told = front.map(|(waiter, next)| {
            let same = Arc::ptr_eq(next, slot);
            let at = match departure {
                // Whoever has a slot of its own is lined up already.
                Departure::Granted { until, stays } if stays || !same || mutant!(TurnNotLinedUp) => Some(until),
                Departure::Granted { .. } | Departure::GaveUp | Departure::Failed => None,
            };
            Told { waiter: *waiter, turn: Turn::Front, at }
        });
        told.into_iter().chain(self.lines_up_again(told, slot, departure)).collect()
    }

    /// A place that the grant took out of the queue, and in which others wait who came behind its acquire: the first of them lines
    /// it up again, also where it doesn't speak for the line.
    fn lines_up_again(&self, told: Option<Told>, slot: &Arc<Slot>, departure: Departure) -> Option<Told> {
        if !matches!(departure, Departure::Granted { stays: false, .. }) || mutant!(SharedPlaceDropped) {
            return None;
        }
        let (waiter, _) = self.waiters.iter().find(|(_, other)| Arc::ptr_eq(other, slot))?;
        let is_told = told.is_some_and(|told| told.waiter == *waiter);
        (!is_told).then_some(Told { waiter: *waiter, turn: Turn::Once, at: None })
    }
}

impl Hint {
    /// Whether the lock may be had now.
    #[must_use]
    pub fn is_now(self) -> bool {
        matches!(self, Self::Free | Self::Claim)
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
