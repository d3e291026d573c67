//! One live connection, and what is in flight on it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, PushKind, RedisError, RedisResult, Value};
use tokio::task::{JoinHandle, unconstrained};

use super::codec::{self, Form};
use super::ear::Word;
use super::stream::Pulse;
use super::subscription::Kind;
use crate::clock::Tick;
use crate::server::{Answer, Completion, Reply, Request};

/// An operation and who waits for it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) request: Request,
    pub(super) completion: Completion,
    /// It was sent before, on a connection that broke.
    pub(super) repeated: bool,
}

/// What happens on a connection.
pub(super) enum Event {
    /// The command with this number has its answer, or never will.
    Landed(u64, RedisResult<Value>),
    /// The connection is closed; nothing is in flight any more.
    Broken,
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

type Flight = Pin<Box<dyn Future<Output = (u64, RedisResult<Value>)> + Send>>;

/// A command that was sent. Without a job it only keeps the place of an answer that is still to come.
struct Sent {
    job: Option<Job>,
    word: Option<Word>,
    at: Tick,
    pulse: u64,
}

/// One connection. Answers come in the order of the questions, so what is in flight is a queue.
pub(super) struct Link {
    connection: MultiplexedConnection,
    driver: JoinHandle<()>,
    driver_ended: bool,
    flights: FuturesUnordered<Flight>,
    sent: VecDeque<Sent>,
    /// The number of the first command in `sent`.
    first: u64,
    pulse: Pulse,
    run_id: Option<Arc<str>>,
    response_timeout: Duration,
    answered: bool,
}

impl Link {
    pub(super) fn new(
        connection: MultiplexedConnection,
        driver: JoinHandle<()>,
        pulse: Pulse,
        response_timeout: Duration,
    ) -> Self {
        Self {
            connection,
            driver,
            driver_ended: false,
            flights: FuturesUnordered::new(),
            sent: VecDeque::new(),
            first: 0,
            pulse,
            run_id: None,
            response_timeout,
            answered: false,
        }
    }

    pub(super) fn set_run_id(&mut self, run_id: Option<String>) {
        self.run_id = run_id.map(Arc::from);
    }

    /// How much has arrived so far.
    pub(super) fn pulse(&self) -> u64 {
        self.pulse.count()
    }

    /// Whether an operation was ever answered here.
    pub(super) fn answered(&self) -> bool {
        self.answered
    }

    /// Sends an operation after those before it. The write happens when the lane waits next, together with theirs.
    ///
    /// A command takes its place in the writer's queue when its flight is polled first, so that is done here, and outside
    /// tokio's budget, which would let it yield without a place.
    pub(super) fn send(&mut self, job: Job, form: Form, now: Tick) {
        let command = codec::command(&job.request.op, self.run_id.as_deref(), form);
        self.launch(command, Sent { job: Some(job), word: None, at: now, pulse: self.pulse.count() });
    }

    /// Asks something for the sake of listening. How long the answer may take is not the link's concern.
    pub(super) fn say(&mut self, word: Word, channel: &str, now: Tick) {
        self.launch(word.command(channel), Sent { job: None, word: Some(word), at: now, pulse: self.pulse.count() });
    }

    fn launch(&mut self, command: Cmd, sent: Sent) {
        let number = self.first + self.sent.len() as u64;
        let mut connection = self.connection.clone();
        let mut flight: Flight = Box::pin(async move { (number, connection.send_packed_command(&command).await) });
        self.flights.push(match unconstrained(&mut flight).now_or_never() {
            Some(landed) => Box::pin(std::future::ready(landed)),
            None => flight,
        });
        self.sent.push_back(sent);
    }

    /// Waits for the next event. Cancel safe.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            tokio::select! {
                biased;
                // Without a budget, which would bring answers out of order.
                Some((number, result)) = unconstrained(self.flights.next()), if !self.flights.is_empty() => return Event::Landed(number, result),
                _ = &mut self.driver, if !self.driver_ended => self.driver_ended = true,
                // Without a driver every flight lands: first those, so that no answer that came is lost.
                () = std::future::ready(()), if self.driver_ended && self.flights.is_empty() => return Event::Broken,
            }
        }
    }

    /// Takes the answer of command `number`.
    pub(super) fn land(&mut self, number: u64, result: RedisResult<Value>) -> Landing {
        let value = match result {
            Ok(value) => value,
            // The crate gives a server's error as a value, so this is the connection's.
            Err(error) => return Landing::Broken(error),
        };
        let sent = self.index(number).and_then(|at| self.sent.get_mut(at));
        let word = sent.as_ref().and_then(|sent| sent.word);
        if is_out_of_step(word, &value) {
            let why = (redis::ErrorKind::Parse, "a notice came in the place of an answer");
            return Landing::Broken(RedisError::from(why));
        }
        let job = sent.and_then(|sent| sent.job.take());
        // A peer that hangs up when it is asked to listen has not been of use by answering the questions before.
        self.answered |= word.is_none_or(|word| word == Word::Ping);
        while self.sent.front().is_some_and(|sent| sent.job.is_none()) && self.first <= number {
            self.sent.pop_front();
            self.first += 1;
        }
        if let Some(word) = word {
            return Landing::Heard(word, value);
        }
        let Some(job) = job else { return Landing::Late };
        let answer = match value {
            Value::ServerError(error) if error.code() == "NOSCRIPT" => return Landing::Unknown(job),
            Value::ServerError(error) => Err(codec::failure(&error.into(), true)),
            value => codec::reply(&job.request.op, value).map(|reply| Reply {
                run_id: self.run_id.clone(),
                repeated: job.repeated,
                ..reply
            }),
        };
        Landing::Answered(job, answer)
    }

    fn index(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok())
    }

    /// When the oldest operation in flight has waited long enough.
    pub(super) fn due(&self) -> Tick {
        let oldest = self.sent.iter().find(|sent| sent.job.is_some());
        oldest.map_or(Tick::NEVER, |sent| sent.at.after(self.response_timeout))
    }

    /// Gives up what has waited long enough, and says whether the connection was silent all that time: half-open.
    pub(super) fn overdue(&mut self, now: Tick) -> (Vec<Job>, bool) {
        let (pulse, timeout) = (self.pulse.count(), self.response_timeout);
        let mut silent = false;
        let mut late = Vec::new();
        for sent in self.sent.iter_mut().take_while(|sent| sent.at.after(timeout) <= now) {
            if let Some(job) = sent.job.take() {
                silent |= sent.pulse == pulse;
                late.push(job);
            }
        }
        (late, silent)
    }

    /// Takes what is in flight and fits, in order. The answers still keep their places.
    pub(super) fn take(&mut self, fits: impl Fn(&Job) -> bool) -> Vec<Job> {
        let taken = |sent: &mut Sent| if sent.job.as_ref().is_some_and(&fits) { sent.job.take() } else { None };
        self.sent.iter_mut().filter_map(taken).collect()
    }

    /// Whether somebody waits for something in flight.
    pub(super) fn is_busy(&self) -> bool {
        self.sent.iter().any(|sent| sent.job.is_some())
    }
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

/// The crate's driver outlives the connection until every answer came, which on a half-open one is never.
impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
