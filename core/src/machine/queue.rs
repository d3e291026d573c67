//! The queue of a lock's waiters: the server notifies the first waiter when the lock comes free, and may keep the lock for it.
//!
//! One sorted set per lock. An *entry* is a waiter, `<mode>:<client>:<number> <who>`. Its mode is `b`, or `f` if it is fair; that of a reader
//! is `r` or `s`, that of who wants a permit `p` or `q`, with its limit behind the number. Its score is its arrival,
//! in microseconds of the server's clock. Beside the entries there is one member per client, its id, whose score is minus the end
//! of its life. A client whose waiters are silent for longer is dead, and so are its entries.
//!
//! A notified waiter leaves the queue. If it comes too late, it joins again at its old place: a reply named the place, and the
//! waiter names it back.

use std::sync::Arc;

use super::cut::cut;
use super::fence;
use super::members::Members;
use super::notes::note_waiters;
use super::state::{State, Value};
use crate::mutant::mutant;
use crate::name::{Keys, Kind};
use crate::op::holder::{claim, kept};
use crate::op::{QueuePlace, Queued};

/// The time for which a notified waiter goes first. After it the next waiter may come.
pub const CLAIM_MS: u64 = 200;

/// The time for which a client counts as alive after its last sign of life.
pub const ALIVE_MS: u64 = 3_000;

/// The time for which a queue is kept after the last waiter joined.
const KEPT_MS: u64 = 60_000;

/// A waiter this old is granted the lock directly, so that no waiter starves.
const PATIENT_US: u64 = 1_000_000;

/// An operation drops so many dead waiters at once, so many times. More of them must not stop the server.
const BATCH: usize = 100;
const BATCHES: usize = 3;

/// A waiter that joins drops so many dead clients. So their number doesn't grow with the clients that come and go.
const CLIENTS: usize = 10;

/// The most waiters that one operation notifies of the end of a job.
const NOTIFIED: usize = 8;

/// The most waiters that an inspection names.
const SHOWN: usize = 100;

/// The channel on which a client is notified.
#[must_use]
pub fn channel(client: &str) -> String {
    format!("~lt:wake:{client}")
}

/// The letter with which the id of a client begins that is notified of each lock on a channel of that lock.
const BY_LOCK: char = '@';

/// The id of such a client. In a cluster the scripts of a lock can publish on the channels of its slot alone.
pub(crate) fn notified_by_lock(client: &str) -> String {
    format!("{BY_LOCK}{client}")
}

/// The channel on which a client is notified of this lock.
#[must_use]
pub fn channel_of(keys: &Keys, client: &str) -> String {
    match keys.queue().strip_suffix("queue").filter(|_| client.starts_with(BY_LOCK)) {
        Some(side) => format!("{side}wake:{client}"),
        None => channel(client),
    }
}

/// The client of an entry, and the number of the waiter there.
fn address(entry: &str) -> Option<(&str, &str)> {
    let mut parts = entry.splitn(3, ':');
    let (_, client, rest) = (parts.next().filter(|mode| is_mode(mode))?, parts.next()?, parts.next()?);
    Some((client, rest.split(' ').next()?))
}

fn is_mode(mode: &str) -> bool {
    matches!(mode.as_bytes(), [letter] if letter.is_ascii_alphabetic())
}

fn is_fair(entry: &str) -> bool {
    entry.starts_with(['f', 's', 'q'])
}

/// Whether a waiter wants a permit.
pub(super) fn wants_permit(entry: &str) -> bool {
    entry.starts_with(['p', 'q'])
}

/// The limit that a waiter for a permit names: at most five digits.
pub(super) fn limit_in(entry: &str) -> Option<u64> {
    let (_, after) = entry.split_once(LIMIT).filter(|_| wants_permit(entry))?;
    let digits = &after[..after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len())];
    digits.parse().ok().filter(|_| digits.len() <= 5)
}

/// How a waiter for a permit names its limit.
pub(crate) const LIMIT: &str = " permits=";

/// How the entry of a waiter begins that wants to hold a lock of this kind.
pub(crate) const fn mode_of(kind: Kind, fair: bool) -> &'static str {
    match (kind, fair) {
        (Kind::Read, false) => "r",
        (Kind::Read, true) => "s",
        (Kind::Semaphore(_), false) => "p",
        (Kind::Semaphore(_), true) => "q",
        (Kind::Exclusive | Kind::Quorum | Kind::Job | Kind::Several, false) => "b",
        (Kind::Exclusive | Kind::Quorum | Kind::Job | Kind::Several, true) => "f",
    }
}

/// The first waiter of a queue.
pub(super) struct Head {
    pub(super) entry: Arc<str>,
    arrival: u64,
}

impl Head {
    /// Whether the first waiter is the waiter with `place`, or comes after it. A notified waiter has left the queue, but names
    /// the arrival that it had.
    pub(super) fn is_or_came_after(&self, place: &QueuePlace) -> bool {
        self.entry == place.entry || place.arrival > 0 && place.arrival < self.arrival
    }

    /// Whether the newcomer may not pass this waiter. It may not if it is fair itself, or if the waiter is fair or has waited
    /// long.
    pub(super) fn is_next(&self, newcomer_is_fair: bool, now_us: u64) -> bool {
        newcomer_is_fair && !mutant!(FairNewcomerPasses) || self.is_served_directly(now_us)
    }

    pub(super) fn is_served_directly(&self, now_us: u64) -> bool {
        let is_patient = now_us.saturating_sub(self.arrival) >= PATIENT_US && !mutant!(PatientPassed);
        is_fair(&self.entry) && !mutant!(FairPassed) || is_patient
    }
}

/// The first waiter whose client is alive. Drops the dead waiters before it, and a queue without waiters. `None` also if too many
/// are dead: the next operations drop the others.
pub(super) fn first(state: &mut State, keys: &Keys, now_us: u64) -> Option<Head> {
    for batch in 0..=BATCHES {
        let members = state.members(keys.queue(), now_us)?;
        let Some((arrival, entry)) = members.from(0).next() else {
            state.remove(keys.queue());
            return None;
        };
        if lives(members, entry, now_us) || mutant!(DeadHeadNotified) {
            return Some(Head { entry: Arc::clone(entry), arrival: arrival.unsigned_abs() });
        }
        if batch < BATCHES {
            drop_dead(state, keys, now_us);
        }
    }
    None
}

/// Drops the dead waiters at the head of the queue, with their clients: a batch of them.
fn drop_dead(state: &mut State, keys: &Keys, now_us: u64) {
    let Some(members) = state.members(keys.queue(), now_us) else { return };
    let entries = members.from(0).take(BATCH).map(|(_, entry)| Arc::clone(entry));
    let dead: Vec<Arc<str>> = entries.take_while(|entry| !lives(members, entry, now_us)).collect();
    let both = dead.iter().flat_map(|entry| [&**entry, client_of(entry)]);
    state.drop_members(keys.queue(), &both.collect::<Vec<_>>(), now_us);
}

fn client_of(entry: &str) -> &str {
    address(entry).map_or("", |(client, _)| client)
}

fn lives(members: &Members, entry: &str, now_us: u64) -> bool {
    is_alive(members.score(client_of(entry)), now_us)
}

/// Drops some clients that have died. Their waiters stay, and are dropped when they become first.
fn drop_dead_clients(state: &mut State, keys: &Keys, now_us: u64) {
    let Some(members) = state.members(keys.queue(), now_us) else { return };
    let dead = members.from(1 - signed(now_us)).take_while(|(score, _)| *score < 0).take(CLIENTS);
    let dead: Vec<Arc<str>> = dead.map(|(_, client)| Arc::clone(client)).collect();
    state.drop_members(keys.queue(), &dead.iter().map(|client| &**client).collect::<Vec<_>>(), now_us);
}

/// Whether a client is alive. Its life is stored as minus its end.
fn is_alive(life: Option<i64>, now_us: u64) -> bool {
    life.is_some_and(|life| life < 0 && life.unsigned_abs() >= now_us)
}

/// Puts a waiter into the queue, at its old place if it had one, and renews the life of its client.
pub(super) fn enqueue(state: &mut State, keys: &Keys, place: &QueuePlace, now_us: u64) -> Queued {
    let Some((client, _)) = address(&place.entry) else { return Queued::Nothing };
    if state.is_foreign_to_members(keys.queue(), now_us) {
        return Queued::Nothing;
    }
    let tail = state.members(keys.queue(), now_us).and_then(|members| members.last()).map_or(0, |(last, _)| last.max(-1) + 1);
    let tail = tail.unsigned_abs().max(now_us);
    let known = state.members(keys.queue(), now_us).and_then(|members| members.score(&place.entry));
    let arrival = match known {
        Some(arrival) if !mutant!(LookLosesPlace) => arrival.unsigned_abs(),
        None if place.arrival > 0 && place.arrival < tail && !mutant!(PlaceForgotten) => place.arrival,
        _ => tail,
    };
    let life = now_us + ALIVE_MS * 1_000;
    state.put_member(keys.queue(), &place.entry, signed(arrival), now_us);
    let is_there = |state: &State| state.members(keys.queue(), now_us).is_some_and(|members| members.score(client).is_some());
    if !mutant!(LifeNotProlonged) || !is_there(state) {
        state.put_member(keys.queue(), client, -signed(life), now_us);
    }
    state.expire(keys.queue(), now_us, KEPT_MS);
    match keys.kind() {
        Kind::Quorum => fence::mark(state, keys.fence(), now_us),
        _ if mutant!(WaiterNotMarked) || known.is_some() && mutant!(KnownWaiterNotMarked) => {}
        _ => note_waiters(state, keys, now_us),
    }
    if known.is_none() {
        drop_dead_clients(state, keys, now_us);
    }
    let lowest = if mutant!(RankCountsClients) { i64::MIN } else { 0 };
    let rank = state.members(keys.queue(), now_us).map_or(0, |members| members.between(lowest, signed(arrival)));
    Queued::At { rank, arrival }
}

/// Renews the life of a waiter's client where other waiters of it may be.
pub(super) fn lives_on(state: &mut State, keys: &Keys, entry: &str, now_us: u64) {
    let client = client_of(entry);
    if state.members(keys.queue(), now_us).is_some_and(|members| members.score(client).is_some()) {
        state.put_member(keys.queue(), client, -signed(now_us + ALIVE_MS * 1_000), now_us);
        state.expire(keys.queue(), now_us, KEPT_MS);
    }
}

/// Takes a waiter out of the queue.
pub(super) fn leave(state: &mut State, keys: &Keys, entry: &str, now_us: u64) {
    state.drop_members(keys.queue(), &[entry], now_us);
}

/// Takes a waiter that got the lock out of the queue. If more waiters use the same entry, the entry goes to the tail.
pub(super) fn served(state: &mut State, keys: &Keys, place: &QueuePlace, is_queued: bool, now_us: u64) -> Queued {
    if is_queued && !mutant!(WinnerStaysQueued) {
        leave(state, keys, &place.entry, now_us);
    }
    if !place.stays {
        return Queued::Nothing;
    }
    let arrival = if mutant!(GrantKeepsPlace) { place.arrival } else { 0 };
    enqueue(state, keys, &QueuePlace { arrival, ..place.clone() }, now_us)
}

/// Frees the lock of this owner, and notifies its waiters, if there may be any; or keeps it from everybody for `kept_ms`.
pub(super) fn free(state: &mut State, keys: &Keys, (owner, kept_ms): (&str, u64), nobody_waits: bool, now_us: u64) {
    if kept_ms > 0 {
        let value = if mutant!(KeptForItsOwner) { owner.to_owned() } else { kept(owner) };
        state.put(keys.lock(), Value::Text(value.into()), now_us, Some(kept_ms));
        return notify_later(state, keys, kept_ms, now_us);
    }
    state.remove(keys.lock());
    if !nobody_waits && !mutant!(ReleaseNotifiesNobody) {
        wake(state, keys, keys.kind() != Kind::Quorum, false, now_us);
    }
}

/// Notifies the first waiter that the lock is free, or keeps the lock for it. Notifies the second waiter when to try. `is_next`
/// says that no newcomer may pass the first waiter.
pub(super) fn wake(state: &mut State, keys: &Keys, single_server: bool, is_next: bool, now_us: u64) {
    let Some(head) = first(state, keys, now_us) else { return };
    if !mutant!(NotifiedStaysQueued) {
        leave(state, keys, &head.entry, now_us);
    }
    let direct = (single_server || mutant!(QuorumClaims)) && (is_next || head.is_served_directly(now_us));
    if direct {
        let window = if mutant!(ClaimOutlasts) { 10 * CLAIM_MS } else { CLAIM_MS };
        state.put(keys.lock(), Value::Text(claim(&head.entry).into()), now_us, Some(window));
    }
    notify(state, keys, &head.entry, if direct { "claim" } else { "free" }, CLAIM_MS);
    if let Some(second) = first(state, keys, now_us).filter(|_| !mutant!(SecondNotNotified)) {
        notify(state, keys, &second.entry, "next", CLAIM_MS);
    }
}

/// Notifies the first waiters of a job that is over: none of them has to wait any longer. Each that learns of the end by itself
/// makes the server notify more.
pub(super) fn wake_many(state: &mut State, keys: &Keys, now_us: u64) {
    for _ in 0..NOTIFIED {
        let Some(head) = first(state, keys, now_us) else { return };
        leave(state, keys, &head.entry, now_us);
        notify(state, keys, &head.entry, "free", CLAIM_MS);
    }
}

/// Notifies the first waiter of a job when its next attempt may begin.
pub(super) fn notify_later(state: &mut State, keys: &Keys, left_ms: u64, now_us: u64) {
    if let Some(head) = first(state, keys, now_us) {
        notify(state, keys, &head.entry, "next", left_ms);
    }
}

pub(super) fn notify(state: &mut State, keys: &Keys, entry: &str, kind: &str, window_ms: u64) {
    let Some((client, number)) = address(entry) else { return };
    let waiter = [&entry[..1], cut(number)].concat();
    let limit = limit_in(entry).map(|limit| format!("/{limit}")).unwrap_or_default();
    state.publish(channel_of(keys, client), format!("{kind} {window_ms} {waiter}{limit} {}", keys.lock()));
}

/// The waiters of a lock: the number of entries, and the first ones whose client is alive.
pub(super) fn view(state: &State, keys: &Keys, now_us: u64) -> Queued {
    let Some(members) = state.members(keys.queue(), now_us) else { return Queued::Nothing };
    let alive = |entry: &Arc<str>| address(entry).is_some_and(|(client, _)| is_alive(members.score(client), now_us));
    let mut count = members.between(0, i64::MAX);
    if count == 0 {
        return Queued::Nothing;
    }
    let mut first = Vec::new();
    for (_, entry) in members.from(0).take(SHOWN) {
        if alive(entry) {
            first.push(cut(entry).to_owned());
        } else {
            count -= 1;
        }
    }
    Queued::Waiters { count, first }
}

fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "crowd_tests.rs"]
mod crowd_tests;
