//! Observer: one poll after the other of who leads.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::api::lock::Lock;
use crate::clock::Tick;
use crate::error::Error;
use crate::event::{EventKind, LockEvent};
use crate::io::call::{Call, Cancel, Responder};
use crate::io::canceller::Canceller;
use crate::io::reactor::Io;
use crate::io::runtime::{Runtime, SetAlarm};
use crate::io::timers::Alarm;
use crate::op::Verb;
use crate::process::PerProcess;
use crate::protocol::{Observation, Observing, observe};
use crate::server::{Listener, Notice};
use crate::session::announce::channel;
use crate::sync::{Mutex, MutexGuard};

/// An observer of an election: it gives the leader now, and then each change that it sees.
///
/// Leaders announce on the servers' channels that they lead and that they have resigned. The observer polls the servers then, when a
/// leader's term would end there, and once a second. It polls only while a call of [`Observer::next`] waits, and misses what comes and
/// goes between two polls. Terms never go back.
///
/// An observer decides nothing: what it gave may be over. A program that acts for the leader sends its term along, and the resource refuses a
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
    /// The alarm for the next poll.
    alarm: Option<SetAlarm>,
    /// The listener for the announcements, from the first call on.
    listener: Option<Listener>,
    call: Option<Waiting>,
    /// The number of the last call.
    calls: u64,
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
    /// let election = client.election("scheduler");
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
        self.next().blocking()
    }

    /// [`Observer::next`], for a language whose handles are shared. A second call at the same time ends the first one.
    #[doc(hidden)]
    pub fn observe(&self) -> Call<Observation> {
        let (lock, looks) = (self.lock.clone(), self.looks.get_or_make(Looks::default));
        Call::new(move |responder| {
            let number = looks.wait_for_news(lock, responder);
            Some(Canceller::by(move |io| looks.cancel(number, io)))
        })
    }
}

impl Looks {
    fn wait_for_news(self: &Arc<Self>, lock: Lock, responder: Responder<Observation>) -> u64 {
        self.listen(&lock);
        let io = responder.io().clone();
        let mut state = self.state.lock();
        state.calls += 1;
        let (number, next_look) = (state.calls, state.observing.next_look());
        let earlier = state.call.replace(Waiting { number, lock, responder, cancel: Cancel::default() });
        drop(state);
        drop(earlier);
        self.look_at(next_look, io);
        number
    }

    /// Begins to listen, if there are servers. Those that don't publish are looked at.
    fn listen(self: &Arc<Self>, lock: &Lock) {
        if self.state.lock().listener.is_some() {
            return;
        }
        let Ok((session, keys)) = lock.keys() else { return };
        let looks = Arc::downgrade(self);
        let listener: Listener = Arc::new(move |notice| {
            if let (Notice::Message(_) | Notice::Listening, Some(looks)) = (notice, looks.upgrade()) {
                looks.on_announcement();
            }
        });
        // Of two first calls at once, the later one's listener stays.
        self.state.lock().listener = Some(Arc::clone(&listener));
        session.listen_to(&channel(&keys), &listener);
    }

    fn on_announcement(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let at = state.observing.announce(Tick::now());
        let is_wanted = state.call.is_some() && state.alarm.as_ref().is_none_or(|alarm| at < alarm.at);
        drop(state);
        if is_wanted {
            self.look_at(at, Io::Background);
        }
    }

    fn cancel(&self, number: u64, io: Io) {
        let mut state = self.state.lock();
        let Some(mut call) = state.call.take_if(|call| call.number == number) else {
            // It has ended, and its caller is gone without what it gave.
            if state.calls == number {
                state.observing.take_back();
            }
            return;
        };
        state.alarm = None;
        drop(state);
        call.cancel.cancel_by(io);
    }

    fn look_at(self: &Arc<Self>, at: Tick, io: Io) {
        if at <= Tick::now() {
            return self.look(io);
        }
        match Runtime::current() {
            Ok(runtime) => {
                let mut state = self.state.lock();
                // The call may have been cancelled meanwhile. Under the lock: one that rings at once would be noted behind its successor.
                let is_wanted = state.call.is_some();
                state.alarm = is_wanted.then(|| runtime.alarm(at, Arc::downgrade(self) as Weak<dyn Alarm>));
            }
            Err(error) => Self::end(self.state.lock(), Err(error)),
        }
    }

    fn look(self: &Arc<Self>, io: Io) {
        let mut state = self.state.lock();
        let Some(call) = state.call.as_ref().map(|call| call.lock.ask(Verb::Inspect, observe)) else { return };
        state.alarm = None;
        let number = state.observing.begin_look();
        drop(state);
        let looks = Arc::clone(self);
        let cancel = call.then_by(io, move |seen| looks.receive(number, seen));
        let mut state = self.state.lock();
        let is_last = state.observing.looks == number;
        if let Some(call) = state.call.as_mut().filter(|_| is_last) {
            call.cancel = cancel;
        }
    }

    fn receive(self: &Arc<Self>, look: u64, seen: Result<Observation, Error>) {
        let mut state = self.state.lock();
        if state.call.is_none() {
            return;
        }
        let news = match seen {
            Ok(seen) => state.observing.take(look, seen, Tick::now()).map(Ok),
            Err(error) => Some(Err(error)),
        };
        let next_look = state.observing.next_look();
        match news {
            Some(news) => Self::end(state, news),
            None => {
                drop(state);
                self.look_at(next_look, Io::Background);
            }
        }
    }

    fn end(mut state: MutexGuard<'_, State>, news: Result<Observation, Error>) {
        state.alarm = None;
        let call = state.call.take();
        drop(state);
        if let Some(call) = call {
            if let Ok(seen) = &news {
                emit(&call.lock, seen);
            }
            call.responder.respond(news);
        }
    }
}

/// The event of what an observer saw.
fn emit(lock: &Lock, seen: &Observation) {
    // Without a session the call would have ended before.
    let Ok((session, keys)) = lock.keys() else { return };
    let mut event = LockEvent::of(EventKind::Leader, &keys);
    match &seen.leader {
        Some(leader) => (event.holder, event.holder_fence) = (Some(leader.owner.clone()), Some(leader.term)),
        None if seen.unknown => event.message = Some("the servers don't show who leads".to_owned()),
        None => event.message = Some("nobody leads".to_owned()),
    }
    session.emit(&event);
}

impl Alarm for Looks {
    fn ring(self: Arc<Self>) {
        self.look(Io::Background);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("name", &self.lock.name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::client::Client;
    use crate::protocol::GATHERS;
    use crate::server::memory::MemoryServer;

    #[test]
    fn an_observer_that_waits_looks_when_something_is_announced() {
        let election = Client::open("memory://observer-notified").unwrap().election("x");
        let observer = election.observe();
        observer.observe().blocking().unwrap();
        let mut waiting = observer.observe();
        assert!(waiting.wait_for(Duration::ZERO).is_none());
        let looks = observer.looks.get_or_make(Looks::default);
        let before = looks.state.lock().observing.looks;
        MemoryServer::named("observer-notified").publish("~lt:lead:x", "lead none");
        let state = looks.state.lock();
        let is_soon = state.alarm.as_ref().is_some_and(|alarm| alarm.at <= Tick::now().after(GATHERS));
        // The look may have begun by now.
        assert!(is_soon || state.observing.looks > before);
    }

    #[test]
    fn a_call_that_is_dropped_with_its_news_leaves_them_to_the_next_one() {
        let election = Client::open("memory://observer-dropped").unwrap().election("x");
        let observer = election.observe();
        observer.observe().blocking().unwrap();
        let mut dropped = observer.observe();
        assert!(dropped.wait_for(Duration::ZERO).is_none());
        let leadership = election.campaign_blocking().unwrap();
        let looks = observer.looks.get_or_make(Looks::default);
        while looks.state.lock().call.is_some() {
            std::thread::yield_now();
        }
        drop(dropped);
        let seen = observer.observe().wait_for(Duration::from_secs(30)).expect("there is news").unwrap();
        assert_eq!(seen.leader.unwrap().term, leadership.term());
    }
}
