//! Conversation: the commands and the answers on one socket after its handshake.

use std::sync::Arc;
use std::time::Duration;

use redis::{RedisResult, Value};

use crate::clock::Tick;
use crate::mutant::mutant;
use crate::name::Kind;
use crate::op::{Answer, Failure, LockOp, Op, Reply, Verb, Verdict};
use crate::server::redis::commands::comparison::Comparison;
use crate::server::redis::commands::words::{self, Form};
use crate::server::redis::connection::buffers::Buffers;
use crate::server::redis::connection::effect::Effect;
use crate::server::redis::connection::in_flight::InFlight;
use crate::server::redis::connection::pipeline::Pipeline;
use crate::server::redis::connection::primary::{Accepted, Primary};
use crate::server::redis::connection::question::Question;
use crate::server::redis::login::Login;
use crate::server::{Completion, Request};

/// One socket whose server knows this client.
pub(crate) struct Conversation {
    pub(crate) buffers: Buffers,
    pub(crate) pipeline: Pipeline,
    /// The replication id with which it began.
    pub(crate) accepted: Accepted,
    /// The credentials that the server got last.
    pub(crate) login: Arc<Login>,
    /// Whether their answer is still to come.
    pub(crate) logs_in: bool,
    /// The time from which on the server is asked again for its clock.
    clock_due: Tick,
    /// Whether a free lock is taken by a transaction.
    pub(crate) is_native: bool,
    /// How a lock is released that nobody waits for; `None` if the script of a release is the only way.
    comparison: Option<Comparison>,
    /// Whether the server knows the script that compares.
    knows_comparison: bool,
}

/// The least pause between two readings of the server's clock. A fast clock of a client then matters for as long at most.
const CLOCK: Duration = Duration::from_secs(1);

impl Conversation {
    /// Begins, on a socket with a complete handshake.
    pub(crate) fn begin(buffers: Buffers, pipeline: Pipeline, (accepted, login): (Accepted, Arc<Login>), now: Tick) -> Self {
        let (is_native, comparison) = (pipeline.facts().has_transactions, Some(pipeline.facts().comparison));
        let (clock_due, knows_comparison) = (now.after(CLOCK), false);
        Self { buffers, pipeline, accepted, login, logs_in: false, clock_due, is_native, comparison, knows_comparison }
    }

    /// Sends an operation that was not sent so far, or ends it at once: a replication id that was left before has no votes.
    #[must_use]
    pub(crate) fn submit(&mut self, mut pending: InFlight, primary: &Primary, now: Tick) -> Option<Effect> {
        let votes_from = self.accepted.votes_from;
        if now < votes_from && matches!(pending.request.op.verb(), Some(Verb::Acquire { .. })) {
            return Some(pending.end(Ok(Reply::new(Verdict::Quarantine { left: votes_from.since(now) }, 0, 0))));
        }
        let mut is_behind = false;
        if let Op::Lock(LockOp { keys, verb: Verb::Acquire { proposal, .. }, .. }) = &mut pending.request.op
            && keys.kind() != Kind::Quorum
        {
            let (floor, by_script) = primary.floor(keys, now);
            (*proposal, is_behind) = (floor.max(*proposal), by_script);
        }
        let op = &pending.request.op;
        let only_if_free = pending.request.only_if_free;
        let is_busy = || op.keys().is_some_and(|keys| primary.busy.has(keys.lock()));
        let is_native = self.is_native
            && !is_behind
            && !pending.asking
            && pending.tried.is_none()
            && op.takes_if_free()
            && (only_if_free || !is_busy());
        if only_if_free && !is_native {
            return Some(pending.refuse());
        }
        let compares = self.comparison.is_some() && !pending.asking && pending.request.value.is_some() && !is_busy();
        let form = if compares {
            Form::Compare
        } else if is_native {
            Form::Native
        } else {
            Form::BySha
        };
        self.send(pending, form, now);
        None
    }

    /// Sends an operation after those before it. The server's clock is read ahead of an acquire: the next one proposes a fence by
    /// it. The first extension is sent as text: on a slow link its hold could end while a server asks for the script. So is the
    /// first release: its client may go before the server asks.
    pub(crate) fn send(&mut self, pending: InFlight, form: Form, now: Tick) {
        let proposes = |op: &LockOp| op.keys.kind() == Kind::Quorum && matches!(op.verb, Verb::Acquire { .. });
        if pending.request.op.on_lock().is_some_and(proposes) && now >= self.clock_due {
            self.clock_due = now.after(CLOCK);
            self.ask(Question::Time, now);
        }
        let op = &pending.request.op;
        let is_urgent =
            op.counts_late() && !mutant!(FirstExtensionByHash) || op.survives_reconnect() && !mutant!(FirstReleaseByHash);
        let by_text = pending.asking || form == Form::BySha && is_urgent && !self.pipeline.knows_script(op);
        let form = if by_text { Form::ByText } else { form };
        if pending.asking {
            self.ask(Question::Asking, now);
        }
        match form {
            Form::Native => words::transaction(op, self.buffers.output.end()),
            Form::Compare => {
                let lock = op.keys().map_or("", |keys| keys.lock());
                let value = pending.request.value.as_deref().unwrap_or_default();
                let by_text = !std::mem::replace(&mut self.knows_comparison, true);
                words::compare(self.comparison.unwrap_or_default(), lock, value, by_text, self.buffers.output.end());
            }
            Form::BySha | Form::ByText => words::command(op, self.pipeline.facts(), form).write(self.buffers.output.end()),
        }
        self.pipeline.push(pending, form, now);
    }

    /// What was sent without the operation's script has not done it. If it is of no use here for good, it isn't sent again.
    pub(crate) fn gives_way(&mut self, op: &Op, lasting: bool) {
        if matches!(op.verb(), Some(Verb::Acquire { .. })) {
            self.is_native &= !lasting;
            return;
        }
        self.knows_comparison = false;
        if lasting {
            self.comparison = self.comparison.filter(|comparison| *comparison != Comparison::Script).map(|_| Comparison::Script);
        }
    }

    /// Undoes what an acquire has written that ends without a grant, before its caller gets the answer.
    pub(crate) fn give_back(&mut self, pending: InFlight, answer: Answer, now: Tick) {
        let InFlight { request: Request { op, deadline, .. }, completion, .. } = pending;
        let completion = Completion::followed(move |undone: Answer, io| {
            let is_undone = undone.is_ok();
            let answer = answer.map_err(|failure| Failure { maybe_applied: failure.maybe_applied || !is_undone, ..failure });
            completion.complete_by(io, answer);
        });
        if let Some(undo) = op.undo() {
            self.send(InFlight::new(Request::new(undo, deadline), completion), Form::BySha, now);
        }
    }

    /// Sends an operation if it undoes what was cancelled on this socket, and only once: there nothing can overtake it.
    pub(crate) fn send_undo(&mut self, op: &Op, until: Tick, now: Tick) {
        let undoes = self.pipeline.has_cancelled() && self.pipeline.undo().any(|undo| op.undoes(undo));
        if undoes && !self.pipeline.has_in_flight(op) && !mutant!(LateAcquireKept) {
            let pending = InFlight::new(Request::new(op.clone(), until), Completion::new(|_| ()));
            self.send(pending, Form::BySha, now);
        }
    }

    /// Sends the server other credentials, behind what was sent before. One answer at a time is waited for.
    pub(crate) fn log_in(&mut self, login: Arc<Login>, now: Tick) {
        if self.logs_in || Arc::ptr_eq(&self.login, &login) || login.password.is_none() {
            return;
        }
        (self.login, self.logs_in) = (login, true);
        self.ask(Question::Login, now);
    }

    /// Asks a question.
    pub(crate) fn ask(&mut self, question: Question, now: Tick) {
        self.buffers.output.end().extend(question.command(&self.login));
        self.pipeline.push_question(question, now);
    }

    /// The next reply of the server, if all of it is there.
    pub(crate) fn next(&mut self) -> Option<RedisResult<Value>> {
        let reply = self.buffers.replies.next()?;
        self.pipeline.arrived();
        Some(reply)
    }
}

#[cfg(test)]
#[path = "native_tests.rs"]
mod native_tests;
#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
