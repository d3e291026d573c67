//! Pipeline: what was sent on one connection and has no answer yet. Answers come in the order of the questions.

use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use redis::{PushKind, RedisError, RedisResult, Value};

use crate::clock::Tick;
use crate::op::{Answer, Op, Reply};
use crate::server::redis::commands::codec::{self, Form};
use crate::server::redis::commands::script::Script;
use crate::server::redis::connection::effect::Effect;
use crate::server::redis::connection::subscriber::Question;
use crate::server::redis::connection::subscription::Kind;
use crate::server::{Completion, Request};

/// An operation and what its end is told to.
#[derive(Debug)]
pub struct Job {
    pub(crate) request: Request,
    pub(crate) completion: Completion,
    /// It was sent before, on a connection that broke.
    pub(crate) repeated: bool,
}

impl Job {
    /// An operation that was not sent so far.
    #[must_use]
    pub fn new(request: Request, completion: Completion) -> Self {
        Self { request, completion, repeated: false }
    }

    /// Ends the operation.
    pub(crate) fn end(self, answer: Answer) -> Effect {
        Effect::Complete(self.completion, answer)
    }
}

/// What an answer means.
pub(crate) enum Landing {
    /// The operation is answered.
    Answered(Job, Answer),
    /// The server doesn't know the script: to be sent as text.
    Unknown(Job),
    /// What was asked for the sake of listening is answered.
    Heard(Question, Value),
    /// Its operation was given up before.
    Late,
    /// The connection is of no use any more.
    Broken(RedisError),
}

/// A command that was sent. Without a job it only keeps the place of an answer that is still to come.
struct Command {
    job: Option<Job>,
    form: Form,
    /// What takes it back, of an operation that was given up.
    undo: Option<Op>,
    question: Option<Question>,
    at: Tick,
    /// How much had arrived before.
    reads: u64,
    /// It finds out whether the server knows a script.
    probes: bool,
    /// It has waited long enough, but its answer counts whenever it comes.
    is_patient: bool,
}

/// What has waited long enough.
#[derive(Default)]
pub(crate) struct Overdue {
    /// What is given up.
    pub(crate) late: Vec<Job>,
    /// Whether any answer has not come in time, also one that still counts.
    pub(crate) slow: bool,
    /// Whether nothing at all has arrived meanwhile: the connection is dead.
    pub(crate) silent: bool,
}

/// The commands of one connection, the oldest first.
pub(crate) struct Pipeline {
    commands: VecDeque<Command>,
    /// How many replies and messages have arrived. A connection on which none did since a question was sent is half-open, whatever
    /// trickles in; one that is only slow is not.
    reads: u64,
    run_id: Option<Arc<str>>,
    response_timeout: Duration,
    answered: bool,
    /// The scripts that the server knows.
    known: Vec<&'static Script>,
    /// How many commands find out whether the server knows another.
    probes: usize,
    /// Since when, and how much had arrived by then, one looks whether anything arrives for those that are patient.
    watched: Option<(Tick, u64)>,
    /// For whoever has waited long enough: time to find out what is to be read after all, and what had arrived when it was given.
    more: Option<(Tick, u64)>,
}

impl Pipeline {
    pub(crate) fn new(run_id: Option<String>, response_timeout: Duration) -> Self {
        let run_id = run_id.map(Arc::from);
        let (commands, known) = (VecDeque::new(), Vec::new());
        let (reads, answered, probes, watched, more) = (0, false, 0, None, None);
        Self { commands, reads, run_id, response_timeout, answered, known, probes, watched, more }
    }

    /// What the server said of itself when the connection was made.
    pub(crate) fn run_id(&self) -> Option<&str> {
        self.run_id.as_deref()
    }

    /// Whether an operation was ever answered here.
    pub(crate) fn answered(&self) -> bool {
        self.answered
    }

    /// A reply or a message arrived, all of it.
    pub(crate) fn arrived(&mut self) {
        self.reads += 1;
    }

    /// How much has arrived so far.
    pub(crate) fn reads(&self) -> u64 {
        self.reads
    }

    /// Notes a command that is sent now.
    pub(crate) fn push(&mut self, job: Job, form: Form, now: Tick) {
        let is_new = |script: &&Script| !self.known.iter().any(|known| ptr::eq(*known, *script));
        let new = Script::of(&job.request.op).filter(is_new);
        let probes = new.is_some();
        if let Some(script) = new {
            self.known.push(script);
            self.probes += 1;
        }
        let (undo, question, reads) = (None, None, self.reads);
        self.commands.push_back(Command { job: Some(job), form, undo, question, at: now, reads, probes, is_patient: false });
    }

    /// Notes what is asked now for the sake of listening.
    pub(crate) fn push_question(&mut self, question: Question, now: Tick) {
        let (form, undo, question, reads) = (Form::ByText, None, Some(question), self.reads);
        self.commands.push_back(Command { job: None, form, undo, question, at: now, reads, probes: false, is_patient: false });
    }

    /// Whether an answer is to come that may say that its command has to be sent again.
    pub(crate) fn is_probing(&self) -> bool {
        self.probes > 0
    }

    /// Takes the answer of the oldest command.
    pub(crate) fn land(&mut self, answer: RedisResult<Value>) -> Landing {
        let value = match answer {
            Ok(value) => value,
            // The crate gives a server's error as a value, so this is the connection's.
            Err(error) => return Landing::Broken(error),
        };
        // From here on every command would get the answer of another one.
        let Some(command) = self.commands.front() else { return out_of_step("an answer came that nobody had asked for") };
        if is_out_of_step(command.question, &value) {
            return out_of_step("a notice came in the place of an answer");
        }
        if command.job.as_ref().is_some_and(|job| codec::is_about_another(&job.request.op, &value)) {
            return out_of_step("an answer came that belongs to the operation of another owner");
        }
        let Some(Command { job, form, question, probes, .. }) = self.commands.pop_front() else { return Landing::Late };
        self.probes -= usize::from(probes);
        // A peer that hangs up when it is asked to listen has not been of use by answering the questions before.
        self.answered |= question.is_none_or(|question| question == Question::Ping);
        if let Some(question) = question {
            return Landing::Heard(question, value);
        }
        let Some(job) = job else { return Landing::Late };
        if form == Form::BySha && matches!(&value, Value::ServerError(error) if error.code() == "NOSCRIPT") {
            return Landing::Unknown(job);
        }
        let answer = codec::reply(&job.request.op, value).map(|reply| Reply {
            run_id: self.run_id.clone(),
            repeated: job.repeated,
            ..reply
        });
        Landing::Answered(job, answer)
    }

    /// When the oldest operation in flight has waited long enough, or it is to be seen whether anything arrives at all.
    pub(crate) fn due(&self) -> Tick {
        let oldest = self.commands.iter().find(|command| command.job.is_some() && !command.is_patient);
        let oldest = oldest.map_or(Tick::NEVER, |command| command.at.after(self.response_timeout));
        let due = self.watched.map_or(oldest, |(since, _)| oldest.min(since.after(self.response_timeout)));
        due.max(self.more.map_or(Tick::default(), |(until, _)| until))
    }

    /// Gives up what has waited long enough, and says whether the connection was silent all that time: half-open.
    ///
    /// Whoever is asked late did not run before: answers may be there that nobody has read, and a server on the same machine may
    /// not have run either. So all get as much time more, but only once until something arrives: on a machine that is always
    /// late a dead connection would never be found.
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
        self.look_after_patient(now, &mut overdue);
        for command in &mut self.commands {
            if command.at.after(timeout) > now {
                break;
            }
            if command.is_patient {
                continue;
            }
            let Some(job) = &command.job else { continue };
            overdue.slow = true;
            if command.reads == reads {
                overdue.silent = true;
            } else if job.request.op.counts_late() && now < job.request.deadline {
                command.is_patient = true;
                self.watched.get_or_insert((now, reads));
                continue;
            }
            command.undo = job.request.op.undo();
            overdue.late.extend(command.job.take());
        }
        overdue
    }

    /// Gives up those whose answers no longer count, and looks whether anything arrives for the others.
    fn look_after_patient(&mut self, now: Tick, overdue: &mut Overdue) {
        let Some((since, before)) = self.watched else { return };
        if now < since.after(self.response_timeout) {
            return;
        }
        let mut left = false;
        for command in self.commands.iter_mut().filter(|command| command.is_patient) {
            let over = command.job.take_if(|job| job.request.deadline <= now);
            command.is_patient = command.job.is_some();
            left |= command.is_patient;
            overdue.late.extend(over);
        }
        overdue.silent = before == self.reads && left;
        self.watched = left.then_some((now, self.reads));
    }

    /// Takes what is in flight and fits, in order. The answers still keep their places.
    pub(crate) fn take(&mut self, fits: impl Fn(&Job) -> bool) -> Vec<Job> {
        self.commands.iter_mut().filter_map(|command| command.job.take_if(|job| fits(job))).collect()
    }

    /// Gives up what is in flight and doesn't survive a close: these operations, and what takes back whatever any of those without
    /// an answer may write.
    pub(crate) fn give_up(&mut self) -> (Vec<Job>, Vec<Op>) {
        let given_up = self.take(|job| !job.request.op.survives_reconnect());
        let earlier = self.commands.iter_mut().filter_map(|command| command.undo.take());
        let undo = earlier.chain(given_up.iter().filter_map(|job| job.request.op.undo())).collect();
        (given_up, undo)
    }

    /// Whether somebody waits for something in flight.
    pub(crate) fn is_busy(&self) -> bool {
        self.commands.iter().any(|command| command.job.is_some())
    }
}

fn out_of_step(why: &'static str) -> Landing {
    Landing::Broken(RedisError::from((redis::ErrorKind::Parse, why)))
}

/// Whether the value can't be the answer to what was sent. A server pushes what it says of subscriptions, asked for or not; taken for
/// an answer it would give every later command the answer of the one before.
fn is_out_of_step(question: Option<Question>, value: &Value) -> bool {
    match (question, value) {
        (Some(Question::Subscribe(_)), Value::ServerError(_)) => false,
        (Some(Question::Subscribe(Kind::Plain)), Value::Push { kind, .. }) => *kind != PushKind::Subscribe,
        (Some(Question::Subscribe(Kind::Sharded)), Value::Push { kind, .. }) => *kind != PushKind::SSubscribe,
        (Some(Question::Subscribe(_)), _) => true,
        (_, value) => matches!(value, Value::Push { .. }),
    }
}

#[cfg(test)]
#[path = "pipeline_tests.rs"]
mod tests;
