//! One server's behaviour as a pure state machine: the effect of every operation, without a clock and without I/O.
//!
//! The effect of an operation on a lock depends on the lock's [`Kind`]: each kind has a file of its own with its rules.
//!
//! The machine is the executable specification of the scripts in `core/src/scripts`. A differential test compares the two, reply
//! by reply and key by key. The machine is also the server behind `memory://`.
//!
//! The *lock* is a plain string with an expiry: the owner's value, and on one server notes behind it; other lock libraries write
//! it, too. On one server the *clock* of the lock's slot gives the fences. On a server of a quorum the *fence* is a key of the
//! lock's own, which counts votes and is kept for two hours after its last use, and the server has a key of its own, its *marker*.
//!
//! | operation | refused | done |
//! | --- | --- | --- |
//! | acquire | `Held`: the lock is another's. `Quarantine`, `Mismatch`: the marker says so | a vote above the fence: lock = owner for ttl, fence = vote |
//! | confirm | `No`: the lock is not ours, or the fence is above ours | fence = ours |
//! | extend | the same | at least ttl remains (never less than before), fence = ours |
//! | heal | `No`: the lock is another's, or the fence is above ours | lock = owner for at least ttl, fence = ours |
//! | release | `No`: the lock is not ours | the lock is deleted, the fence stays, the first waiter is notified |
//! | leave | `No` always: it asks for no lock | the waiter is out of the queue; the next waiter gets the notice that this one may have got |
//!
//! An acquire that finds its own value in the key votes again, as it does for the value that it adopts: a reply may have been
//! lost, and the old vote with it. Every operation that succeeds keeps the fence for another day. An operation that fails changes
//! neither lock nor fence.
//!
//! A waiter that finds the lock held may join its *queue*, and is notified of the release. On a single server the lock is then
//! kept for a waiter that is fair, or has waited long. For any other waiter the lock is free, and a newcomer may be faster. On a
//! quorum the queues are hints only, because independent servers can't agree on who is first.
//!
//! Keys of other programs are never touched: a lock key that isn't a string, or a fence that isn't a number, is a `Conflict`. The
//! keys are checked in the order marker, fence, lock. Only a release ignores the fence, because the deletion of one's own lock
//! must not depend on it. A lock without expiry has a holder like any other.

mod clock;
mod cut;
mod exclusive;
mod fence;
mod found;
mod history;
mod job;
mod listing;
pub(crate) mod marker;
mod members;
mod notes;
mod part;
mod queue;
mod quorum;
mod room;
mod several;
mod shared;
mod state;

#[doc(hidden)]
pub use crate::op::holder::shows_waiters;
pub use crate::op::holder::{claim, fence_of, is_claim, owner_of};
pub(crate) use clock::fence_of_id;
pub use cut::SHOWN_BYTES;
pub(crate) use fence::is_time;
pub use fence::{KEPT_MS as FENCE_KEPT_MS, LIMIT as FENCE_LIMIT};
pub use marker::UNKNOWN_REPLID;
#[doc(hidden)]
pub use members::Members;
pub use queue::{ALIVE_MS, CLAIM_MS, channel, channel_of};
pub(crate) use queue::{LIMIT as LIMIT_OF_PERMITS, mode_of, notified_by_lock};
#[doc(hidden)]
pub use state::{Entry, Value};
pub use state::{Message, State};

use std::sync::Arc;

use crate::name::{Keys, Kind};
use crate::op::{LockOp, Op, Reply, ServerFacts, Verb, Verdict};

/// Applies an operation on a lock by the rules of its kind. The table above says when it is refused, and what it does.
///
/// # Errors
/// A reply, too: the refusal that ended the operation early.
fn apply_to_lock(state: &mut State, op: &LockOp, now_us: u64) -> Result<Reply, Reply> {
    match op.keys.kind() {
        Kind::Exclusive => exclusive::apply(state, op, now_us),
        Kind::Quorum => quorum::apply(state, op, now_us),
        Kind::Job => job::apply(state, op, now_us),
        Kind::Read | Kind::Semaphore(_) => shared::apply(state, op, now_us),
        Kind::Several => several::apply(state, op, now_us),
    }
}

/// The facts about a server beside its keys.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// The server's clock, microseconds since the epoch.
    pub now_us: u64,
    /// The server's replication id, which changes when the server restarts, and when a replica is promoted.
    pub replid: &'a str,
    /// The replication id that the server showed in the client's handshake; [`UNKNOWN_REPLID`] if it showed none.
    pub known_as: &'a str,
    /// Whether the server has changed that id since, and has lost nothing. It does so when its first replica comes.
    pub is_renamed: bool,
}

/// Applies one operation, atomically, and gives the reply.
pub fn apply(state: &mut State, op: &Op, env: &Env<'_>) -> Reply {
    let (Ok(reply) | Err(reply)) = apply_now(state, op, env);
    state.forget_seen();
    reply
}

/// Applies one operation as a server does that has transactions: they take a free lock, without a script.
pub(crate) fn serve(state: &mut State, op: &Op, env: &Env<'_>) -> Reply {
    let (true, Op::Lock(LockOp { keys, by, verb: Verb::Acquire { ttl_ms, proposal, .. } })) = (op.takes_if_free(), op) else {
        return apply(state, op, env);
    };
    let (taken, id) = take_free(state, keys, (by, *ttl_ms), env);
    if let Some(fence) = id.ok().filter(|_| taken).and_then(|id| fence_of_id(id, *proposal)) {
        return Reply { is_bare: true, ..Reply::new(Verdict::Vote, env.now_us, fence) };
    }
    let reply = apply(state, op, env);
    if let (true, Some(undo)) = (taken && reply.verdict != Verdict::Vote, op.undo()) {
        apply(state, &undo, env);
    }
    reply
}

fn apply_now(state: &mut State, op: &Op, env: &Env<'_>) -> Result<Reply, Reply> {
    let now_us = env.now_us;
    Ok(match op {
        Op::Lock(op) => {
            if let Some(adopted) = shared::adopt(state, op, now_us) {
                return Ok(adopted);
            }
            let config = if let Verb::Acquire { quorum_config, .. } = &op.verb { quorum_config.as_ref() } else { None };
            let refused = config.and_then(|config| marker::admit(state, op.keys.marker(), config, env));
            return refused.map_or_else(|| apply_to_lock(state, op, now_us), Err);
        }
        Op::Part(op) => part::apply(state, op, env)?,
        Op::Greet { quorum_config } => marker::greet(state, quorum_config.as_ref(), env),
        Op::Examine => examine(env),
        // This server denies no command.
        Op::Probe { .. } => Reply::new(Verdict::Probed { missing: Vec::new() }, now_us, 0),
        Op::Trust { quorum_config } => marker::trust(state, quorum_config, env),
        Op::Marker { remove } => marker::show(state, *remove, env),
        Op::Scan { part, listed, .. } => listing::scan(state, *listed, part, now_us),
        Op::Peek { key } => listing::peek(state, key, now_us),
        // This server has none.
        Op::AwaitReplicas { .. } => Reply::new(Verdict::Replicated { count: 0 }, now_us, 0),
        Op::Log(note) => history::log(state, note, now_us)?,
        Op::History { before, since_ms, count } => history::show(state, *before, *since_ms, *count, now_us)?,
        Op::Publish { channel, message } => {
            state.publish(channel.to_string(), message.to_string());
            Reply::new(Verdict::Ok, now_us, 0)
        }
    })
}

/// What a transaction does that takes a free lock: gives whether the lock was free, and the id that the clock gave, or what is
/// there in its place.
#[doc(hidden)]
pub fn take_free(
    state: &mut State,
    keys: &Keys,
    (owner, ttl_ms): (&Arc<str>, u64),
    env: &Env<'_>,
) -> (bool, Result<(u64, u64), String>) {
    let taken = exclusive::take_free(state, keys, (owner, ttl_ms), env.now_us);
    state.forget_seen();
    taken
}

/// The facts that this machine can give about its server.
fn examine(env: &Env<'_>) -> Reply {
    let [version, role, persistence, eviction] = ["memory", "master", "none", "noeviction"].map(str::to_owned);
    let facts = ServerFacts { version, role, persistence, eviction, shows_replid: true, ..ServerFacts::default() };
    Reply::new(Verdict::Described(Box::new(facts)), env.now_us, 0)
}
