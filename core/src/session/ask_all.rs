//! Asking every server a question or two, and judging the answers as they come.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::api::call::Responder;
use crate::clock::Tick;
use crate::deadline::Patience;
use crate::error::Error;
use crate::io::runtime::Runtime;
use crate::io::timers::Alarm;
use crate::op::{Answer, Failure, FailureKind, Op};
use crate::server::{Completion, Request};
use crate::session::Live;
use crate::sync::Mutex;

/// Says what the answers so far come to, or `None` to wait for more. With no answer missing it has to say something.
type Judge<T> = Box<dyn Fn(&[Option<Answer>]) -> Option<Result<T, Error>> + Send + Sync>;

/// Questions to all servers. The servers' completions keep it alive.
pub(crate) struct Inquiry<T> {
    id: u64,
    judge: Judge<T>,
    most: Duration,
    no_answer: Failure,
    state: Mutex<State<T>>,
}

struct State<T> {
    patience: Patience,
    answers: Vec<Option<Answer>>,
    responder: Option<Responder<T>>,
}

impl<T: Send + 'static> Inquiry<T> {
    /// Asks all servers all of `ops`; what is not answered within `patience` counts as failed. The judge gets the answers of all
    /// servers to the first, then to the next.
    pub(crate) fn begin(
        live: &Live,
        ops: &[Op],
        patience: Duration,
        judge: impl Fn(&[Option<Answer>]) -> Option<Result<T, Error>> + Send + Sync + 'static,
        responder: Responder<T>,
    ) {
        let servers = live.server_count();
        let until = Tick::now().after(patience);
        let message = format!("no answer within {} ms", patience.as_millis());
        let inquiry = Arc::new(Self {
            id: live.next_id(),
            judge: Box::new(judge),
            most: patience,
            no_answer: Failure::unknown(FailureKind::Timeout, message),
            state: Mutex::new(State {
                patience: Patience::until(until),
                answers: vec![None; servers * ops.len()],
                responder: Some(responder),
            }),
        });
        for (number, (op, server)) in ops.iter().flat_map(|op| (0..servers).map(move |server| (op, server))).enumerate() {
            let keep = Arc::clone(&inquiry);
            let completion = Completion::new(move |answer| {
                keep.step(|answers| {
                    answers[number].get_or_insert(answer);
                });
            });
            live.server(server).submit(Request::new(op.clone(), until), completion);
        }
        inquiry.set_alarm(live.runtime(), until);
    }

    fn set_alarm(self: &Arc<Self>, runtime: &Runtime, at: Tick) {
        let alarm: Weak<dyn Alarm> = Arc::downgrade(self) as _;
        runtime.set_alarm(at, self.id, alarm);
    }

    fn step(&self, change: impl FnOnce(&mut [Option<Answer>])) {
        let mut state = self.state.lock();
        change(&mut state.answers);
        let Some(result) = (self.judge)(&state.answers) else { return };
        let responder = state.responder.take();
        drop(state);
        if let Some(responder) = responder {
            responder.respond(result);
        }
    }
}

impl<T: Send + 'static> Alarm for Inquiry<T> {
    fn ring(self: Arc<Self>) {
        let now = Tick::now();
        let mut state = self.state.lock();
        state.patience.overslept(now, self.most);
        let ends = state.patience.ends();
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
