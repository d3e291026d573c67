//! Observer: one look after the other at who leads.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::api::call::{Call, Cancel, Responder};
use crate::api::lock::Lock;
use crate::clock::Tick;
use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::io::runtime::Runtime;
use crate::io::timers::Alarm;
use crate::process::PerProcess;
use crate::protocol::{Observation, Observing, observe};
use crate::sync::Mutex;

/// An observer of an election: it gives the leader now, and then each change that it sees.
///
/// It looks at the servers when the leader's term would end there, and once a second. It looks only while a call of
/// [`Observer::next`] waits, and misses what comes and goes between two looks. Terms never go back.
///
/// An observer decides nothing: what it gave may be over. Who acts for the leader sends its term along, and the resource refuses a
/// smaller one.
pub struct Observer {
    lock: Lock,
    looks: PerProcess<Looks>,
}

#[derive(Default)]
struct Looks {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    observing: Observing,
    alarm: Option<Arc<NextLook>>,
    call: Option<Waiting>,
    /// The numbers of the last call and of the last look.
    calls: u64,
    looks: u64,
}

/// The call that waits for news.
struct Waiting {
    number: u64,
    lock: Lock,
    responder: Responder<Observation>,
    cancel: Cancel,
}

impl Observer {
    pub(super) fn new(lock: Lock) -> Self {
        Self { lock, looks: PerProcess::new() }
    }

    /// Gives the leader now, at the first call, and then each change.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let client = locktender::Client::open("memory://docs-observer-next").unwrap();
    /// let election = client.elect("scheduler");
    /// let mut observer = election.observe();
    /// assert!(observer.next().await?.leader.is_none());
    /// let leadership = election.campaign().await?;
    /// assert_eq!(observer.next().await?.leader.expect("it leads").term, leadership.term());
    /// # Ok::<(), locktender::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the call loses nothing: the next call gives what is news then.
    ///
    /// # Errors
    /// `DENIED`, `KEY_CONFLICT`, `INVALID_ARGUMENT`, `CLOSED`. Servers that can't be reached are no error, but
    /// [`unknown`](Observation::unknown).
    #[allow(clippy::should_implement_trait, reason = "it never ends, and its items are results of calls")]
    pub fn next(&mut self) -> Call<Observation> {
        self.observe()
    }

    /// [`Observer::next`], blocking this thread.
    ///
    /// # Errors
    /// As [`Observer::next`].
    pub fn next_blocking(&mut self) -> Result<Observation, Error> {
        self.next().wait()
    }

    /// [`Observer::next`], for a language whose handles are shared. A second call at the same time ends the first one.
    #[doc(hidden)]
    pub fn observe(&self) -> Call<Observation> {
        let (lock, looks) = (self.lock.clone(), self.looks.get_or_make(Looks::default));
        Call::new(move |responder| {
            let number = looks.wait_for_news(lock, responder);
            Some(Box::new(move || looks.give_up(number)))
        })
    }
}

impl Looks {
    fn wait_for_news(self: &Arc<Self>, lock: Lock, responder: Responder<Observation>) -> u64 {
        let mut state = self.state.lock();
        state.calls += 1;
        let (number, next_look) = (state.calls, state.observing.next_look());
        let earlier = state.call.replace(Waiting { number, lock, responder, cancel: Cancel::default() });
        drop(state);
        drop(earlier);
        self.look_at(next_look);
        number
    }

    fn give_up(&self, number: u64) {
        let call = self.state.lock().call.take_if(|call| call.number == number);
        if let Some(call) = call {
            call.cancel.cancel();
        }
    }

    fn look_at(self: &Arc<Self>, at: Tick) {
        if at <= Tick::now() {
            return self.look();
        }
        match Runtime::current() {
            Ok(runtime) => {
                let alarm = Arc::new(NextLook(Arc::downgrade(self)));
                // An earlier alarm is gone with its only reference.
                let weak: Weak<dyn Alarm> = Arc::downgrade(&alarm) as _;
                self.state.lock().alarm = Some(alarm);
                runtime.set_alarm(at, runtime.next_id(), weak);
            }
            Err(error) => self.end(Err(error)),
        }
    }

    fn look(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let Some(call) = state.call.as_ref().map(|call| call.lock.look(observe)) else { return };
        state.looks += 1;
        let number = state.looks;
        drop(state);
        let looks = Arc::clone(self);
        let cancel = call.then(move |seen| looks.hear(seen));
        let mut state = self.state.lock();
        let is_last = state.looks == number;
        if let Some(call) = state.call.as_mut().filter(|_| is_last) {
            call.cancel = cancel;
        }
    }

    fn hear(self: &Arc<Self>, seen: Result<Observation, Error>) {
        let mut state = self.state.lock();
        let Some(lock) = state.call.as_ref().map(|call| call.lock.clone()) else { return };
        let news = match seen {
            Ok(seen) => state.observing.take(seen, Tick::now()).map(Ok),
            Err(error) => Some(Err(error)),
        };
        let next_look = state.observing.next_look();
        drop(state);
        if let Some(Ok(seen)) = &news {
            tell(&lock, seen);
        }
        match news {
            Some(news) => self.end(news),
            None => self.look_at(next_look),
        }
    }

    fn end(&self, news: Result<Observation, Error>) {
        let call = self.state.lock().call.take();
        if let Some(call) = call {
            call.responder.respond(news);
        }
    }
}

/// The event of what an observer saw.
fn tell(lock: &Lock, seen: &Observation) {
    // Without a session the call would have ended before.
    let Ok((session, keys)) = lock.keys() else { return };
    let mut event = Event::of(EventKind::Leader, &keys);
    match &seen.leader {
        Some(leader) => (event.rival, event.rival_fence) = (Some(leader.owner.clone()), Some(leader.term)),
        None if seen.unknown => event.message = Some("the servers don't show who leads".to_owned()),
        None => event.message = Some("nobody leads".to_owned()),
    }
    session.emit(&event);
}

/// The alarm for the next look.
struct NextLook(Weak<Looks>);

impl Alarm for NextLook {
    fn ring(self: Arc<Self>) {
        if let Some(looks) = self.0.upgrade() {
            looks.look();
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("name", &self.lock.name()).finish_non_exhaustive()
    }
}
