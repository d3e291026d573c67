//! The protocol over N servers, without I/O: pure state machines that take `(now, input)` and give commands.
//!
//! [`Acquisition`] is one acquisition from the first attempt to the last undone vote. The async, the blocking and the
//! simulated shell drive this same code; none of them decides anything. Public for simulation, not for users.
//!
//! Sources: the Redlock description at redis.io; for the fences the ballots of Paxos and the write-back of the ABD register.

mod acquiring;
mod acquisition;
mod ballot;
mod context;
mod ending;
mod extend_requests;
mod extension;
mod hold;
mod inspection;
mod jump;
mod outage;
#[cfg(test)]
mod place_tests;
mod release;
mod releasing;
mod removal;
mod round;
mod rounds;
mod server_report;
mod state;
mod tally;
mod waiting;
mod witness;

use std::sync::Arc;
use std::time::Duration;

pub use acquisition::Acquisition;
pub use ballot::{Ballot, Standing};
pub use inspection::{LockInfo, inspect};
pub use jump::Jump;
pub(crate) use jump::Jumps;
pub use release::{Outcome, Release};
pub use server_report::{Reports, ServerReport, trusted};

use crate::clock::Tick;
use crate::error::{Error, Loss, ServerError};
use crate::event::Event;
use crate::mutant::mutant;
use crate::name::Keys;
use crate::op::{Adoption, Answer, Op, QuorumConfig};
use crate::options::{LockOptions, Wait};
use crate::owner::Signature;
use crate::server::Request;
use crate::wait::{Hint, LeaveReason, Role};

/// How many servers there are, and how many decide.
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

    /// A majority.
    #[must_use]
    pub fn needed(self) -> usize {
        if mutant!(SmallQuorum) { self.0.div_ceil(2) } else { self.0 / 2 + 1 }
    }

    /// Whether so many servers against it leave fewer than a majority.
    #[must_use]
    pub fn blocked_by(self, against: usize) -> bool {
        against > self.0 - self.needed()
    }
}

/// Everything about an acquisition that doesn't change while it runs.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The lock's keys.
    pub keys: Arc<Keys>,
    /// The servers' addresses, for messages; their number is N.
    pub servers: Arc<[String]>,
    /// The quorum as the markers know it; `None` with one server.
    pub quorum_config: Option<QuorumConfig>,
    /// The lock's options.
    pub options: LockOptions,
    /// Hear every server out once, at most a response timeout, before the first grant: so that a server listed twice, or of
    /// another quorum, is found whichever servers are the fastest.
    pub hear_all_first: bool,
    /// Busy is an answer, not an error. How long to wait for a busy lock is an option: zero is one attempt.
    pub busy_is_none: bool,
    /// The hold to take over, of another process.
    pub adopt: Option<Adoption>,
    /// Who we are.
    pub signature: Arc<Signature>,
    /// How long an answer may take.
    pub response_timeout: Duration,
    /// How long to go on without a majority.
    pub unavailable_after: Duration,
}

impl Recipe {
    pub(crate) fn quorum(&self) -> Quorum {
        Quorum::of(self.servers.len())
    }

    /// Whether the acquire waits in line: one attempt doesn't, nor does one that wants only what was handed over.
    #[must_use]
    pub fn lines_up(&self) -> bool {
        let only_adopts = self.adopt.as_ref().is_some_and(|adopt| !adopt.or_acquire);
        !only_adopts && self.options.wait != Wait::For(Duration::ZERO)
    }

    pub(crate) fn name(&self) -> &str {
        self.keys.name()
    }
}

/// What an operation on a server belongs to; comes back with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The round, unique within an acquisition.
    pub round: u32,
    /// The step of the round.
    pub step: Step,
    /// When it was sent.
    pub sent: Tick,
}

/// Deletes `owner`'s key; the waiter `leaves` leaves the queue with it.
fn release(recipe: &Recipe, owner: Arc<str>, leaves: Option<Arc<str>>) -> Op {
    Op::Release { keys: Arc::clone(&recipe.keys), owner, leave: leaves, single_server: recipe.quorum_config.is_none() }
}

/// Takes a waiter out of a server's queue. Nobody waits for the answer: a client that is silent is taken for dead soon.
fn leave(recipe: &Recipe, server: usize, entry: &Arc<str>, now: Tick) -> Command {
    let tag = Tag { round: 0, step: Step::Leave, sent: now };
    let keys = Arc::clone(&recipe.keys);
    let op = Op::Leave { keys, entry: Arc::clone(entry), single_server: recipe.quorum_config.is_none() };
    Command::Send { server, tag, request: Request::new(op, now.after(recipe.response_timeout)) }
}

/// The step of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Step {
    Acquire,
    Confirm,
    Extend,
    Heal,
    Release,
    Leave,
}

/// Identifies a caller's extend or release.
pub type CallId = u64;

/// What happened to an acquisition.
#[derive(Debug)]
pub enum Input {
    /// Begin.
    Start,
    /// A server answered, or failed to.
    Answer {
        /// Which server.
        server: usize,
        /// What it answered to.
        tag: Tag,
        /// The answer.
        answer: Answer,
    },
    /// Time passed; sent at [`Acquisition::wake_at`] or later.
    Wake,
    /// A server told of the lock.
    Hint(usize, Hint),
    /// A server tells of releases from now on, or no longer.
    Listens(usize),
    /// The line of this process moved on; when to try, `None` for at once.
    Role(Role, Option<Tick>),
    /// The caller of the acquire no longer wants it.
    Cancel,
    /// The holder asks for an extension.
    Extend(CallId, Amount),
    /// The holder gives the lock back.
    Release(CallId, Manner),
    /// The holder hands the lock over to another process.
    HandOver(CallId),
    /// The handle was dropped without release.
    Abandon,
    /// The client closes.
    Close,
}

/// How far to extend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// At least the lock's own ttl shall remain.
    Own,
    /// At least this much shall remain.
    To(Duration),
    /// This much more than remains now.
    By(Duration),
}

/// How a lock is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// By a call whose caller wants to know the outcome.
    Explicit,
    /// By leaving a body: an unknown outcome is no error, a loss is.
    EndOfBody,
    /// In the background: nobody waits.
    Background,
}

/// A granted lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The value on the servers.
    pub owner: Arc<str>,
    /// The fencing token.
    pub fence: u64,
}

/// What the shell shall do.
#[derive(Debug)]
pub enum Command {
    /// Submit a request to a server.
    Send {
        /// Which server.
        server: usize,
        /// Comes back with the answer.
        tag: Tag,
        /// What to send.
        request: Request,
    },
    /// Make ready what the heartbeat will use.
    Warm,
    /// Listen to the servers, if that isn't done yet.
    Listen,
    /// Let the others of this process's line try for themselves: our ttl is too short for the way to the servers.
    Yield,
    /// An acquire whose wait has no end waits long already: see whether its own client has the lock.
    WaitsLong {
        /// When the acquire began.
        since: Tick,
    },
    /// Leave the line of this process.
    Quit(LeaveReason),
    /// The next waiter could not be told of the release, and why.
    Untold(String),
    /// A server's clock jumped: tell about it, unless another hold has seen it.
    Jumped(Jump),
    /// Tell about an event.
    Emit(Event),
    /// The acquire ended: granted, busy (`None`, for one-shot attempts), or failed.
    Acquired(Result<Option<Grant>, Error>),
    /// An extend ended.
    Extended(CallId, Result<(), Error>),
    /// A release ended.
    Released(CallId, Result<Release, Error>),
    /// A hand-over ended, with the string to adopt.
    HandedOver(CallId, Result<String, Error>),
    /// The hold is lost. Given once.
    Lost(Loss),
}

/// The servers that failed to answer.
fn failures(servers: &[String], answers: &[Option<Answer>]) -> Vec<ServerError> {
    let failure = |(server, answer): (&String, &Option<Answer>)| match answer {
        Some(Err(failure)) => Some(ServerError { server: server.clone(), kind: failure.kind, message: failure.message.clone() }),
        _ => None,
    };
    servers.iter().zip(answers).filter_map(failure).collect()
}
