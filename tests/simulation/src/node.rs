//! Node: one server, as the machine, a clock, and a process that can crash.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use locktender::internals::name::{Keys, Kind};
use locktender::machine::{Entry, Env, State, Value, apply, claim, fence_of, is_claim, owner_of, take_free};

use locktender::op::{Adoption, LockOp, Op, Reply, Verb, Verdict};

use super::clock::{Clock, Instant, ms};
use super::inside::Inside;
use super::lost_marks::Bereft;
use super::together;

/// One server.
pub(super) struct Node {
    pub(super) state: State,
    pub(super) clock: Clock,
    /// The sum of all jumps of the clock.
    pub(super) ahead: u64,
    /// The part of it that no answer has shown yet.
    pub(super) unshown: u64,
    server: usize,
    /// The number of this node among those that have answered for the server.
    pub(super) number: u32,
    run: u32,
    run_id: String,
    replid: String,
    /// The replication id of the primary that it has followed, as a replica and since its promotion.
    replicates: Option<String>,
    followed: Option<String>,
    /// The scripts that the server keeps in memory alone.
    pub(super) scripts: HashSet<&'static str>,
    pub(super) up: bool,
    pub(super) stopped_until: Instant,
    /// The time when it last came back without all its data.
    pub(super) forgot_at: Option<Instant>,
    /// The time of its last fault.
    pub(super) troubled_at: Instant,
    /// The time when it became a primary again, and closed no connection.
    pub(super) returned_at: Instant,
    /// The end of the quarantine that it named last. That begins with the first acquire which reaches it.
    pub(super) votes_at: Instant,
    snapshots: VecDeque<(Instant, State)>,
    /// The gates whose marks were deleted.
    pub(super) bereft: Vec<Bereft>,
}

impl Node {
    pub(super) fn new(server: usize, clock: Clock) -> Self {
        Self {
            state: State::new(),
            clock,
            ahead: 0,
            unshown: 0,
            run: 1,
            server,
            number: 1,
            run_id: format!("run-{server}-1"),
            replid: format!("era-run-{server}-1"),
            replicates: None,
            followed: None,
            scripts: HashSet::new(),
            up: true,
            stopped_until: 0,
            forgot_at: None,
            troubled_at: 0,
            returned_at: 0,
            votes_at: 0,
            snapshots: VecDeque::new(),
            bereft: Vec::new(),
        }
    }

    /// The server's clock, microseconds since the epoch.
    pub(super) fn wall_us(&self, now: Instant) -> u64 {
        self.clock.at(now) + self.ahead
    }

    /// The run id of the server's process.
    pub(super) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The server's replication id.
    pub(super) fn replid(&self) -> &str {
        &self.replid
    }

    /// The replication id of the primary whose replica it was before its promotion.
    pub(super) fn followed(&self) -> Option<&str> {
        self.followed.as_deref()
    }

    /// Does one operation of a client that knows this replication id, and gives an error if it changed a key that it had no right
    /// to change.
    pub(super) fn apply(&mut self, op: &Op, known_as: &str, now: Instant) -> (Reply, Result<(), String>) {
        self.unshown = 0;
        let now_us = self.wall_us(now);
        let seen = |node: &Self, keys: &Keys| keys.each().map(|keys| Seen::of(node, keys, now_us)).collect::<Vec<_>>();
        let before = keys_of(op).map(|keys| seen(self, keys));
        let place_at = |keys: &Keys| {
            let stands = |entry: &str| self.state.members(keys.queue(), now_us).is_some_and(|queue| queue.score(entry).is_some());
            together::place_at(op, stands, self.state.get(keys.lock(), now_us).and_then(|entry| entry.text()))
        };
        let places: Vec<_> = op.keys().into_iter().flat_map(|keys| keys.each()).map(place_at).collect();
        let reply = apply(&mut self.state, op, &Env { now_us, replid: &self.replid, known_as, is_renamed: false });
        let verdict = match (before, keys_of(op)) {
            (Some(before), Some(keys)) => {
                let (each, after) = (together::each(op, &reply, &places), seen(self, keys));
                let mut pairs = before.iter().zip(&after).zip(&each);
                pairs.try_for_each(|((before, after), (op, reply))| before.allows(op, reply, after))
            }
            _ => Ok(()),
        };
        (reply, verdict)
    }

    /// Shows a lock to an observer.
    pub(super) fn inspect(&mut self, keys: &Arc<Keys>, now: Instant) -> Reply {
        let env = Env { now_us: self.wall_us(now), replid: &self.replid, known_as: "", is_renamed: false };
        apply(&mut self.state, &Op::inspect(Arc::clone(keys)), &env)
    }

    /// Whether a key has this value.
    pub(super) fn has(&self, key: &str, value: Option<&str>, now: Instant) -> bool {
        self.state.get(key, self.wall_us(now)).is_some_and(|entry| value.is_some() && entry.text() == value)
    }

    /// Takes a free lock by a transaction; gives an error if it wasn't free.
    pub(super) fn take_free(&mut self, op: &Op, now: Instant) -> (bool, Option<(u64, u64)>, Result<(), String>) {
        let Op::Lock(LockOp { keys, by, verb: Verb::Acquire { ttl_ms, .. } }) = op else { return (false, None, Ok(())) };
        self.unshown = 0;
        let now_us = self.wall_us(now);
        let before = Seen::of(self, keys, now_us);
        let env = Env { now_us, replid: &self.replid, known_as: &self.replid, is_renamed: false };
        let (took, id) = take_free(&mut self.state, keys, (by, *ttl_ms), &env);
        let is_right =
            if took && before.holder.is_some() { Err(format!("{op:?} took the key of {:?}", before.holder)) } else { Ok(()) };
        (took, id.ok(), is_right)
    }

    /// The instant in true time at which a key with this expiry is gone.
    pub(super) fn gone_at(&self, expires_ms: u64) -> Instant {
        self.clock.when((expires_ms + 1).saturating_mul(1_000).saturating_sub(self.ahead))
    }

    /// The value of a lock, and the instant at which it will be gone.
    pub(super) fn lock(&self, keys: &Keys, now: Instant) -> Option<(&str, Instant)> {
        let entry = self.state.get(keys.lock(), self.wall_us(now))?;
        Some((owner_of(entry.text()?), entry.expires_ms.map_or(Instant::MAX, |at| self.gone_at(at))))
    }

    /// The instant at which a hold will be gone: its key, or its mark and the gate.
    pub(super) fn kept_until(&self, keys: &Keys, owner: &str, now: Instant) -> Option<Instant> {
        let (held, gone) = self.lock(keys, now)?;
        if !keys.kind().is_shared() {
            return Some(gone).filter(|_| held == owner);
        }
        let end = Inside::of(&self.state, keys, self.wall_us(now)).end_of(keys.kind(), owner)?;
        Some(self.gone_at(end - 1).min(gone))
    }

    /// The highest fence of a lock.
    pub(super) fn fence(&self, keys: &Keys, now: Instant) -> u64 {
        let key = if keys.kind() == Kind::Quorum { keys.fence() } else { keys.lock() };
        let entry = self.state.get(key, self.wall_us(now));
        let shown = |entry: &Entry| if keys.kind() == Kind::Quorum { number(entry) } else { fence_of(entry.text()?) };
        entry.and_then(shown).unwrap_or(0)
    }

    /// Saves the present state as a snapshot.
    pub(super) fn snapshot(&mut self, now: Instant) {
        self.snapshots.push_back((now, self.state.clone()));
        while self.snapshots.front().is_some_and(|(at, _)| at + ms(6_000) < now) {
            self.snapshots.pop_front();
        }
    }

    /// Crashes, and `forgets` the changes of that span; returns whether the server was up.
    pub(super) fn crash(&mut self, now: Instant, forgets: Option<u64>) -> bool {
        if !self.up {
            return false;
        }
        self.up = false;
        if let Some(age) = forgets {
            let kept = self.snapshots.iter().rev().find(|(at, _)| at.saturating_add(age) <= now);
            self.state = kept.map(|(_, state)| state.clone()).unwrap_or_default();
            self.forgot_at = Some(now);
            self.snapshots.clear();
        }
        true
    }

    /// A replica of this node with its data of `age` ago, which answers when it is started. Its clock is off by `skew`.
    pub(super) fn replica(&self, now: Instant, age: u64, skew: i64, drift: i64) -> Self {
        let kept = self.snapshots.iter().rev().find(|(at, _)| age > 0 && at.saturating_add(age) <= now);
        let lags = if age > 0 { State::default() } else { self.state.clone() };
        let wall_us = self.wall_us(now).saturating_add_signed(skew);
        Self {
            state: kept.map_or(lags, |(_, state)| state.clone()),
            clock: Clock::showing(wall_us, now, drift),
            up: false,
            number: self.number + 1,
            run: self.run + 100,
            replicates: Some(self.replid.clone()),
            bereft: self.bereft.clone(),
            ..Self::new(self.server, self.clock)
        }
    }

    /// Becomes a replica of a replica that was promoted with the data of `age` ago, and a primary again when it has that data. Its
    /// process continues, and so do its connections.
    pub(super) fn go_and_return(&mut self, now: Instant, age: u64) {
        let kept = self.snapshots.iter().rev().find(|(at, _)| at.saturating_add(age) <= now);
        self.state = kept.map(|(_, state)| state.clone()).unwrap_or_default();
        self.snapshots.clear();
        let promoted = format!("{}-promoted", self.replid);
        self.replid = format!("{promoted}-back");
        self.followed = Some(promoted);
        // An old primary may still grant what it doesn't know.
        self.forgot_at = self.forgot_at.max(Some(now));
        (self.troubled_at, self.returned_at) = (now, now);
    }

    pub(super) fn restart(&mut self, now: Instant) {
        self.up = true;
        self.run += 1;
        self.run_id = format!("run-{}-{}", self.server, self.run);
        self.replid = format!("era-{}", self.run_id);
        self.followed = self.replicates.take();
        self.scripts.clear();
        self.troubled_at = now;
    }
}

/// The number of a fence, without its mark, or the last one that a clock gave: an id beyond the thousand of its millisecond is none.
fn number(entry: &Entry) -> Option<u64> {
    match &entry.value {
        Value::Clock(ms, count) => Some(ms * 1_000 + (*count).min(999)),
        _ => entry.text()?.trim_end_matches('q').parse().ok(),
    }
}

fn keys_of(op: &Op) -> Option<&Keys> {
    match op {
        Op::Lock(LockOp { keys, verb: Verb::Acquire { .. } | Verb::Confirm { .. }, .. })
        | Op::Lock(LockOp { keys, verb: Verb::Extend { .. } | Verb::Heal { .. }, .. })
        | Op::Lock(LockOp { keys, verb: Verb::Release { .. } | Verb::Leave | Verb::EndAttempt { .. }, .. })
        | Op::Lock(LockOp { keys, verb: Verb::Inspect | Verb::Reset, .. }) => Some(keys),
        _ => None,
    }
}

/// The state of a lock on one server.
struct Seen {
    holder: Option<Arc<str>>,
    expires_ms: Option<u64>,
    fence: u64,
    inside: Inside,
    /// Whether the marks of its gate were deleted.
    is_bereft: bool,
}

impl Seen {
    fn of(node: &Node, keys: &Keys, now_us: u64) -> Self {
        let state = &node.state;
        let entry = state.get(keys.lock(), now_us);
        let text = |value: &Value| if let Value::Text(text) = value { Some(owner_of(text).into()) } else { None };
        let fence = state.get(keys.fence(), now_us).and_then(number);
        Self {
            holder: entry.and_then(|entry| text(&entry.value)),
            expires_ms: entry.and_then(|entry| entry.expires_ms),
            fence: fence.unwrap_or(0),
            inside: Inside::of(state, keys, now_us),
            is_bereft: node.bereft(keys, now_us).is_some(),
        }
    }

    fn allows(&self, op: &Op, reply: &Reply, after: &Self) -> Result<(), String> {
        let before = self.holder.as_deref();
        let may = || match op {
            // An acquire that only adopts needs the hold that was handed over. Without it nothing may change.
            Op::Lock(LockOp {
                by: owner,
                verb: Verb::Acquire { adopt: Some(Adoption { owner: old, or_acquire: false, .. }), .. },
                ..
            }) => before.is_some_and(|held| held == &**owner || held == &**old),
            Op::Lock(LockOp { by: owner, verb: Verb::Acquire { adopt, place, .. }, .. }) => before.is_none_or(|held| {
                let kept = place.as_ref().is_some_and(|place| claim(&place.entry) == held);
                held == &**owner || adopt.as_ref().is_some_and(|adopt| *adopt.owner == *held) || kept
            }),
            // The lock of a job that is reset may be kept for a waiter.
            Op::Lock(LockOp { verb: Verb::Reset, .. }) => before.is_none() && after.holder.as_deref().is_none_or(is_claim),
            Op::Lock(LockOp { by: entry, verb: Verb::Leave, .. }) => before.is_none_or(|held| held == claim(entry)),
            Op::Lock(LockOp { verb: Verb::Release { leave: Some(entry), .. }, .. })
            | Op::Lock(LockOp { verb: Verb::EndAttempt { leave: Some(entry), .. }, .. })
                if before.is_none_or(|held| held == claim(entry)) =>
            {
                true
            }
            Op::Lock(LockOp { by: owner, verb: Verb::Confirm { .. } | Verb::Extend { .. }, .. })
            | Op::Lock(LockOp { by: owner, verb: Verb::Release { .. } | Verb::EndAttempt { .. }, .. }) => before == Some(owner),
            Op::Lock(LockOp { by: owner, verb: Verb::Heal { .. }, .. }) => {
                before.is_none_or(|held| held == &**owner || is_claim(held))
            }
            _ => false,
        };
        let may = self.inside.may_change(op).unwrap_or_else(may);
        // A confirmation raises the clock whatever it answers.
        let raises = matches!(op, Op::Lock(LockOp { keys, verb: Verb::Confirm { .. } | Verb::Heal { .. }, .. }) if keys.kind() != Kind::Quorum);
        let changed =
            before != after.holder.as_deref() || self.expires_ms != after.expires_ms || self.fence != after.fence && !raises;
        if changed && !may {
            return Err(format!("{op:?} changed the key of {before:?}"));
        }
        if after.fence < self.fence {
            return Err(format!("{op:?} lowered the fence from {} to {}", self.fence, after.fence));
        }
        let is_joined = self.inside.is_joined(op);
        if reply.verdict == Verdict::Vote && (after.fence <= self.fence && !is_joined || after.fence > self.fence && is_joined) {
            return Err(format!("{op:?} voted {}, not above {}", after.fence, self.fence));
        }
        let is_held = before.is_some_and(|held| !is_claim(held));
        if matches!(op.verb(), Some(Verb::Extend { .. } | Verb::Heal { .. })) && is_held && after.expires_ms < self.expires_ms {
            return Err(format!("{op:?} shortened a key"));
        }
        self.inside.allows(op, reply, &after.inside, self.is_bereft)
    }
}
