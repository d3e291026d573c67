//! Ask all: questions to every server, assessed after every answer.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::clock::Tick;
use crate::deadline::Deadline;
use crate::error::Error;
use crate::io::call::{Call, Responder};
use crate::io::runtime::{Runtime, SetAlarm};
use crate::io::timers::Alarm;
use crate::op::{Answer, Failure, FailureKind, Op};
use crate::server::{Completion, Request};
use crate::session::Session;
use crate::sync::Mutex;

/// The assessment of the answers so far: gives the result, or `None` to wait for more. When no answer is missing, it has to give a
/// result.
type Assess<T> = Box<dyn Fn(&[Option<Answer>]) -> Option<Result<T, Error>> + Send + Sync>;

/// [`Assess`] of the answers about the lock of this name, by the servers with these addresses.
pub(crate) type AssessLock<T> = fn(&str, &[String], &[Option<Answer>]) -> Option<Result<T, Error>>;

/// Questions to all servers. The servers' completions keep it alive.
pub(crate) struct AskAll<T> {
    assess: Assess<T>,
    most: Duration,
    no_answer: Failure,
    state: Mutex<State<T>>,
}

struct State<T> {
    deadline: Deadline,
    answers: Vec<Option<Answer>>,
    /// `None` when the result was given.
    responder: Option<Responder<T>>,
    alarm: Option<SetAlarm>,
}

impl<T: Send + 'static> AskAll<T> {
    /// Asks all servers all of `ops`. An answer that is missing after `timeout` counts as failed. `assess` gets the answers of
    /// all servers to the first operation, then those to the next.
    pub(crate) fn begin(
        session: &Session,
        ops: &[Op],
        timeout: Duration,
        assess: impl Fn(&[Option<Answer>]) -> Option<Result<T, Error>> + Send + Sync + 'static,
        responder: Responder<T>,
    ) {
        let servers = session.server_count();
        let questions = ops.iter().flat_map(|op| (0..servers).map(|server| (op.clone(), server))).collect();
        Self::ask(session, questions, timeout, assess, responder);
    }

    /// Asks all servers `op`, which is about the lock of this name.
    pub(crate) fn about_lock(session: &Session, name: String, op: Op, assess: AssessLock<T>, responder: Responder<T>) {
        let servers = Arc::clone(&session.addresses);
        Self::begin(session, &[op], session.response_timeout(), move |answers| assess(&name, &servers, answers), responder);
    }

    /// Asks each question of its server.
    fn ask(
        session: &Session,
        questions: Vec<(Op, usize)>,
        timeout: Duration,
        assess: impl Fn(&[Option<Answer>]) -> Option<Result<T, Error>> + Send + Sync + 'static,
        responder: Responder<T>,
    ) {
        let (until, io) = (Tick::now().after(timeout), responder.io().clone());
        let message = format!("no answer within {} ms", timeout.as_millis());
        let asked = Arc::new(Self {
            assess: Box::new(assess),
            most: timeout,
            no_answer: Failure::unknown(FailureKind::Timeout, message),
            state: Mutex::new(State {
                deadline: Deadline::until(until),
                answers: vec![None; questions.len()],
                responder: Some(responder),
                alarm: None,
            }),
        });
        for (number, (op, server)) in questions.into_iter().enumerate() {
            let keep = Arc::clone(&asked);
            let completion = Completion::new(move |answer| {
                keep.step(|answers| {
                    answers[number].get_or_insert(answer);
                });
            });
            session.server(server).submit(Request::new(op, until).by(&io), completion);
        }
        asked.set_alarm(session.runtime(), until);
    }

    fn set_alarm(self: &Arc<Self>, runtime: &Runtime, at: Tick) {
        let mut state = self.state.lock();
        if state.responder.is_some() {
            state.alarm = Some(runtime.alarm(at, Arc::downgrade(self) as Weak<dyn Alarm>));
        }
    }

    fn step(&self, change: impl FnOnce(&mut [Option<Answer>])) {
        let mut state = self.state.lock();
        change(&mut state.answers);
        let Some(result) = (self.assess)(&state.answers) else { return };
        let (responder, alarm) = (state.responder.take(), state.alarm.take());
        drop(state);
        drop(alarm);
        if let Some(responder) = responder {
            responder.respond(result);
        }
    }
}

/// Asks one server. Why it doesn't answer is an answer, too.
pub(crate) fn ask_one(session: &Arc<Session>, server: usize, op: Op, timeout: Duration) -> Call<Answer> {
    let session = Arc::clone(session);
    Call::started(move |responder| {
        let assess = |answers: &[Option<Answer>]| answers.first().cloned().flatten().map(Ok);
        AskAll::ask(&session, vec![(op, server)], timeout, assess, responder);
    })
}

impl<T: Send + 'static> Alarm for AskAll<T> {
    fn ring(self: Arc<Self>) {
        let now = Tick::now();
        let mut state = self.state.lock();
        state.deadline.extend_for_pause(now, self.most);
        let ends = state.deadline.ends();
        drop(state);
        if now < ends
            && let Ok(runtime) = Runtime::current()
        {
            return self.set_alarm(&runtime, ends);
        }
        self.step(|answers| {
            for answer in answers {
                answer.get_or_insert_with(|| Err(self.no_answer.clone()));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    #[test]
    fn a_question_that_is_answered_leaves_no_alarm() {
        let client = Client::open("memory://ask-all").unwrap();
        let held = client.lock("a").acquire_blocking().unwrap();
        let runtime = Runtime::current().unwrap();
        let before = runtime.next_id();
        client.lock("a").inspect_blocking().unwrap();
        let left = (before..runtime.next_id()).map(|id| runtime.timers().count(id));
        assert_eq!(left.sum::<usize>(), 0);
        drop(held);
    }
}
