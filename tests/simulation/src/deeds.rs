//! Deeds: the results that users get, compared with the promises.

use std::sync::Arc;
use std::time::Duration;

use locktender::internals::name::Kind as LockKind;
use locktender::internals::protocol::{Answered, CallId, Command, Grant, Manner};
use locktender::{Code, Error, EventKind, LossReason, Outcome, Release, Wait};

use super::clock::{Instant, micros, ms};
use super::several::Ticket;
use super::slot::{Gone, Kind, Pending};
use super::world::World;

/// The time by which timers may be late and clocks slow.
const LATE: u64 = ms(12);

impl World {
    fn emitted(&mut self, client: usize, slot: usize, kind: EventKind) {
        self.announce(client, slot, kind);
        match kind {
            EventKind::Renewed => self.stats.renewals += 1,
            EventKind::Released | EventKind::Expired | EventKind::Overlapped => {
                self.processes[client].slots[slot].decided = true;
            }
            EventKind::Lost if self.processes[client].slots[slot].loss.is_some() => {
                self.violate(format!("c{client}.{slot}: a second event of the loss"));
            }
            _ => (),
        }
    }

    /// Gives a user the result of an acquisition.
    pub(super) fn give_result(&mut self, client: usize, slot: usize, command: Command) {
        match command {
            Command::Emit(event) | Command::EmitOfAnother(event) => self.emitted(client, slot, event.kind),
            Command::EmitPlain(event) => self.emitted(client, slot, event.kind),
            Command::Acquired(Ok(Answered::Several(grant))) => {
                let first = Grant { owner: Arc::clone(&grant.owner), fence: grant.fences[0], attempt: None };
                self.acquired(client, slot, Ok(Some(first)));
                self.begin_holds(client, slot, &grant);
            }
            Command::Acquired(result) => {
                let result = result.map(|answered| self.granted_to(client, slot, answered));
                self.acquired(client, slot, result);
            }
            Command::Extended(call, result) => self.extended(client, slot, call, result),
            Command::Released(call, result) if self.ends_attempt(client, slot, call) => {
                self.attempt_ended(client, slot, call, &result);
            }
            Command::Released(call, result) => self.released(client, slot, call, result),
            Command::HandedOver(call, result) => self.handed_over(client, slot, call, result),
            Command::Lost(loss) => {
                self.trace(|| format!("c{client}.{slot} LOST {loss:?}"));
                self.stats.losses += 1;
                let closing = loss.reason == LossReason::Closed;
                let expired = loss.reason == LossReason::Expired;
                let refused = matches!(loss.reason, LossReason::Missing | LossReason::Taken);
                let accused = loss.next_fence;
                let earlier = self.was_granted_before(client, slot, loss.next_owner.as_deref())
                    || loss.next_owner.is_none() && self.has_earlier_marks(client, slot);
                let is_let_go = self.has_lost_another(client, slot);
                let entry = &mut self.processes[client].slots[slot];
                let wrong = entry.loss.is_some() || entry.gone.is_some() || entry.grant.is_none();
                // The process may have been stopped behind the end: then the answer of a server may be read first.
                let is_valid = loss.overrun.is_zero();
                entry.loss = Some(loss);
                // A mark that is missing is not written again, nor the key of one of several locks of which another one was lost.
                let several = entry.recipe.keys.kind().is_shared();
                let healed =
                    self.plan.quarantine && refused && is_valid && !self.plan.outside && !earlier && !several && !is_let_go;
                if accused.is_some_and(|fence| !self.history.voted_for_another(fence, (client, slot))) {
                    self.violate(format!("c{client}.{slot}: lost to {accused:?}, which was nobody's"));
                }
                if expired {
                    self.expired(client, slot);
                }
                // After a server forgot its data, the decision may rest on answers from before a heal.
                if refused && !self.forgot && self.keeping(client, slot) >= self.plan.needed() {
                    self.violate(format!("c{client}.{slot}: lost, and yet a majority keeps it"));
                }
                if healed {
                    self.violate(format!(
                        "c{client}.{slot}: lost, though nobody is granted anything before lost keys are written again"
                    ));
                }
                if wrong && !closing {
                    self.violate(format!("c{client}.{slot}: lost twice, or after its end"));
                }
                if !closing {
                    self.lost_with_others(client, slot);
                }
            }
            Command::KeepWarm => self.keep_warm(client),
            Command::Send { .. }
            | Command::Log(_)
            | Command::Look { .. }
            | Command::Listen
            | Command::NotNotified(_)
            | Command::OtherLimit(_)
            | Command::Jumped(_)
            | Command::Yield
            | Command::WaitsLong { .. }
            | Command::Quit(_) => (),
        }
    }

    /// Whether the rival was granted before this hold: a promoted node that lacks the rival's release keeps the lock for it.
    fn was_granted_before(&self, client: usize, slot: usize, rival: Option<&str>) -> bool {
        let owner = self.processes[client].slots[slot].owner.as_deref();
        let (Some(owner), Some(rival)) = (owner, rival) else { return false };
        self.history.voted(rival) < self.history.voted(owner)
    }

    /// Whether an operation that began at `since` may have taken until now.
    pub(super) fn in_time(&self, client: usize, since: Instant, stopped: u64, span: Duration) -> bool {
        let span = micros(span);
        let stopped = self.processes[client].stopped - stopped;
        // Answers that came during a stop of the process are waited for once more.
        let excused = stopped.min(micros(self.plan.response_timeout));
        self.now - since <= span + span / 200 + LATE + stopped + excused
    }

    fn acquired(&mut self, client: usize, slot: usize, result: Result<Option<Grant>, Error>) {
        self.trace(|| format!("c{client}.{slot} ACQUIRED {result:?}"));
        let entry = &mut self.processes[client].slots[slot];
        if std::mem::replace(&mut entry.answered, true) {
            return self.violate(format!("c{client}.{slot}: reported twice how the acquire ended"));
        }
        let (started, stopped, recipe) = (entry.started, entry.stopped, entry.recipe.clone());
        let wait = match recipe.options.wait {
            Wait::For(span) => Some(span),
            Wait::Forever => None,
        };
        if let Some(wait) = wait
            && !self.in_time(client, started, stopped, wait + recipe.response_timeout)
        {
            self.violate(format!("c{client}.{slot}: the acquire outlasted its wait of {wait:?}"));
        }
        let waited = Duration::from_micros(self.processes[client].clock.at(self.now) - self.processes[client].clock.at(started));
        let fits = match &result {
            Ok(Some(_)) => true,
            Ok(None) => recipe.busy_is_none || self.processes[client].slots[slot].is_over,
            Err(error) => match error.code() {
                Code::AcquireTimeout => {
                    // Who waits for the next attempt of a job may wait for nobody.
                    let waits_for_nobody = recipe.job.is_some();
                    let has_waited = wait.is_some_and(|wait| waited >= wait);
                    !recipe.busy_is_none && has_waited && (waits_for_nobody || error.holder().is_some())
                }
                Code::Unavailable => {
                    waited >= wait.unwrap_or(Duration::MAX).min(recipe.unavailable_after) && !error.servers().is_empty()
                }
                Code::LockLost => recipe.adopt.as_ref().is_some_and(|adopt| !adopt.or_acquire),
                Code::Closed => self.processes[client].closed,
                _ => false,
            },
        };
        if !fits {
            self.violate(format!("c{client}.{slot}: an acquire that waits {wait:?} ended after {waited:?} with {result:?}"));
        }
        match &result {
            // From now on each of several locks is an acquisition of its own, whose validity is looked at.
            Ok(Some(_)) if recipe.keys.kind() == LockKind::Several => return self.place_was_granted(client, slot),
            Ok(Some(grant)) => {
                self.place_was_granted(client, slot);
                self.granted(client, slot, grant);
            }
            _ => self.disown(client, slot),
        }
        self.stats.unavailable += u64::from(matches!(&result, Err(error) if error.code() == Code::Unavailable));
        self.worker_acquired(client, slot, matches!(result, Ok(Some(_))));
    }

    /// From now on the value of this acquisition should go from the servers.
    pub(super) fn disown(&mut self, client: usize, slot: usize) {
        let entry = &self.processes[client].slots[slot];
        for name in self.names_of(&entry.recipe.keys) {
            entry.owner.iter().for_each(|owner| self.history.disown(name, owner, self.now));
        }
    }

    pub(super) fn end_call(&mut self, client: usize, slot: usize, id: CallId) -> Option<Pending> {
        let call = self.processes[client].slots[slot].end_call(id);
        if call.is_none() {
            self.violate(format!("c{client}.{slot}: an answer to no call, or a second one"));
        }
        call
    }

    fn extended(&mut self, client: usize, slot: usize, id: CallId, result: Result<(), Error>) {
        self.trace(|| format!("c{client}.{slot} EXTENDED {result:?}"));
        let Some(call) = self.end_call(client, slot, id) else { return };
        let entry = &self.processes[client].slots[slot];
        let limit = entry.recipe.unavailable_after + entry.recipe.response_timeout;
        let Kind::Extend { reach } = call.kind else { return self.violate(format!("c{client}.{slot}: not an extend")) };
        let over = entry.loss.is_some() || entry.gone.is_some();
        let fits = match &result {
            Ok(()) => {
                let capped = entry.recipe.options.max_hold.map_or(reach, |span| {
                    reach.min(
                        locktender::internals::clock::Tick::from_micros(self.processes[client].clock.at(entry.granted_at))
                            .after(span),
                    )
                });
                !over && entry.valid_until >= capped
            }
            Err(error) => match error.code() {
                Code::LockLost => entry.valid_until == locktender::internals::clock::Tick::default(),
                Code::NotHeld => over || entry.machine.valid_until() == locktender::internals::clock::Tick::default(),
                Code::Unavailable => self.now - call.at >= micros(entry.recipe.unavailable_after) * 99 / 100,
                Code::InvalidArgument => entry.recipe.quorum_config.is_some(),
                _ => false,
            },
        };
        if !fits {
            self.violate(format!("c{client}.{slot}: an extend to {reach:?} ended with {result:?}"));
        }
        if !self.in_time(client, call.at, call.stopped, limit) {
            self.violate(format!("c{client}.{slot}: an extend outlasted {limit:?}"));
        }
    }

    fn released(&mut self, client: usize, slot: usize, id: CallId, result: Result<Release, Error>) {
        self.trace(|| format!("c{client}.{slot} RELEASED {result:?}"));
        let Some(call) = self.end_call(client, slot, id) else { return };
        let Kind::Release(manner) = call.kind else { return self.violate(format!("c{client}.{slot}: not a release")) };
        let entry = &self.processes[client].slots[slot];
        let explicit = manner == Manner::Explicit;
        let limit = if explicit { entry.recipe.unavailable_after } else { entry.recipe.response_timeout };
        // The call is the first of its kind if no outcome was reported before.
        let (begun, known) = entry.released;
        let fits = match &result {
            Ok(release) if explicit => !known && self.names_owner(client, slot, release),
            Ok(_) => begun || entry.left || entry.loss.is_none() || entry.gone != Some(Gone::Released),
            Err(error) => match error.code() {
                Code::Unavailable => explicit,
                Code::NotHeld => {
                    explicit && (known || entry.left || entry.calls.iter().any(|call| matches!(call.kind, Kind::Release(_))))
                }
                Code::LockLost => !explicit,
                _ => false,
            },
        };
        if !fits {
            let loss = entry.loss.clone();
            self.violate(format!("c{client}.{slot}: a release {manner:?} {begun} {known} after {loss:?} ended with {result:?}"));
        }
        if !self.in_time(client, call.at, call.stopped, limit) {
            self.violate(format!("c{client}.{slot}: a release {manner:?} outlasted {limit:?}"));
        }
        let unknown = matches!(&result, Err(error) if error.code() == Code::Unavailable);
        let entry = &mut self.processes[client].slots[slot];
        let is_released = matches!(&result, Ok(release) if release.outcome == Outcome::Released);
        entry.is_given_back |= is_released && entry.recipe.job.is_some() && entry.ending.is_none() && entry.loss.is_none();
        // The end of a body may be reported before the outcome is known.
        entry.released.1 |= !unknown && explicit;
        entry.left |= !explicit;
        self.stats.releases += u64::from(is_released);
        self.worker_released(client, slot, unknown);
    }

    fn handed_over(&mut self, client: usize, slot: usize, id: CallId, result: Result<String, Error>) {
        self.trace(|| format!("c{client}.{slot} HANDED OVER {result:?}"));
        if self.end_call(client, slot, id).is_none() {
            return;
        }
        let entry = &self.processes[client].slots[slot];
        match result {
            Ok(ticket) => {
                let (name, ttl) = (entry.name, entry.ttl());
                if let Some(owner) = field(&ticket, "owner") {
                    let kind =
                        if field(&ticket, "kind").as_deref() == Some("read") { LockKind::Read } else { LockKind::Exclusive };
                    self.tickets.push(Ticket { name, owner: owner.into(), ttl, kind });
                }
            }
            Err(error) if entry.loss.is_some() && error.code() == Code::LockLost => (),
            Err(error) => self.violate(format!("c{client}.{slot}: a hand-over ended with {error:?}")),
        }
    }
}

/// A field of a hand-over string, as the client that adopts the lock reads it.
fn field(ticket: &str, key: &str) -> Option<String> {
    let value = ticket.split(' ').find_map(|part| part.strip_prefix(key)?.strip_prefix('='))?;
    let mut parts = value.split('%');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        let code = u8::from_str_radix(part.get(..2)?, 16).ok()?;
        plain.push(char::from(code));
        plain.push_str(&part[2..]);
    }
    Some(plain)
}
