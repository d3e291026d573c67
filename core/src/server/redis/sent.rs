//! What was sent on one connection and has no answer yet: pure bookkeeping.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use redis::{PushKind, RedisError, RedisResult, Value};

use super::codec::{self, Form};
use super::ear::Word;
use super::script::Script;
use super::stream::Pulse;
use super::subscription::Kind;
use crate::clock::Tick;
use crate::server::{Answer, Completion, Op, Reply, Request};

/// An operation and who waits for it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) request: Request,
    pub(super) completion: Completion,
    /// It was sent before, on a connection that broke.
    pub(super) repeated: bool,
}

/// What a landed command means.
pub(super) enum Landing {
    /// The operation is answered.
    Answered(Job, Answer),
    /// The server doesn't know the script: to be sent as text.
    Unknown(Job),
    /// What was asked for the sake of listening is answered.
    Heard(Word, Value),
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
    word: Option<Word>,
    at: Tick,
    pulse: u64,
}

/// The commands of one connection. Answers come in the order of the questions, so what is in flight is a queue.
pub(super) struct Sent {
    commands: VecDeque<Command>,
    /// The number of the first of them.
    first: u64,
    pulse: Pulse,
    run_id: Option<Arc<str>>,
    response_timeout: Duration,
    answered: bool,
    /// The operations whose script the server knows.
    known: Vec<&'static str>,
    /// The command that finds out whether the server knows another.
    probe: Option<u64>,
    /// For whoever has waited long enough: time to find out what is to be read after all, and what had arrived when it was given.
    more: Option<(Tick, u64)>,
}

impl Sent {
    pub(super) fn new(pulse: Pulse, run_id: Option<String>, response_timeout: Duration) -> Self {
        let run_id = run_id.map(Arc::from);
        let (commands, known) = (VecDeque::new(), Vec::new());
        Self { commands, first: 0, pulse, run_id, response_timeout, answered: false, known, probe: None, more: None }
    }

    /// What the server said of itself when the connection was made.
    pub(super) fn run_id(&self) -> Option<&str> {
        self.run_id.as_deref()
    }

    /// Whether an operation was ever answered here.
    pub(super) fn answered(&self) -> bool {
        self.answered
    }

    /// The number of the next command.
    pub(super) fn next(&self) -> u64 {
        self.first + self.commands.len() as u64
    }

    /// Notes a command that is sent now.
    pub(super) fn push(&mut self, job: Job, form: Form, now: Tick) {
        let script = job.request.op.name();
        if Script::of(&job.request.op).is_some() && !self.known.contains(&script) {
            self.known.push(script);
            self.probe = Some(self.next());
        }
        self.commands.push_back(Command { job: Some(job), form, undo: None, word: None, at: now, pulse: self.pulse.count() });
    }

    /// Notes what is asked now for the sake of listening.
    pub(super) fn push_word(&mut self, word: Word, now: Tick) {
        let pulse = self.pulse.count();
        self.commands.push_back(Command { job: None, form: Form::ByText, undo: None, word: Some(word), at: now, pulse });
    }

    /// How much has arrived so far.
    pub(super) fn pulse(&self) -> u64 {
        self.pulse.count()
    }

    /// Whether an answer is to come that may say that its command has to be sent again.
    pub(super) fn is_probing(&self) -> bool {
        self.probe.is_some_and(|probe| probe >= self.first)
    }

    /// Takes the answer of command `number`.
    pub(super) fn land(&mut self, number: u64, result: RedisResult<Value>) -> Landing {
        let value = match result {
            Ok(value) => value,
            // The crate gives a server's error as a value, so this is the connection's.
            Err(error) => return Landing::Broken(error),
        };
        let command = self.index(number).and_then(|at| self.commands.get_mut(at));
        // From here on every command would get the answer of another one.
        let Some(command) = command else { return out_of_step("an answer came that nobody had asked for") };
        let word = command.word;
        if is_out_of_step(word, &value) {
            return out_of_step("a notice came in the place of an answer");
        }
        if command.job.as_ref().is_some_and(|job| codec::is_about_another(&job.request.op, &value)) {
            return out_of_step("an answer came that belongs to the operation of another owner");
        }
        let (job, by_sha) = (command.job.take(), command.form == Form::BySha);
        // A peer that hangs up when it is asked to listen has not been of use by answering the questions before.
        self.answered |= word.is_none_or(|word| word == Word::Ping);
        while self.commands.front().is_some_and(|command| command.job.is_none()) && self.first <= number {
            self.commands.pop_front();
            self.first += 1;
        }
        if let Some(word) = word {
            return Landing::Heard(word, value);
        }
        let Some(job) = job else { return Landing::Late };
        if by_sha && matches!(&value, Value::ServerError(error) if error.code() == "NOSCRIPT") {
            return Landing::Unknown(job);
        }
        let answer = codec::reply(&job.request.op, value).map(|reply| Reply {
            run_id: self.run_id.clone(),
            repeated: job.repeated,
            ..reply
        });
        Landing::Answered(job, answer)
    }

    fn index(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok())
    }

    /// When the oldest operation in flight has waited long enough.
    pub(super) fn due(&self) -> Tick {
        let oldest = self.commands.iter().find(|command| command.job.is_some());
        let due = oldest.map_or(Tick::NEVER, |command| command.at.after(self.response_timeout));
        due.max(self.more.map_or(Tick::default(), |(until, _)| until))
    }

    /// Gives up what has waited long enough, and says whether the connection was silent all that time: half-open.
    ///
    /// Whoever is asked late did not run before: answers may be there that nobody has read, and a server on the same machine may
    /// not have run either. So all get as much time more, but only once until something arrives: on a machine that is always
    /// late a dead connection would never be found.
    pub(super) fn overdue(&mut self, now: Tick) -> (Vec<Job>, bool) {
        let (pulse, timeout) = (self.pulse.count(), self.response_timeout);
        let (due, excused) = (self.due(), self.more.is_some_and(|(_, heard)| heard == pulse));
        if due < now && !excused {
            self.more = Some((now.after(now.since(due).min(timeout)), pulse));
        }
        if now < self.due() {
            return (Vec::new(), false);
        }
        let mut silent = false;
        let mut late = Vec::new();
        for command in self.commands.iter_mut().take_while(|command| command.at.after(timeout) <= now) {
            if let Some(job) = command.job.take() {
                silent |= command.pulse == pulse;
                command.undo = job.request.op.undo();
                late.push(job);
            }
        }
        (late, silent)
    }

    /// Takes what is in flight and fits, in order. The answers still keep their places.
    pub(super) fn take(&mut self, fits: impl Fn(&Job) -> bool) -> Vec<Job> {
        let taken = |command: &mut Command| if command.job.as_ref().is_some_and(&fits) { command.job.take() } else { None };
        self.commands.iter_mut().filter_map(taken).collect()
    }

    /// Gives up what is in flight and doesn't survive a close: these operations, and what takes back whatever any of those without
    /// an answer may write.
    pub(super) fn give_up(&mut self) -> (Vec<Job>, Vec<Op>) {
        let given_up = self.take(|job| !job.request.op.survives_reconnect());
        let earlier = self.commands.iter_mut().filter_map(|command| command.undo.take());
        let undo = earlier.chain(given_up.iter().filter_map(|job| job.request.op.undo())).collect();
        (given_up, undo)
    }

    /// Whether somebody waits for something in flight.
    pub(super) fn is_busy(&self) -> bool {
        self.commands.iter().any(|command| command.job.is_some())
    }
}

fn out_of_step(why: &'static str) -> Landing {
    Landing::Broken(RedisError::from((redis::ErrorKind::Parse, why)))
}

/// Whether the value can't be the answer to what was sent. The crate takes what a server says of subscriptions for the next
/// answer, asked for or not; from then on every command would get the answer of the one before it.
fn is_out_of_step(word: Option<Word>, value: &Value) -> bool {
    match (word, value) {
        (Some(Word::Subscribe(_)), Value::ServerError(_)) => false,
        (Some(Word::Subscribe(Kind::Plain)), Value::Push { kind, .. }) => *kind != PushKind::Subscribe,
        (Some(Word::Subscribe(Kind::Sharded)), Value::Push { kind, .. }) => *kind != PushKind::SSubscribe,
        (Some(Word::Subscribe(_)), _) => true,
        (_, value) => matches!(value, Value::Push { .. }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    const fn at(n: u64) -> Tick {
        Tick::from_micros(n * 1_000)
    }

    /// A connection on which something was sent at the clock's origin; an answer may take a second.
    fn sent() -> (Sent, Pulse) {
        let pulse = Pulse::default();
        let mut sent = Sent::new(pulse.clone(), None, ms(1_000));
        ask(&mut sent, at(0));
        (sent, pulse)
    }

    fn ask(sent: &mut Sent, now: Tick) {
        let request = Request::new(Op::Examine, Tick::NEVER);
        sent.push(Job { request, completion: Completion::new(|_| ()), repeated: false }, Form::BySha, now);
    }

    fn overdue(sent: &mut Sent, now: Tick) -> (usize, bool) {
        let (late, silent) = sent.overdue(now);
        (late.len(), silent)
    }

    #[test]
    fn a_silent_connection_is_half_open_and_a_slow_one_is_not() {
        for silent in [true, false] {
            let (mut sent, pulse) = sent();
            assert_eq!((sent.due(), overdue(&mut sent, at(999))), (at(1_000), (0, false)));
            if !silent {
                pulse.beat();
            }
            assert_eq!(overdue(&mut sent, at(1_000)), (1, silent));
        }
    }

    #[test]
    fn what_is_found_overdue_has_as_much_time_more_to_be_read() {
        for (found, due) in [(1_100, 1_200), (1_900, 2_800), (3_600_000, 3_601_000)] {
            let (mut sent, _) = sent();
            assert_eq!(overdue(&mut sent, at(found)), (0, false));
            assert_eq!(sent.due(), at(due));
            assert_eq!(overdue(&mut sent, at(due - 1)), (0, false));
            assert_eq!(overdue(&mut sent, at(due)), (1, true), "{found}");
        }
    }

    #[test]
    fn a_dead_connection_is_found_though_everybody_is_always_late() {
        let (mut sent, pulse) = sent();
        assert_eq!(overdue(&mut sent, at(1_100)), (0, false));
        ask(&mut sent, at(1_150));
        assert_eq!(overdue(&mut sent, at(1_300)), (1, true), "nothing has arrived since");
        pulse.beat();
        assert_eq!(overdue(&mut sent, at(2_250)), (0, false), "something has");
    }
}
