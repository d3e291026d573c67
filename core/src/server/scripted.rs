//! Scripted server: a server whose answers a test prescribes, for a fault, another owner or a delay that a real server shows too rarely.

mod delay;
mod play;
mod step;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::delay::Delayed;
use self::step::Act;
pub use self::step::Step;
use crate::clock::Tick;
use crate::error::Error;
use crate::op::Op;
use crate::server::memory::{MemoryServer, too_late};
use crate::server::{Completion, Listener, Request, Server};
use crate::sync::Mutex;

/// The operations, as [`Op::name`] spells them, and a word for all of them.
const OPERATIONS: [&str; 12] =
    ["acquire", "confirm", "extend", "heal", "release", "inspect", "end", "reset", "status", "greet", "trust", ANY];
const ANY: &str = "any";

/// The default time limit for a silent server.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A lock server whose answers a test prescribes, for tests of code that uses locks.
///
/// Each kind of operation has a queue of [`Step`]s. If it is empty, the step set with [`always`](Self::always) is used. Without
/// such a step the server behaves like a separate [`MemoryServer`]. It keeps the operations that it received, see
/// [`seen`](Self::seen).
///
/// ```
/// use locktender::testing::ScriptedServer;
/// use locktender::{Client, Code};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), locktender::Error> {
/// let server = ScriptedServer::new("test");
/// server.play("acquire: busy owner=somebody ttl=500")?; // the first acquire
/// server.play("acquire: fail denied")?;                  // the second; from the third on it behaves
///
/// let client = Client::builder().server(server.clone()).build()?;
/// assert!(client.lock("orders").try_acquire_blocking()?.is_none());
/// assert_eq!(client.lock("orders").try_acquire_blocking().unwrap_err().code(), Code::Denied);
/// assert!(client.lock("orders").try_acquire_blocking()?.is_some());
/// assert_eq!(server.seen().iter().filter(|seen| seen.op == "acquire").count(), 3);
/// # Ok(())
/// # }
/// ```
pub struct ScriptedServer {
    memory: MemoryServer,
    script: Mutex<Script>,
    delayed: Delayed,
}

#[derive(Default)]
struct Script {
    queues: HashMap<&'static str, VecDeque<Step>>,
    always: HashMap<&'static str, Step>,
    timeout: Option<Duration>,
    seen: Vec<Seen>,
}

/// An operation that the server received.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// The kind of the operation: `acquire`, `confirm`, `extend`, `heal`, `release`, `inspect`, `end`, `reset`,
    /// `status`, `greet` or `trust`.
    pub op: &'static str,
    /// The lock's name, if the operation is about a lock.
    pub lock: Option<String>,
    /// The owner value of the caller, if there is one.
    pub owner: Option<String>,
    /// The whole operation.
    #[doc(hidden)]
    pub request: Op,
}

impl ScriptedServer {
    /// A server without a script: it behaves like a memory server until it gets steps. `name` distinguishes it in messages.
    #[must_use]
    pub fn new(name: &str) -> Arc<Self> {
        Arc::new(Self {
            memory: MemoryServer::at(format!("scripted://{name}")),
            script: Mutex::default(),
            delayed: Delayed::default(),
        })
    }

    /// Adds the step for the next operation of a kind that has no step left. `any` stands for all kinds, after their own queues.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a kind that doesn't exist, or a step that can't be its answer.
    pub fn next(&self, operation: &str, step: Step) -> Result<(), Error> {
        let operation = fitting(operation, &step)?;
        self.script.lock().queues.entry(operation).or_default().push_back(step);
        Ok(())
    }

    /// Sets the step for operations of a kind whose queue is empty.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn always(&self, operation: &str, step: Step) -> Result<(), Error> {
        let operation = fitting(operation, &step)?;
        self.script.lock().always.insert(operation, step);
        Ok(())
    }

    /// Adds or sets steps from text, one step a line: `acquire: busy ttl=500`, or `always extend: silence`. [`Step`] lists them.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a line that it can't read; the lines before it are in effect.
    pub fn play(&self, script: &str) -> Result<(), Error> {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let Some((operation, step)) = line.split_once(':') else {
                return Err(Error::invalid("script", line, "a line is \"operation: step\""));
            };
            let step = step.parse()?;
            match operation.trim().strip_prefix("always ") {
                Some(operation) => self.always(operation.trim(), step)?,
                None => self.next(operation.trim(), step)?,
            }
        }
        Ok(())
    }

    /// The time limit for a silent server, after which the outcome is unknown; one second by default.
    pub fn set_response_timeout(&self, timeout: Duration) {
        self.script.lock().timeout = Some(timeout);
    }

    /// All operations received so far, in order.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.script.lock().seen.clone()
    }

    /// The number of queued steps that are not used yet.
    #[must_use]
    pub fn unplayed(&self) -> usize {
        self.script.lock().queues.values().map(VecDeque::len).sum()
    }
}

fn fitting(operation: &str, step: &Step) -> Result<&'static str, Error> {
    let Some(known) = OPERATIONS.into_iter().find(|known| *known == operation) else {
        return Err(Error::invalid("operation", operation, format!("it is one of {}", OPERATIONS.join(", "))));
    };
    if known == ANY || step.act.fits(known) {
        Ok(known)
    } else {
        Err(Error::invalid("step", step, format!("that is no answer to {known}")))
    }
}

impl Script {
    /// The step for an operation. A step for any operation is skipped if it can't be the answer.
    fn take(&mut self, operation: &'static str) -> Step {
        if let Some(step) = self.queues.get_mut(operation).and_then(VecDeque::pop_front) {
            return step;
        }
        let any = self.queues.get_mut(ANY).filter(|queue| queue.front().is_some_and(|step| step.act.fits(operation)));
        any.and_then(VecDeque::pop_front)
            .or_else(|| self.always.get(operation).cloned())
            .or_else(|| self.always.get(ANY).filter(|step| step.act.fits(operation)).cloned())
            .unwrap_or_default()
    }
}

impl ScriptedServer {
    /// The address, as errors and reports name it.
    #[doc(hidden)]
    #[must_use]
    pub fn address(&self) -> &str {
        self.memory.address()
    }
}

impl Server for ScriptedServer {
    fn address(&self) -> &str {
        self.memory.address()
    }

    fn clock(&self, at: Tick) -> Option<u64> {
        self.memory.clock(at)
    }

    fn submit(&self, request: Request, completion: Completion) {
        let now = Tick::now();
        if now > request.deadline {
            return completion.complete(Err(too_late()));
        }
        let Request { op, deadline, .. } = request;
        // Nobody waits for the answer: a script is about what a client asks for.
        if matches!(op, Op::Publish { .. } | Op::Log(_) | Op::History { .. }) {
            completion.complete(self.memory.apply(&op));
            return self.memory.deliver();
        }
        let (step, timeout) = {
            let mut script = self.script.lock();
            script.seen.push(Seen {
                op: op.name(),
                lock: op.keys().map(|keys| keys.name().to_owned()),
                owner: op.owner().map(|owner| owner.to_string()),
                request: op.clone(),
            });
            (script.take(op.name()), script.timeout.unwrap_or(TIMEOUT))
        };
        let answer = play::answer(&self.memory, &op, &step);
        let due = match step.act {
            Act::Nothing { .. } => deadline.min(now.after(timeout)),
            _ => now.after(step.delay),
        };
        if due <= now {
            completion.complete(answer);
        } else {
            self.delayed.complete_at(due, completion, answer);
        }
        self.memory.deliver();
    }

    fn listen(&self, channel: &str, listener: Listener) -> bool {
        self.memory.listen(channel, listener)
    }

    fn moves_with_clock(&self) -> bool {
        true
    }

    /// Ends delayed and unanswered operations. The server can still be used: other clients may share it.
    fn close(&self) {
        self.delayed.end_all();
    }
}

impl fmt::Debug for ScriptedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedServer").field("address", &self.address()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "scripted/tests.rs"]
mod tests;
