//! The record of what was sent on one connection and has no answer yet: pure bookkeeping.

use std::collections::{BTreeMap, VecDeque};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use redis::{PushKind, RedisError, RedisResult, Value};

use crate::clock::Tick;
use crate::op::{Answer, Op, Reply};
use crate::server::redis::commands::codec::{self, Form};
use crate::server::redis::commands::script::Script;
use crate::server::redis::connection::subscriber::Word;
use crate::server::redis::connection::subscription::Kind;
use crate::server::redis::transport::socket::Pulse;
use crate::server::{Completion, Request};

/// An operation and who waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) completion: Completion,
    /// It was sent before, on a connection that broke.
    pub(crate) repeated: bool,
}

/// What a landed command means.
pub(crate) enum Landing {
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

/// The commands of one connection. Answers come in the order of the questions, so what is in flight is a queue.
pub(crate) struct Sent {
    commands: VecDeque<Command>,
    /// The number of the first of them.
    first: u64,
    pulse: Pulse,
    run_id: Option<Arc<str>>,
    response_timeout: Duration,
    answered: bool,
    /// The scripts that the server knows.
    known: Vec<&'static Script>,
    /// The command that finds out whether the server knows another.
    probe: Option<u64>,
    /// Operations that have waited long enough, but whose answers count whenever they come, by the numbers of their commands.
    patient: BTreeMap<u64, Job>,
    /// Since when, and how much had arrived by then, one looks whether anything arrives for those.
    watched: Option<(Tick, u64)>,
    /// For whoever has waited long enough: time to find out what is to be read after all, and what had arrived when it was given.
    more: Option<(Tick, u64)>,
}

impl Sent {
    pub(crate) fn new(pulse: Pulse, run_id: Option<String>, response_timeout: Duration) -> Self {
        let run_id = run_id.map(Arc::from);
        let (commands, known, patient) = (VecDeque::new(), Vec::new(), BTreeMap::new());
        let (first, answered, probe, watched, more) = (0, false, None, None, None);
        Self { commands, first, pulse, run_id, response_timeout, answered, known, probe, patient, watched, more }
    }

    /// What the server said of itself when the connection was made.
    pub(crate) fn run_id(&self) -> Option<&str> {
        self.run_id.as_deref()
    }

    /// Whether an operation was ever answered here.
    pub(crate) fn answered(&self) -> bool {
        self.answered
    }

    /// The number of the next command.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.commands.len() as u64
    }

    /// Notes a command that is sent now.
    pub(crate) fn push(&mut self, job: Job, form: Form, now: Tick) {
        let is_new = |script: &&Script| !self.known.iter().any(|known| ptr::eq(*known, *script));
        if let Some(script) = Script::of(&job.request.op).filter(is_new) {
            self.known.push(script);
            self.probe = Some(self.next());
        }
        self.commands.push_back(Command { job: Some(job), form, undo: None, word: None, at: now, pulse: self.pulse.count() });
    }

    /// Notes what is asked now for the sake of listening.
    pub(crate) fn push_word(&mut self, word: Word, now: Tick) {
        let pulse = self.pulse.count();
        self.commands.push_back(Command { job: None, form: Form::ByText, undo: None, word: Some(word), at: now, pulse });
    }

    /// How much has arrived so far.
    pub(crate) fn pulse(&self) -> u64 {
        self.pulse.count()
    }

    /// Whether an answer is to come that may say that its command has to be sent again.
    pub(crate) fn is_probing(&self) -> bool {
        self.probe.is_some_and(|probe| probe >= self.first)
    }

    /// Takes the answer of command `number`.
    pub(crate) fn land(&mut self, number: u64, result: RedisResult<Value>) -> Landing {
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
        let asked = command.job.as_ref().or_else(|| self.patient.get(&number));
        if asked.is_some_and(|job| codec::is_about_another(&job.request.op, &value)) {
            return out_of_step("an answer came that belongs to the operation of another owner");
        }
        let by_sha = command.form == Form::BySha;
        let job = command.job.take().or_else(|| self.patient.remove(&number));
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

    /// When the oldest operation in flight has waited long enough, or it is to be seen whether anything arrives at all.
    pub(crate) fn due(&self) -> Tick {
        let oldest = self.commands.iter().find(|command| command.job.is_some());
        let due = oldest.map_or(Tick::NEVER, |command| command.at.after(self.response_timeout));
        let due = due.max(self.more.map_or(Tick::default(), |(until, _)| until));
        self.watched.map_or(due, |(since, _)| due.min(since.after(self.response_timeout)))
    }

    /// Gives up what has waited long enough, and says whether the connection was silent all that time: half-open.
    ///
    /// Whoever is asked late did not run before: answers may be there that nobody has read, and a server on the same machine may
    /// not have run either. So all get as much time more, but only once until something arrives: on a machine that is always
    /// late a dead connection would never be found.
    pub(crate) fn overdue(&mut self, now: Tick) -> Overdue {
        let (pulse, timeout) = (self.pulse.count(), self.response_timeout);
        let (due, excused) = (self.due(), self.more.is_some_and(|(_, heard)| heard == pulse));
        if due < now && !excused {
            self.more = Some((now.after(now.since(due).min(timeout)), pulse));
        }
        let mut overdue = Overdue::default();
        if now < self.due() || self.more.is_some_and(|(until, _)| now < until) {
            return overdue;
        }
        self.look_after_patient(now, &mut overdue);
        for (command, number) in self.commands.iter_mut().zip(self.first..) {
            if command.at.after(timeout) > now {
                break;
            }
            let Some(job) = command.job.take() else { continue };
            overdue.slow = true;
            if command.pulse == pulse {
                overdue.silent = true;
            } else if job.request.op.counts_late() && now < job.request.deadline {
                self.patient.insert(number, job);
                self.watched.get_or_insert((now, pulse));
                continue;
            }
            command.undo = job.request.op.undo();
            overdue.late.push(job);
        }
        overdue
    }

    /// Gives up those whose answers no longer count, and looks whether anything arrives for the others.
    fn look_after_patient(&mut self, now: Tick, overdue: &mut Overdue) {
        let pulse = self.pulse.count();
        let Some((since, heard)) = self.watched else { return };
        if now < since.after(self.response_timeout) {
            return;
        }
        let (over, left) = std::mem::take(&mut self.patient).into_iter().partition(|(_, job)| job.request.deadline <= now);
        let over: BTreeMap<_, _> = over;
        overdue.late.extend(over.into_values());
        self.patient = left;
        overdue.silent = heard == pulse && !self.patient.is_empty();
        self.watched = (!self.patient.is_empty()).then_some((now, pulse));
    }

    /// Takes what is in flight and fits, in order. The answers still keep their places.
    pub(crate) fn take(&mut self, fits: impl Fn(&Job) -> bool) -> Vec<Job> {
        let (patient, left) = std::mem::take(&mut self.patient).into_iter().partition(|(_, job)| fits(job));
        let patient: BTreeMap<_, _> = patient;
        self.patient = left;
        let taken = |command: &mut Command| if command.job.as_ref().is_some_and(&fits) { command.job.take() } else { None };
        patient.into_values().chain(self.commands.iter_mut().filter_map(taken)).collect()
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
        !self.patient.is_empty() || self.commands.iter().any(|command| command.job.is_some())
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
    use crate::name::{Keys, Kind};

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
        let overdue = sent.overdue(now);
        (overdue.late.len(), overdue.silent)
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

    /// What an extension of a hold that ends then comes to.
    fn extend(sent: &mut Sent, now: Tick, ends: Tick) -> std::sync::mpsc::Receiver<Answer> {
        let (tell, told) = std::sync::mpsc::channel();
        let keys = Arc::new(Keys::new(Kind::Exclusive, "", "orders:42", true).unwrap());
        let op = Op::Extend { keys, owner: "ours".into(), ttl_ms: 1_000, token: 7 };
        let completion = Completion::new(move |answer| tell.send(answer).unwrap());
        sent.push(Job { request: Request::new(op, ends), completion, repeated: false }, Form::BySha, now);
        told
    }

    fn extended() -> RedisResult<Value> {
        let text = |text: &str| Value::BulkString(text.into());
        Ok(Value::Array(vec![text("ok"), Value::Int(0), Value::Int(7), text("ours"), Value::Int(1_000)]))
    }

    #[test]
    fn an_extension_is_waited_for_as_long_as_its_hold_is_valid_if_the_connection_lives() {
        let pulse = Pulse::default();
        let mut sent = Sent::new(pulse.clone(), None, ms(1_000));
        let told = extend(&mut sent, at(0), at(5_000));
        let over = extend(&mut sent, at(0), at(2_500));
        for now in [1_000, 2_000] {
            pulse.beat();
            let overdue = sent.overdue(at(now));
            assert_eq!((overdue.late.len(), overdue.silent, overdue.slow), (0, false, now == 1_000), "{now}");
        }
        pulse.beat();
        let overdue = sent.overdue(at(3_000));
        assert_eq!((overdue.late.len(), overdue.silent), (1, false), "the hold of one has ended");
        drop((overdue, over));
        assert!(sent.is_busy());
        let Landing::Answered(job, answer) = sent.land(0, extended()) else { panic!("its answer counts") };
        job.completion.complete(answer);
        assert!(told.recv().unwrap().is_ok());
        assert!(matches!(sent.land(1, extended()), Landing::Late), "nobody waits for that any more");
        assert!(!sent.is_busy());
    }

    #[test]
    fn a_connection_that_falls_silent_while_an_extension_is_waited_for_is_dead() {
        let pulse = Pulse::default();
        let mut sent = Sent::new(pulse.clone(), None, ms(1_000));
        let _told = extend(&mut sent, at(0), at(60_000));
        pulse.beat();
        assert_eq!(overdue(&mut sent, at(1_000)), (0, false));
        assert_eq!(sent.due(), at(2_000));
        assert_eq!(overdue(&mut sent, at(2_000)), (0, true));
        assert_eq!(sent.take(|_| true).len(), 1, "it is unknown, as everything else on the connection");
    }
}
