//! Backlog: the operations that wait for a connection, in the order of their submission.

use std::collections::VecDeque;

use crate::clock::Tick;
use crate::op::Failure;
use crate::server::redis::connection::effect::Effect;
use crate::server::redis::connection::failure::too_late;
use crate::server::redis::connection::job::Job;

/// The operations that wait, and the time at which the first of their deadlines passes.
pub(crate) struct Backlog {
    jobs: VecDeque<Job>,
    /// A time not later than the first deadline.
    due: Tick,
}

impl Backlog {
    pub(crate) fn new() -> Self {
        Self { jobs: VecDeque::new(), due: Tick::NEVER }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(crate) fn due(&self) -> Tick {
        self.due
    }

    pub(crate) fn push(&mut self, job: Job) {
        self.due = self.due.min(job.request.deadline);
        self.jobs.push_back(job);
    }

    /// Empties the backlog; `send` gets the operations that may still be sent, or ends them.
    pub(crate) fn drain(&mut self, now: Tick, mut send: impl FnMut(Job) -> Option<Effect>, out: &mut Vec<Effect>) {
        self.due = Tick::NEVER;
        for job in self.jobs.drain(..) {
            if job.request.deadline <= now {
                out.push(job.end(Err(too_late())));
            } else {
                out.extend(send(job));
            }
        }
    }

    /// Ends with `failure` the operations that are unfit to wait.
    pub(crate) fn refuse(&mut self, failure: &Failure, unfit: impl Fn(&Job) -> bool, out: &mut Vec<Effect>) {
        self.due = Tick::NEVER;
        for job in std::mem::take(&mut self.jobs) {
            if unfit(&job) {
                // An operation that was sent before, on a socket that broke, may have been done then.
                let maybe_applied = failure.maybe_applied || job.repeated;
                out.push(job.end(Err(Failure { maybe_applied, ..failure.clone() })));
            } else {
                self.push(job);
            }
        }
    }
}
