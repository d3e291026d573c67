//! The protocol over N servers, without I/O: pure state machines that take `(now, input)` and give commands.
//!
//! [`Acquisition`] is one acquisition from the first attempt to the last undone vote. The async, the blocking and the
//! simulated shell drive this same code; none of them decides anything. Public for simulation, not for users.
//!
//! Sources: the Redlock description at redis.io; for the fences the ballots of Paxos and the write-back of the ABD register.

mod acquiring;
mod acquisition;
#[cfg(test)]
mod attempt_tests;
mod ballot;
mod context;
mod ending;
mod extend_requests;
mod extension;
mod fast_path;
mod force_release;
mod heal;
mod hold;
mod inspection;
mod job_status;
mod jump;
#[cfg(test)]
mod key_span_tests;
#[cfg(test)]
mod looking_tests;
mod observing;
mod outage;
mod overlap;
#[cfg(test)]
mod place_tests;
mod recipe;
mod release;
mod releasing;
mod removal;
mod round;
mod rounds;
mod server_report;
mod state;
mod tally;
mod ticket;
mod waiting;
mod witness;

use std::sync::Arc;
use std::time::Duration;

pub use acquisition::Acquisition;
pub use ballot::{Ballot, Standing};
pub use fast_path::{AcquirePath, FastPath};
pub(crate) use force_release::force_released;
pub use inspection::{LockInfo, inspect};
pub use job_status::{JobState, JobStatus};
pub(crate) use job_status::{job_reset, job_status};
pub use jump::Jump;
pub(crate) use jump::Jumps;
#[cfg(test)]
pub(crate) use observing::GATHERS;
pub use observing::{Leader, Observation, Observing, observe};
pub use recipe::Recipe;
pub use release::{Outcome, Release};
pub use server_report::{ClientTerms, Reports, ServerReport, trusted};
pub(crate) use tally::SEVERAL_SLOTS;

use crate::clock::Tick;
use crate::error::{Error, Loss, ServerFailure};
use crate::event::{EventKind, LockEvent};
use crate::machine::ALIVE_MS;
use crate::mutant::mutant;
use crate::name::Keys;
use crate::op::job::{AttemptNumber, Ending, JobEnd};
use crate::op::{Answer, HistoryNote, Op, Verb};
use crate::options::wire_millis;
use crate::server::Request;
pub use crate::server::tag::{Step, Tag};
use crate::wait::{Hint, LeaveReason, Role};

/// The number of servers, of which a majority decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum(usize);

impl Quorum {
    /// The quorum of `servers` servers.
    #[must_use]
    pub const fn of(servers: usize) -> Self {
        Self(servers)
    }

    /// All servers.
    #[must_use]
    pub const fn servers(self) -> usize {
        self.0
    }

    /// The size of a majority.
    #[must_use]
    pub fn needed(self) -> usize {
        if mutant!(SmallQuorum) { self.0.div_ceil(2) } else { self.0 / 2 + 1 }
    }

    /// Whether no majority is left when `against` servers are against it.
    #[must_use]
    pub fn blocked_by(self, against: usize) -> bool {
        against > self.0 - self.needed()
    }
}

/// The operation that deletes `owner`'s key, and takes the waiter `leaves` out of the queue. The lock is kept for `kept` more.
fn release(recipe: &Recipe, owner: Arc<str>, leaves: Option<Arc<str>>, kept: Duration) -> Op {
    recipe.op(owner, Verb::Release { leave: leaves, kept_ms: wire_millis(kept) })
}

/// The command that takes a waiter out of a server's queue. Its answer doesn't matter: without it, the client soon counts as dead
/// there. Until then, it waits for a connection.
fn leave(recipe: &Recipe, server: usize, entry: &Arc<str>, now: Tick) -> Command {
    let tag = Tag { round: 0, step: Step::Leave, sent: now };
    let waits = if mutant!(LeaveCancelledEarly) { recipe.response_timeout } else { Duration::from_millis(ALIVE_MS) };
    recipe.send(server, tag, (entry, Verb::Leave), now.after(waits))
}

/// Identifies a caller's extend or release.
pub type CallId = u64;

/// An input of an acquisition.
#[derive(Clone, Debug)]
pub enum Input {
    /// The acquire begins.
    Start,
    /// A server answered, or failed to answer.
    Answer {
        /// The server.
        server: usize,
        /// The tag of the request.
        tag: Tag,
        /// The answer.
        answer: Answer,
    },
    /// The time has come that [`Acquisition::wake_at`] gave. A later time is right, too.
    Wake,
    /// A server sent a hint about the lock.
    Hint(usize, Hint),
    /// A server announces releases from now on, or no longer.
    Listens(usize),
    /// Another node answers for this server, or its node was restarted: it may have lost the hold.
    FailedOver(usize),
    /// The role in the local queue changed; with the time of the next try, `None` for at once.
    Role(Role, Option<Tick>),
    /// The lock is held: an acquisition of several locks has got it with the others.
    Granted(GrantOfSeveral, u64),
    /// The caller of the acquire no longer wants it.
    Cancel,
    /// The holder asks for an extension.
    Extend(CallId, Amount),
    /// The holder gives the lock back.
    Release(CallId, Manner),
    /// The holder ends its attempt of a job.
    EndAttempt(CallId, Ending),
    /// The holder hands the lock over to another process.
    HandOver(CallId),
    /// The hold is no longer renewed in the background: another one that belongs to it is lost.
    StopRenewing,
    /// The handle was dropped without release.
    Abandon,
    /// The client closes.
    Close,
}

/// The size of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// At least the lock's own ttl shall remain.
    Own,
    /// At least this much shall remain.
    To(Duration),
    /// This much more than remains now.
    By(Duration),
}

/// The manner in which a lock is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// By a call whose caller wants to know the outcome.
    Explicit,
    /// By leaving a body: an unknown outcome is no error, a loss is.
    EndOfBody,
    /// With the end of an attempt of a job: if it is noted, an earlier loss is no error.
    EndOfAttempt,
    /// In the background: no caller waits.
    Background,
    /// In the background, of a hold that its caller did not get: nobody has worked under it, so `min_hold` doesn't count.
    Unclaimed,
}

impl Manner {
    /// Whether the caller asked for this by a call of its own, and waits for the outcome as long as for an acquire.
    fn is_explicit(self) -> bool {
        matches!(self, Self::Explicit | Self::EndOfAttempt)
    }

    /// Whether no caller waits.
    fn is_background(self) -> bool {
        matches!(self, Self::Background | Self::Unclaimed)
    }
}

/// The answer to an acquire that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The lock is granted.
    Granted(Grant),
    /// Several locks are granted at once. From now on each of them is an acquisition of its own.
    Several(GrantOfSeveral),
    /// The lock is busy, and one attempt was all that the caller wanted.
    Busy,
    /// The job is done or dead: no attempt begins any more.
    Over(JobEnd),
}

/// A granted lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The value on the servers.
    pub owner: Arc<str>,
    /// The fencing token.
    pub fence: u64,
    /// The number of the attempt, of a job.
    pub attempt: Option<AttemptNumber>,
}

/// Several granted locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantOfSeveral {
    /// The value on the server, in the key of each lock.
    pub owner: Arc<str>,
    /// The fencing tokens, in the order of the names.
    pub fences: Arc<[u64]>,
    /// The time of the request, and the server's clock in its answer, in microseconds.
    sent: (Tick, u64),
    /// The time since which the server may have lost them: another node answers for it.
    suspected_at: Option<Tick>,
    /// The run id of the server.
    run_id: Option<Arc<str>>,
    waited: Duration,
    notified_at: Option<Tick>,
    met_busy: bool,
}

/// A command for the shell.
#[derive(Debug)]
pub enum Command {
    /// Submit a request to a server.
    Send {
        /// The server.
        server: usize,
        /// The tag of the answer.
        tag: Tag,
        /// The request.
        request: Request,
    },
    /// Note in the history of the only server how the hold stands. Nobody waits for an answer.
    Log(HistoryNote),
    /// Ask the only server for its history. One answer may be for several who ask.
    Look {
        /// The tag of the answer.
        tag: Tag,
        /// No earlier entry matters, in milliseconds of the server's clock.
        since_ms: u64,
        /// Whether the server failed over, and so many may ask at the same time.
        failed_over: bool,
    },
    /// Prepare the connection for renewals.
    KeepWarm,
    /// Listen to the servers, unless the client listens already.
    Listen,
    /// Let the other waiters of the local queue try: our ttl is too short for the way to the servers.
    Yield,
    /// Look whether this client itself has the lock: an acquire waits long already.
    WaitsLong {
        /// The time at which the acquire began.
        since: Tick,
    },
    /// Leave the local queue.
    Quit(LeaveReason),
    /// Warn that the next waiter could not be notified of the release, with the reason.
    NotNotified(String),
    /// Warn that others ask for so many permits of this semaphore.
    OtherLimit(u32),
    /// Warn that a server's clock jumped, unless another hold has seen that jump.
    Jumped(Jump),
    /// Emit an event.
    Emit(Box<LockEvent>),
    /// Emit an event that says no more than this.
    EmitPlain(PlainEvent),
    /// Emit an event about an attempt of another worker that was not reported. It belongs to no acquire and no hold of this client.
    EmitOfAnother(Box<LockEvent>),
    /// End the acquire.
    Acquired(Result<Answered, Error>),
    /// End an extend.
    Extended(CallId, Result<(), Error>),
    /// End a release.
    Released(CallId, Result<Release, Error>),
    /// End a hand-over, with the ticket for the adopt.
    HandedOver(CallId, Result<String, Error>),
    /// Report the loss of the hold. Given once.
    Lost(Loss),
}

impl Command {
    fn emit(event: LockEvent) -> Self {
        Self::Emit(Box::new(event))
    }
}

/// An event of a lock that is acquired and released with nothing else to say. A whole event is large, and would be moved from hand to
/// hand.
#[derive(Clone, Debug)]
pub struct PlainEvent {
    /// What has happened.
    pub kind: EventKind,
    owner: Option<Arc<str>>,
    fence: Option<u64>,
    took: Option<Duration>,
}

impl PlainEvent {
    /// The event of the lock with these keys.
    #[must_use]
    pub fn of(self, keys: &Keys) -> LockEvent {
        LockEvent { owner: self.owner, fence: self.fence, took: self.took, ..LockEvent::of(self.kind, keys) }
    }
}

/// The errors of the servers that failed to answer.
pub(crate) fn failures(servers: &[String], answers: &[Option<Answer>]) -> Vec<ServerFailure> {
    let failure = |(server, answer): (&String, &Option<Answer>)| match answer {
        Some(Err(failure)) => Some(ServerFailure::of(server, failure)),
        _ => None,
    };
    servers.iter().zip(answers).filter_map(failure).collect()
}
