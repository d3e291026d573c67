//! The recipe of an acquisition: what doesn't change while it runs.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Tick;
use crate::name::{Keys, Kind, LockKind};
use crate::op::job::Terms;
use crate::op::{Adoption, LockOp, Op, QuorumConfig, Verb};
use crate::options::{LockOptions, Wait};
use crate::owner::Signature;
use crate::protocol::{Command, Quorum, Tag};
use crate::server::Request;
use crate::validity;
use crate::wait::{Mode, queue_key_of_several};

/// More than so many permits are not asked for at once: if all are taken, each of them asks in vain.
const MOST_AT_ONCE: usize = 16;

/// The parts of an acquisition that don't change while it runs.
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
    /// Whether the first grant waits for the answers of all servers, at most a response timeout. So a server that is listed
    /// twice, or is of another quorum, is found even if other servers are faster.
    pub ask_all_first: bool,
    /// Whether a busy lock is an answer, not an error. The time to wait for a busy lock is an option; zero is one attempt.
    pub busy_is_none: bool,
    /// The hold of another process to take over.
    pub adopt: Option<Adoption>,
    /// For a job: its terms. Each acquire begins an attempt then.
    pub job: Option<Terms>,
    /// Whether the hold is noted in the history of the server; on a quorum it never is.
    pub history: bool,
    /// The signature of this process in its owner values.
    pub signature: Arc<Signature>,
    /// The time in which a server has to answer.
    pub response_timeout: Duration,
    /// The time for which the acquire tolerates that no majority answers.
    pub unavailable_after: Duration,
}

impl Recipe {
    pub(crate) fn quorum(&self) -> Quorum {
        Quorum::of(self.servers.len())
    }

    /// Whether the acquire waits in the queues. One attempt doesn't, and neither does an adopt that wants only the hold that was
    /// handed over.
    #[must_use]
    pub fn waits_in_queues(&self) -> bool {
        let only_adopts = self.adopt.as_ref().is_some_and(|adopt| !adopt.or_acquire);
        !only_adopts && self.options.wait != Wait::For(Duration::ZERO)
    }

    /// Whether holds are noted. Those beside others would push the ones of single holders out.
    pub(super) fn logs(&self) -> bool {
        self.history && self.servers.len() == 1
    }

    pub(crate) fn name(&self) -> &str {
        self.keys.name()
    }

    /// The name of the lock that a refusal is about; of several locks the one at this place.
    pub(super) fn name_at(&self, at: usize) -> &str {
        self.keys.parts().get(at).map_or_else(|| self.name(), |part| part.name())
    }

    /// The same for one of several locks that were acquired.
    pub(crate) fn of_part(&self, keys: Arc<Keys>) -> Self {
        Self { keys, ask_all_first: false, ..self.clone() }
    }

    /// The ttl of a grant. If `max_hold` ends before the ttl, a worker that dies blocks others no longer than that; it counts from
    /// the grant, whose answer comes within the response timeout.
    pub(crate) fn first_ttl(&self) -> Duration {
        let to_its_end = |span: Duration| validity::asking_for(span.saturating_add(self.response_timeout));
        self.options.max_hold.map_or(self.options.ttl, |span| self.options.ttl.min(to_its_end(span)))
    }

    /// The time to live of the key behind a grant: longer than the holder believes in.
    pub(crate) fn key_ttl(&self) -> Duration {
        self.key_span(self.first_ttl()).max(self.options.min_hold)
    }

    /// What shall remain of the key, if `span` shall remain of the hold.
    pub(crate) fn key_span(&self, span: Duration) -> Duration {
        span.saturating_add(self.options.grace)
    }

    /// What its waiter wants.
    #[must_use]
    pub fn mode(&self) -> Mode {
        Mode { kind: self.keys.kind(), fair: self.options.fair }
    }

    /// The name of the local queue: waiters for a job and waiters for its lock alone don't try for each other.
    #[must_use]
    pub fn queue_key(&self) -> Cow<'_, str> {
        match (&self.job, self.keys.kind()) {
            (None, Kind::Read) => Cow::from(self.keys.marks()),
            // Who has another limit may have to wait where this one need not.
            (None, Kind::Semaphore(limit)) => format!("{}/{limit}", self.keys.marks()).into(),
            (None, Kind::Several) => queue_key_of_several(&self.keys).into(),
            (None, _) => Cow::from(self.keys.lock()),
            (Some(Terms { scheduled_time: None, .. }), _) => Cow::from(self.keys.record()),
            // A later scheduled time may be left out while the earlier one is waited for.
            (Some(Terms { scheduled_time: Some(scheduled_time), .. }), _) => {
                format!("{}@{}", self.keys.record(), scheduled_time.at_ms).into()
            }
        }
    }

    /// An operation on the lock.
    pub(super) fn op(&self, by: Arc<str>, verb: Verb) -> Op {
        Op::Lock(LockOp { keys: Arc::clone(&self.keys), by, verb })
    }

    /// The command to ask one server for what the operation does by `by`. After `until` the answer is of no use.
    pub(super) fn send(&self, server: usize, tag: Tag, (by, verb): (&Arc<str>, Verb), until: Tick) -> Command {
        Command::Send { server, tag, request: Request::new(self.op(Arc::clone(by), verb), until) }
    }

    /// How many of one process may ask for the lock at once, none of them in its queue.
    #[must_use]
    pub fn asks_at_once(&self) -> usize {
        if let Kind::Semaphore(limit) = self.keys.kind() { (limit as usize).min(MOST_AT_ONCE) } else { 1 }
    }

    /// Whether the fast path knows all that is wanted: a plain lock or a permit of one server.
    #[must_use]
    pub fn suits_fast_path(&self) -> bool {
        let (keys, options) = (&self.keys, &self.options);
        let is_known = match keys.kind() {
            Kind::Exclusive => keys.label().kind == LockKind::Lock,
            kind => matches!(kind, Kind::Semaphore(_)),
        };
        let is_alone = self.servers.len() == 1 && self.quorum_config.is_none();
        is_known
            && is_alone
            && self.adopt.is_none()
            && self.job.is_none()
            && !options.fair
            && options.min_hold.is_zero()
            && options.max_hold.is_none()
    }
}
