//! Ledger: what the record of a job must say after each operation that its server has done. The rules of the record, written independently.
//!
//! It is kept as long as no server has lost data.

use std::collections::HashMap;
use std::sync::Arc;

use locktender::LossReason;
use locktender::machine::is_claim;
use locktender::op::job::{Ending, NotBegun, ScheduledTime, Terms};
use locktender::op::{LockOp, Op, Reply, Verb, Verdict};

use super::clock::{micros, ms};
use super::world::World;

/// How a job stands.
#[derive(Clone, Debug, Default, PartialEq)]
enum Stand {
    /// No attempt runs.
    #[default]
    Open,
    /// The attempt of this owner has begun, and not ended.
    Running(Arc<str>),
    Done,
    /// The last attempt failed, or nobody may begin another one; with the owner of an attempt that may still end well.
    Dead(Option<Arc<str>>),
}

/// One job.
#[derive(Default)]
pub(super) struct Ledger {
    stand: Stand,
    attempts: u32,
    failures: u32,
    max: u32,
    /// By the server's clock, milliseconds: when the next attempt may begin, and when a record that is over ends.
    not_before_ms: u64,
    ends_ms: Option<u64>,
    retention_ms: u64,
    /// The scheduled time that began last, milliseconds; 0 for none.
    scheduled_ms: u64,
    /// How the attempt of each owner ended, and whether the record that said so is gone.
    noted: HashMap<Arc<str>, (Ending, bool)>,
    /// The owner of the last attempt.
    last: Option<Arc<str>>,
    /// The number of each owner's attempt.
    counted: HashMap<Arc<str>, u32>,
    results: Vec<Arc<str>>,
    deaths: u32,
}

impl Ledger {
    pub(super) fn noted(&self, owner: &Arc<str>) -> Option<(&Ending, bool)> {
        self.noted.get(owner).map(|(ending, is_forgotten)| (ending, *is_forgotten))
    }

    /// Whether no attempt has begun since the one of this owner, and its record isn't gone.
    pub(super) fn is_last(&self, owner: &Arc<str>) -> bool {
        self.last.as_ref() == Some(owner)
    }

    pub(super) fn counted(&self, owner: &Arc<str>) -> Option<u32> {
        self.counted.get(owner).copied()
    }

    pub(super) fn had_result(&self, result: &str) -> bool {
        self.results.iter().any(|other| **other == *result)
    }

    pub(super) const fn has_died(&self) -> bool {
        self.deaths > 0
    }

    pub(super) const fn has_ended(&self) -> bool {
        matches!(self.stand, Stand::Done | Stand::Dead(_))
    }

    /// The owner of the attempt that runs, by the record.
    pub(super) fn runs(&self) -> Option<&Arc<str>> {
        if let Stand::Running(owner) = &self.stand { Some(owner) } else { None }
    }

    /// A record that is over is forgotten at its end.
    fn pass(&mut self, now_ms: u64) {
        if self.ends_ms.is_some_and(|ends| ends < now_ms) {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.noted.values_mut().for_each(|(_, is_forgotten)| *is_forgotten = true);
        let (noted, counted) = (std::mem::take(&mut self.noted), std::mem::take(&mut self.counted));
        let (results, deaths) = (std::mem::take(&mut self.results), self.deaths);
        *self = Self { noted, counted, results, deaths, ..Self::default() };
    }

    /// A request for a scheduled time: a later one begins the record again, and nothing runs for an earlier one, or too early, or too late.
    fn schedule(&mut self, by: &Arc<str>, time: &ScheduledTime, reply: &Reply, holder: Option<&str>) -> Result<(), String> {
        let ScheduledTime { at_ms, max_lateness_ms, .. } = *time;
        let now_ms = reply.time_us / 1_000;
        let is_early = at_ms > now_ms + ScheduledTime::MAX_AHEAD_MS;
        let (is_late, is_earlier) = (at_ms + max_lateness_ms < now_ms, at_ms < self.scheduled_ms);
        let is_right = match &reply.verdict {
            Verdict::Vote if is_early || is_earlier || is_late => false,
            Verdict::Vote if at_ms > self.scheduled_ms => {
                self.forget();
                self.scheduled_ms = at_ms;
                true
            }
            Verdict::Over(end) => match end.why {
                NotBegun::Missed => is_earlier,
                NotBegun::TooLate => is_late,
                NotBegun::TooEarly => is_early,
                NotBegun::Running => holder.is_some_and(|holder| *holder != **by && !is_claim(holder)),
                NotBegun::Done | NotBegun::Dead => at_ms == self.scheduled_ms,
            },
            _ => true,
        };
        let (last, verdict) = (self.scheduled_ms, &reply.verdict);
        if is_right { Ok(()) } else { Err(format!("{time:?} at {now_ms}, behind {last}: {verdict:?}")) }
    }

    fn begin(&mut self, by: &Arc<str>, terms: &Terms, reply: &Reply, holder: Option<&str>) -> Result<(), String> {
        let now_ms = reply.time_us / 1_000;
        self.pass(now_ms);
        if let Some(time) = &terms.scheduled_time {
            self.schedule(by, time, reply, holder)?;
        }
        let max = if self.max == 0 { terms.max_attempts } else { self.max };
        match &reply.verdict {
            Verdict::Vote if self.stand == Stand::Running(Arc::clone(by)) => (),
            Verdict::Vote => {
                if matches!(self.stand, Stand::Done | Stand::Dead(_)) {
                    return Err(format!("an attempt began of a job that is {:?}", self.stand));
                }
                if self.attempts >= max {
                    return Err(format!("attempt {} of {max} began", self.attempts + 1));
                }
                if now_ms < self.not_before_ms {
                    return Err(format!("an attempt began at {now_ms}, before {}", self.not_before_ms));
                }
                (self.stand, self.attempts, self.max) = (Stand::Running(Arc::clone(by)), self.attempts + 1, max);
                (self.not_before_ms, self.retention_ms, self.ends_ms) = (0, terms.retention_ms, None);
                self.counted.insert(Arc::clone(by), self.attempts);
                self.last = Some(Arc::clone(by));
            }
            Verdict::Over(end) => return self.is_over(end.why, max, now_ms),
            Verdict::Later { left, .. } => {
                let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
                if now_ms + left_ms != self.not_before_ms {
                    return Err(format!("later than {now_ms} by {left_ms}, and not at {}", self.not_before_ms));
                }
            }
            _ => return Ok(()),
        }
        let said = reply.attempt.map(|attempt| (u32::from(attempt.number), u32::from(attempt.failures)));
        if reply.verdict == Verdict::Vote && said != Some((self.attempts, self.failures)) {
            return Err(format!("attempt {said:?}, and not {:?}", (self.attempts, self.failures)));
        }
        Ok(())
    }

    fn is_over(&mut self, why: NotBegun, max: u32, now_ms: u64) -> Result<(), String> {
        match (why, &self.stand) {
            (NotBegun::Done, Stand::Done) | (NotBegun::Dead, Stand::Dead(_)) => Ok(()),
            (NotBegun::Running | NotBegun::Missed | NotBegun::TooLate | NotBegun::TooEarly, _) => Ok(()),
            // The last attempt has died.
            (NotBegun::Dead, stand) if self.attempts >= max => {
                let by = if let Stand::Running(by) = stand { Some(Arc::clone(by)) } else { None };
                (self.stand, self.ends_ms) = (Stand::Dead(by), Some(now_ms + self.retention_ms));
                self.deaths += 1;
                Ok(())
            }
            _ => Err(format!("{why:?}, and the job is {:?} behind {} attempts", self.stand, self.attempts)),
        }
    }

    /// A job is reset, unless its attempt runs and holds the lock.
    fn reset(&mut self, reply: &Reply, holder: Option<&str>) -> Result<(), String> {
        self.pass(reply.time_us / 1_000);
        let is_refused = self.runs().is_some_and(|owner| holder == Some(owner));
        match reply.verdict {
            Verdict::Ok if is_refused => Err(format!("a job was reset, and the attempt of {holder:?} runs")),
            Verdict::Ok => {
                self.forget();
                Ok(())
            }
            _ if is_refused || self.attempts == 0 && self.scheduled_ms == 0 => Ok(()),
            _ => Err(format!("a job was not reset that is {:?} behind {} attempts", self.stand, self.attempts)),
        }
    }

    fn end(&mut self, by: &Arc<str>, ending: &Ending, reply: &Reply) -> Result<(), String> {
        let now_ms = reply.time_us / 1_000;
        let is_noted = reply.verdict == Verdict::Ok;
        self.pass(now_ms);
        let is_open = self.stand == Stand::Running(Arc::clone(by)) || self.stand == Stand::Dead(Some(Arc::clone(by)));
        if *ending == Ending::GivenBack {
            if self.stand == Stand::Running(Arc::clone(by)) {
                (self.stand, self.attempts) = (Stand::Open, self.attempts - 1);
                self.counted.remove(by);
                self.last = None;
            }
            return Ok(());
        }
        // A record that is gone while its attempt holds the lock is written again: here none is gone so soon.
        let is_again =
            self.is_last(by) && self.noted.get(by).is_some_and(|(noted, is_forgotten)| same_kind(noted, ending) && !is_forgotten);
        if is_noted != (is_open || is_again) {
            return Err(format!("{ending:?} of {by} was noted: {is_noted}, and the job is {:?}", self.stand));
        }
        if !is_open {
            return Ok(());
        }
        self.noted.insert(Arc::clone(by), (ending.clone(), false));
        match ending {
            Ending::Failed { retry_in_ms: Some(retry_in_ms), .. } if self.attempts < self.max => {
                (self.stand, self.not_before_ms, self.ends_ms) = (Stand::Open, now_ms + retry_in_ms, None);
                self.failures += 1;
            }
            Ending::Done { result } => {
                self.results.push(Arc::clone(result));
                (self.stand, self.ends_ms) = (Stand::Done, Some(now_ms + self.retention_ms));
            }
            _ => {
                (self.stand, self.ends_ms) = (Stand::Dead(None), Some(now_ms + self.retention_ms));
                (self.failures, self.deaths) = (self.failures + 1, self.deaths + 1);
            }
        }
        Ok(())
    }
}

fn same_kind(one: &Ending, other: &Ending) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

impl World {
    /// A server has done an operation on a job.
    pub(super) fn enter_in_ledger(&mut self, server: usize, op: &Op, reply: &Reply, holder: Option<&str>) {
        let Op::Lock(LockOp { keys, by, verb }) = op else { return };
        let Some(name) = self.name_of(keys.lock()).filter(|_| self.plan.has_jobs) else { return };
        match (verb, &reply.verdict) {
            (Verb::EndAttempt { ending: Ending::Failed { retry_in_ms: Some(retry_in_ms), .. }, .. }, Verdict::Ok) => {
                self.comes_later(name, ms(*retry_in_ms));
            }
            (_, Verdict::Later { left, .. }) => self.comes_later(name, micros(*left)),
            _ => (),
        }
        let Some(ledger) = self.jobs.get_mut(name).filter(|_| !self.forgot) else { return };
        let verdict = match verb {
            Verb::Acquire { job: Some(terms), .. } => ledger.begin(by, terms, reply, holder),
            Verb::EndAttempt { ending, .. } => ledger.end(by, ending, reply),
            Verb::Reset => ledger.reset(reply, holder),
            _ => Ok(()),
        };
        let gives_back = matches!(verb, Verb::EndAttempt { ending: Ending::GivenBack, .. });
        let is_lost = gives_back && self.was_lost(name, by);
        if let Err(why) = if is_lost { Err("a lost attempt was given back".to_owned()) } else { verdict } {
            self.violate(format!("s{server} l{name}: {why}"));
        }
    }

    /// Whether this is the owner of an attempt whose worker was told that it is lost.
    fn was_lost(&self, name: usize, owner: &Arc<str>) -> bool {
        let Some(whose) = self.history.whose(name, owner) else { return false };
        let entry = &self.processes[whose.client].slots[whose.slot];
        let is_its = entry.grant.as_ref().is_some_and(|grant| grant.owner == *owner);
        is_its && entry.loss.as_ref().is_some_and(|loss| loss.reason != LossReason::Closed)
    }

    /// An attempt that its worker never got, or gave back, doesn't count: a second after its server can be reached the record says that it
    /// never happened.
    pub(super) fn look_for_uncounted(&mut self) {
        let found = (0..self.plan.names).find_map(|name| {
            let owner = self.jobs.get(name)?.runs().filter(|_| !self.forgot)?;
            let whose = self.history.whose(name, owner)?;
            let entry = &self.processes[whose.client].slots[whose.slot];
            let is_undone = entry.grant.is_none() && entry.answered || entry.is_given_back;
            // Who finds no server to undo it on gives up in the end: then it counts, as one that died.
            let is_left = is_undone && !entry.is_unheard && self.is_leftover(0, name, owner);
            is_left.then(|| format!("l{name}: an attempt of {owner} still counts: {whose:?}"))
        });
        if let Some(why) = found {
            self.violate(why);
        }
    }
}
