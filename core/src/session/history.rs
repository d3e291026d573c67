//! History: what this client notes in the history of its server, and what it reads there. None of it is ever in the way of a lock.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::clock::Tick;
use crate::io::timers::Alarm;
use crate::op::history::HISTORY_PART;
use crate::op::{Answer, Failure, FailureKind, HistoryNote, Op, Verdict};
use crate::server::{Completion, Request};
use crate::session::Session;
use crate::sync::Mutex;

/// The pause between two looks of a client, and the time within which those spread that begin with a failover.
const PAUSE: Duration = Duration::from_secs(1);

/// For how long nothing is noted after a server has refused it.
const OFF: Duration = Duration::from_secs(60);

/// The calls that wait for a look.
type Asked = Box<dyn FnOnce(Answer) + Send>;

#[derive(Default)]
pub(super) struct History(Mutex<State>);

#[derive(Default)]
struct State {
    off_until: Tick,
    next_look: Tick,
    /// Those who wait for the next look, and the earliest entry that matters to each.
    asked: Vec<(u64, Asked)>,
    alarm: Option<Arc<NextLook>>,
}

/// The alarm for the next look.
struct NextLook(Weak<Session>);

impl Alarm for NextLook {
    fn ring(self: Arc<Self>) {
        self.0.upgrade().inspect(Session::look_now);
    }
}

impl Session {
    /// Notes how a hold stands.
    pub(super) fn log(self: &Arc<Self>, note: HistoryNote) {
        let now = Tick::now();
        if now < self.history.0.lock().off_until || self.is_closing() {
            return;
        }
        let session = Arc::downgrade(self);
        let completion = Completion::new(move |answer| {
            if let Some(session) = session.upgrade().filter(|_| is_refused(&answer)) {
                session.history.0.lock().off_until = Tick::now().after(OFF);
            }
        });
        let request = Request::new(Op::Log(Box::new(note)), now.after(self.response_timeout()));
        self.server(0).submit(request, completion);
    }

    /// Reads the last entries, together with all others of this client who want to.
    pub(super) fn look_back(self: &Arc<Self>, since_ms: u64, failed_over: bool, asked: Asked) {
        if self.is_closing() {
            return asked(Err(Failure::not_applied(FailureKind::Closed, "the client is being closed")));
        }
        let spread = if failed_over { PAUSE.mul_f64(fastrand::f64()) } else { Duration::ZERO };
        let mut state = self.history.0.lock();
        let now = Tick::now();
        let at = state.next_look.max(now.after(spread));
        state.asked.push((since_ms, asked));
        if at > now {
            if state.alarm.is_none() {
                let alarm = Arc::new(NextLook(Arc::downgrade(self)));
                self.runtime().set_alarm(at, self.next_id(), Arc::downgrade(&alarm) as Weak<dyn Alarm>);
                state.alarm = Some(alarm);
            }
            return;
        }
        drop(state);
        self.look_now();
    }

    fn look_now(self: &Arc<Self>) {
        let mut state = self.history.0.lock();
        let asked = std::mem::take(&mut state.asked);
        let now = Tick::now();
        (state.next_look, state.alarm) = (now.after(PAUSE), None);
        drop(state);
        let Some(since_ms) = asked.iter().map(|(since_ms, _)| *since_ms).min() else { return };
        let completion = Completion::new(move |answer| {
            for (_, asked) in asked {
                asked(answer.clone());
            }
        });
        let request =
            Request::new(Op::History { before: None, since_ms, count: HISTORY_PART }, now.after(self.response_timeout()));
        self.server(0).submit(request, completion);
    }
}

/// Whether the server will refuse the next entry, too: it knows no streams, the user may not write there, or something else is there.
fn is_refused(answer: &Answer) -> bool {
    match answer {
        Ok(reply) => matches!(reply.verdict, Verdict::Conflict { .. }),
        Err(failure) => failure.lasting || matches!(failure.kind, FailureKind::Denied | FailureKind::Other),
    }
}
