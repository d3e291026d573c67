//! Pipeline: the commands that were sent on one socket and have no answer yet. Answers come in the order of the questions.

use std::collections::VecDeque;
use std::ptr;
use std::time::Duration;

use redis::{RedisError, RedisResult, Value};

use crate::clock::Tick;
use crate::mutant::mutant;
use crate::op::{Answer, Op, Verb};
use crate::server::redis::commands::codec;
use crate::server::redis::commands::handshake_facts::HandshakeFacts;
use crate::server::redis::commands::native::{self, Outcome};
use crate::server::redis::commands::refusal;
use crate::server::redis::commands::script::Script;
use crate::server::redis::commands::words::Form;
use crate::server::redis::connection::in_flight::InFlight;
use crate::server::redis::connection::question::Question;

/// The meaning of an answer.
pub(crate) enum Landing {
    /// The operation that was sent at that time is answered.
    Answered(InFlight, Answer, Tick),
    /// The server doesn't know the script: send the operation again, with the script as text.
    Unknown(InFlight),
    /// A transaction did not do it: send the operation again, as a script. With it: whether the transaction has taken the lock's
    /// key, and whether transactions are of no use on this socket.
    ByScript { pending: InFlight, took: bool, lasting: bool },
    /// A question that was sent at that time is answered.
    Question(Question, Value, Tick),
    /// The answer of an operation that was cancelled before.
    Late,
    /// The socket is of no use any more.
    Broken(RedisError),
}

/// A command that was sent. Without an operation it only keeps the place of an answer that is still to come.
struct Command {
    pending: Option<InFlight>,
    form: Form,
    /// The operation that undoes this one, if this one was cancelled.
    undo: Option<Box<Op>>,
    question: Option<Question>,
    at: Tick,
    /// The count of reads at the time when it was sent.
    reads: u64,
    /// The script of which it finds out whether the server knows it.
    probes: Option<&'static Script>,
    /// Whether its answer counts whenever it comes, though the response timeout has passed.
    counts_late: bool,
}

impl Command {
    fn new(form: Form, at: Tick, reads: u64) -> Self {
        let (pending, undo, question, probes) = (None, None, None, None);
        Self { pending, form, undo, question, at, reads, probes, counts_late: false }
    }
}

/// The result of a look at the response timeouts.
#[derive(Default)]
pub(crate) struct Overdue {
    /// The operations that are cancelled.
    pub(crate) late: Vec<InFlight>,
    /// Whether an answer has not come in time, also one that still counts.
    pub(crate) slow: bool,
    /// Whether nothing at all has arrived meanwhile: then the socket is dead.
    pub(crate) silent: bool,
}

/// The commands of one socket, the oldest first.
#[derive(Default)]
pub(crate) struct Pipeline {
    commands: VecDeque<Command>,
    /// The answers so far to the oldest command, if it is a transaction.
    parts: Vec<Value>,
    /// The number of replies that have arrived. If none arrived since a question was sent, the socket is half-open,
    /// though single bytes may arrive. If some arrived, it is only slow.
    reads: u64,
    facts: HandshakeFacts,
    /// Which of its connection's sockets it is.
    socket: u8,
    response_timeout: Duration,
    answered: bool,
    /// The scripts that the server knows, or that it will be asked for.
    known: Vec<&'static Script>,
    /// The number of commands that find out whether the server knows another script.
    probes: usize,
    /// The number of commands that were cancelled, may have written something, and have no answer.
    cancelled: usize,
    /// Why the server refused to be asked (`ASKING`) to serve the command that is answered next.
    unasked: Option<RedisError>,
    /// The start of the present look at the late answers that still count, and the count of reads at that time.
    watched: Option<(Tick, u64)>,
    /// More time for operations that are overdue, so that answers that are already there can be read; and the count of reads when
    /// it was given.
    more: Option<(Tick, u64)>,
}

impl Pipeline {
    pub(crate) fn new(facts: HandshakeFacts, response_timeout: Duration, socket: u8) -> Self {
        Self { facts, response_timeout, socket, ..Self::default() }
    }

    /// The facts about the server from the handshake.
    pub(crate) fn facts(&self) -> &HandshakeFacts {
        &self.facts
    }

    /// Whether an operation was ever answered on this socket.
    pub(crate) fn answered(&self) -> bool {
        self.answered
    }

    /// A reply has arrived completely.
    pub(crate) fn arrived(&mut self) {
        self.reads += 1;
    }

    /// Whether the server is sure to know the script of an operation.
    pub(crate) fn knows_script(&self, op: &Op) -> bool {
        let Some(script) = Script::of(op) else { return true };
        let probes = |command: &Command| command.probes.is_some_and(|probed| ptr::eq(probed, script));
        self.was_sent(script) && (self.probes == 0 || !self.commands.iter().any(probes))
    }

    fn was_sent(&self, script: &Script) -> bool {
        self.known.iter().any(|known| ptr::eq(*known, script))
    }

    /// Notes a command that is sent now.
    pub(crate) fn push(&mut self, pending: InFlight, form: Form, now: Tick) {
        let script = Script::of(&pending.request.op).filter(|_| matches!(form, Form::BySha | Form::ByText));
        let new = script.filter(|script| !self.was_sent(script));
        self.known.extend(new);
        let probes = new.filter(|_| form == Form::BySha);
        self.probes += usize::from(probes.is_some());
        // The time in which the server keeps the answer back doesn't count as silence.
        let at = now.after(pending.request.op.waits_for());
        self.commands.push_back(Command { pending: Some(pending), probes, ..Command::new(form, at, self.reads) });
        if mutant!(AnswersExchanged) && self.commands.len() > 1 {
            self.commands.swap(0, 1);
        }
    }

    /// Notes a question that is sent now.
    pub(crate) fn push_question(&mut self, question: Question, now: Tick) {
        let question = Some(question);
        self.commands.push_back(Command { question, ..Command::new(Form::ByText, now, self.reads) });
    }

    /// Whether an answer is to come that may say: send this command again.
    pub(crate) fn is_probing(&self) -> bool {
        self.probes > 0
    }

    /// Takes the answer of the oldest command.
    pub(crate) fn land(&mut self, answer: RedisResult<Value>) -> Landing {
        let value = match answer {
            Ok(value) => value,
            // The crate gives a server's error as a value, so this is an error of the socket.
            Err(error) => return Landing::Broken(error),
        };
        // From here on every command would get the answer of another one.
        let Some(command) = self.commands.front() else { return out_of_step("an answer came that nobody had asked for") };
        if matches!(value, Value::Push { .. }) {
            return out_of_step("a notice came in the place of an answer");
        }
        match command.form {
            Form::Native if self.parts.len() < native::ANSWERS - 1 => {
                self.parts.push(value);
                return Landing::Late;
            }
            Form::Native | Form::Compare => return self.executed(value),
            Form::BySha | Form::ByText => {}
        }
        if command.pending.as_ref().is_some_and(|pending| codec::is_about_another(&pending.request.op, &value)) {
            return out_of_step("an answer came that belongs to the operation of another owner");
        }
        let Some(Command { pending, form, undo, question, at, probes, .. }) = self.commands.pop_front() else {
            return Landing::Late;
        };
        self.probes -= usize::from(probes.is_some());
        self.cancelled -= usize::from(undo.is_some());
        let is_unknown = matches!(&value, Value::ServerError(error) if error.code() == "NOSCRIPT");
        if is_unknown {
            self.known.retain(|known| !probes.is_some_and(|probed| ptr::eq(*known, probed)));
        }
        self.answered |= question.is_none();
        if question == Some(Question::Asking) {
            self.unasked = if let Value::ServerError(error) = value { Some(error.into()) } else { None };
            return Landing::Late;
        }
        if let Some(question) = question {
            return Landing::Question(question, value, at);
        }
        let unasked = self.unasked.take();
        let Some(pending) = pending else { return Landing::Late };
        if form == Form::BySha && is_unknown {
            return Landing::Unknown(pending);
        }
        let mut answer = codec::reply(&pending.request.op, value);
        if let Some(refused) = unasked {
            answer = refusal::unasked(answer, &refused);
        }
        self.answer(pending, answer, at)
    }

    /// Takes the only answer to a comparison, or the last one to a transaction.
    fn executed(&mut self, last: Value) -> Landing {
        let Some(Command { pending, form, undo, at, .. }) = self.commands.pop_front() else { return Landing::Late };
        self.cancelled -= usize::from(undo.is_some());
        self.answered = true;
        let floor = match pending.as_ref().and_then(|pending| pending.request.op.verb()) {
            Some(Verb::Acquire { proposal, .. }) => *proposal,
            _ => 0,
        };
        let outcome = if form == Form::Compare {
            native::compared(last)
        } else {
            native::assess(floor, self.parts.drain(..).chain([last]))
        };
        match (outcome, pending) {
            (Outcome::Broken, _) => out_of_step("a transaction was answered with another form"),
            (_, None) => Landing::Late,
            (Outcome::Answered(answer), Some(pending)) => self.answer(pending, answer, at),
            (Outcome::Script { took, lasting }, Some(pending)) => Landing::ByScript { pending, took, lasting },
        }
    }

    /// An answer, with what there is to say of the server and the socket. It is large, so it is changed in place.
    fn answer(&self, pending: InFlight, mut answer: Answer, at: Tick) -> Landing {
        let HandshakeFacts { in_cluster, comparison, is_alone, denies_transactions, .. } = self.facts;
        match &mut answer {
            Ok(reply) => {
                if denies_transactions {
                    refusal::without_transactions(reply);
                }
                reply.run_id.clone_from(&self.facts.run_id);
                (reply.is_alone, reply.socket, reply.repeated) = (is_alone, self.socket, pending.repeated);
            }
            Err(failure) => refusal::advise(failure, &pending.request.op, in_cluster, comparison),
        }
        Landing::Answered(pending, answer, at)
    }

    /// The time at which the oldest operation in flight has waited long enough, or at which the look at late answers ends.
    pub(crate) fn due(&self) -> Tick {
        let oldest = self.commands.iter().find(|command| command.pending.is_some() && !command.counts_late);
        let oldest = oldest.map_or(Tick::NEVER, |command| command.at.after(self.response_timeout));
        let due = self.watched.map_or(oldest, |(since, _)| oldest.min(since.after(self.response_timeout)));
        due.max(self.more.map_or(Tick::default(), |(until, _)| until))
    }

    /// Cancels operations that have waited too long, and returns whether the socket was silent all that time: half-open.
    ///
    /// A call that comes late means that this thread did not run before. Unread answers may be there, and a server on the same
    /// machine may not have run either. So all operations get as much time more, but only once until something arrives. Otherwise a
    /// machine that is always late would never find a dead socket.
    pub(crate) fn overdue(&mut self, now: Tick) -> Overdue {
        let (reads, timeout) = (self.reads, self.response_timeout);
        let (due, excused) = (self.due(), self.more.is_some_and(|(_, before)| before == reads));
        if due < now && !excused {
            self.more = Some((now.after(now.since(due).min(timeout)), reads));
        }
        let mut overdue = Overdue::default();
        if now < self.due() {
            return overdue;
        }
        self.check_late(now, &mut overdue);
        for command in &mut self.commands {
            if command.at.after(timeout) > now {
                break;
            }
            if command.counts_late {
                continue;
            }
            let Some(pending) = &command.pending else { continue };
            overdue.slow = true;
            if command.reads == reads {
                overdue.silent = true;
            } else if pending.request.op.counts_late() && now < pending.request.deadline {
                command.counts_late = true;
                self.watched.get_or_insert((now, reads));
                continue;
            }
            command.undo = pending.request.op.undo().map(Box::new);
            self.cancelled += usize::from(command.undo.is_some());
            overdue.late.extend(command.pending.take());
        }
        overdue
    }

    /// Cancels operations whose late answers no longer count, and looks whether anything arrives for the others.
    fn check_late(&mut self, now: Tick, overdue: &mut Overdue) {
        let Some((since, before)) = self.watched else { return };
        if now < since.after(self.response_timeout) {
            return;
        }
        let mut left = false;
        for command in self.commands.iter_mut().filter(|command| command.counts_late) {
            let over = command.pending.take_if(|pending| pending.request.deadline <= now);
            command.counts_late = command.pending.is_some();
            left |= command.counts_late;
            overdue.late.extend(over);
        }
        overdue.silent = before == self.reads && left;
        self.watched = left.then_some((now, self.reads));
    }

    /// Takes the operations in flight that fit, in order. The answers still keep their places.
    pub(crate) fn take(&mut self, fits: impl Fn(&InFlight) -> bool) -> Vec<InFlight> {
        self.commands.iter_mut().filter_map(|command| command.pending.take_if(|pending| fits(pending))).collect()
    }

    /// Takes all operations in flight, and keeps in mind what undoes them.
    pub(crate) fn take_all(&mut self) -> Vec<InFlight> {
        let operations = self.commands.iter_mut().filter_map(|command| {
            let pending = command.pending.take()?;
            command.undo = pending.request.op.undo().map(Box::new);
            self.cancelled += usize::from(command.undo.is_some());
            Some(pending)
        });
        operations.collect()
    }

    /// Whether an operation was cancelled that may have to be undone.
    pub(crate) fn has_cancelled(&self) -> bool {
        self.cancelled > 0
    }

    /// The operations that undo those which were cancelled and have no answer.
    pub(crate) fn undo(&self) -> impl Iterator<Item = &Op> {
        self.commands.iter().filter_map(|command| command.undo.as_deref())
    }

    /// Whether this operation was sent, and is waited for.
    pub(crate) fn has_in_flight(&self, op: &Op) -> bool {
        self.commands.iter().any(|command| command.pending.as_ref().is_some_and(|pending| pending.request.op == *op))
    }

    /// Cancels the operations in flight that don't survive a close. Gives them, and the operations that undo writes of unanswered
    /// ones.
    pub(crate) fn cancel(&mut self) -> (Vec<InFlight>, Vec<Op>) {
        let cancelled = self.take(|pending| !pending.request.op.survives_reconnect());
        self.cancelled = 0;
        let earlier = self.commands.iter_mut().filter_map(|command| command.undo.take()).map(|undo| *undo);
        let undo = earlier.chain(cancelled.iter().filter_map(|pending| pending.request.op.undo())).collect();
        (cancelled, undo)
    }

    /// The number of commands without an answer.
    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether a caller waits for an operation in flight.
    pub(crate) fn is_busy(&self) -> bool {
        self.commands.iter().any(|command| command.pending.is_some())
    }
}

fn out_of_step(why: &'static str) -> Landing {
    Landing::Broken(RedisError::from((redis::ErrorKind::Parse, why)))
}

#[cfg(test)]
#[path = "pipeline_tests.rs"]
mod tests;
