//! Leading: one call of `lead` from its begin to its end. It asks for one term after the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::leadership::Leadership;
use crate::api::hold::Hold;
use crate::api::lock::Lock;
use crate::clock::Tick;
use crate::entropy;
use crate::error::{Code, Error};
use crate::io::call::{Call, Cancel, Responder};
use crate::io::canceller::Canceller;
use crate::io::reactor::Io;
use crate::io::runtime::{Runtime, SetAlarm};
use crate::io::timers::Alarm;
use crate::session::actor::LockActor;
use crate::sync::Mutex;
use crate::wait;
use crate::wording::Text;

/// How many failures count for the pause after an outage: it is the longest one.
const MANY: u32 = 99;

/// The time from the begin of a term that its work has ended to the next campaign, at least. Work that returns at once would be called
/// some thousand times a second.
const SHORTEST_TERM: Duration = Duration::from_secs(1);

const SHORT_TERM: &str = "the work of the leader returned within a second, which ends the term; the next campaign begins when the second \
                          is over. Let the work return only when it is done, also with what it has started in the background";

/// What the clones of an election share: whether one of them leads, and its campaign.
#[derive(Default)]
pub(super) struct Candidate {
    stopping: Arc<AtomicBool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    leads: bool,
    campaign: Option<Campaign>,
    /// The alarm at which it acquires the lock.
    alarm: Option<SetAlarm>,
    /// The number of the last acquire.
    tries: u64,
    /// The last term: its begin and its hold.
    term: Option<(Tick, Arc<LockActor>)>,
    /// Whether the warning about short terms was emitted.
    warned: bool,
}

/// A campaign under way. An outage of the servers doesn't end it.
struct Campaign {
    lock: Lock,
    responder: Responder<Option<Leadership>>,
    cancel: Cancel,
}

impl Candidate {
    pub(super) fn leadership(&self, held: Hold) -> Leadership {
        Leadership::new(held, Arc::clone(&self.stopping))
    }

    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.cancel(Io::Background);
    }

    /// Ends the campaign without a term.
    fn cancel(&self, io: Io) {
        let mut state = self.state.lock();
        state.alarm = None;
        let campaign = state.campaign.take();
        drop(state);
        if let Some(mut campaign) = campaign {
            campaign.cancel.cancel_by(io);
            campaign.responder.respond(Ok(None));
        }
    }

    fn begin(self: &Arc<Self>, lock: Lock, responder: Responder<Option<Leadership>>) {
        let io = responder.io().clone();
        let mut state = self.state.lock();
        state.campaign = Some(Campaign { lock, responder, cancel: Cancel::default() });
        let short = state.term.take().filter(|(began, term)| !term.is_lost() && Tick::now() < began.after(SHORTEST_TERM));
        let warns = short.is_some() && !std::mem::replace(&mut state.warned, true);
        drop(state);
        // `stop` may have come before there was a campaign.
        match short {
            _ if self.stopping.load(Ordering::SeqCst) => self.cancel(io),
            None => self.ask(io),
            Some((began, term)) => {
                if warns {
                    term.warn(SHORT_TERM);
                }
                self.ask_at(began.after(SHORTEST_TERM));
            }
        }
    }

    /// Acquires the lock for the campaign under way, later.
    fn ask_at(self: &Arc<Self>, at: Tick) {
        match Runtime::current() {
            Ok(runtime) => {
                let mut state = self.state.lock();
                // The campaign may have been cancelled meanwhile. Under the lock: one that rings at once would be noted behind its successor.
                let is_wanted = state.campaign.is_some();
                state.alarm = is_wanted.then(|| runtime.alarm(at, Arc::downgrade(self) as Weak<dyn Alarm>));
            }
            Err(error) => self.end_campaign(Err(error)),
        }
    }

    /// Acquires the lock for the campaign under way.
    fn ask(self: &Arc<Self>, io: Io) {
        let mut state = self.state.lock();
        state.alarm = None;
        state.tries += 1;
        let number = state.tries;
        let Some(call) = state.campaign.as_ref().map(|campaign| campaign.lock.acquire()) else { return };
        drop(state);
        let candidate = Arc::clone(self);
        let cancel = call.then_by(io, move |acquired| candidate.receive(acquired));
        let mut state = self.state.lock();
        let is_last = state.tries == number;
        match &mut state.campaign {
            Some(campaign) if is_last => campaign.cancel = cancel,
            Some(_) => (),
            // It was cancelled meanwhile; of one that ended this changes nothing.
            None => {
                drop(state);
                cancel.cancel();
            }
        }
    }

    fn receive(self: &Arc<Self>, acquired: Result<Hold, Error>) {
        let is_outage = acquired.as_ref().is_err_and(|error| error.code() == Code::Unavailable);
        if is_outage && self.state.lock().campaign.is_some() {
            return self.ask_at(wait::after_failure(Tick::now(), MANY, &mut fastrand::Rng::with_seed(entropy::draw())));
        }
        self.end_campaign(acquired);
    }

    fn end_campaign(&self, acquired: Result<Hold, Error>) {
        let mut state = self.state.lock();
        let campaign = state.campaign.take();
        if let (Some(_), Ok(held)) = (&campaign, &acquired) {
            state.term = Some((Tick::now(), Arc::clone(&held.actor)));
        }
        drop(state);
        match (campaign, acquired) {
            (Some(campaign), acquired) => campaign.responder.respond(acquired.map(|held| Some(self.leadership(held)))),
            // It comes too late: the campaign was cancelled.
            (None, Ok(held)) => held.undo(),
            (None, Err(_)) => (),
        }
    }
}

impl Alarm for Candidate {
    fn ring(self: Arc<Self>) {
        self.ask(Io::Background);
    }
}

/// One call of [`Election::lead`](crate::Election::lead), for a binding that calls the work itself. Its end lets another call lead.
#[doc(hidden)]
pub struct Leading {
    lock: Lock,
    candidate: Arc<Candidate>,
}

impl Leading {
    /// Leading begins, by a lock that waits as long as a campaign may take.
    pub(super) fn begin(lock: Lock, candidate: Arc<Candidate>) -> Result<Self, Error> {
        lock.validate()?;
        let mut state = candidate.state.lock();
        if state.leads {
            let why = Text::new("this election leads already: one call of {lead}() at a time; stop that one first", []);
            return Err(Error::invalid("lead", lock.name(), why));
        }
        state.leads = true;
        drop(state);
        Ok(Self { lock, candidate })
    }

    /// Campaigns for the next term: as long as it takes, also while the servers can't be reached. `None` after
    /// [`Election::stop`](crate::Election::stop).
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`](crate::Lock::acquire).
    ///
    /// # Errors
    /// As [`Lock::acquire`](crate::Lock::acquire), without `UNAVAILABLE`; `ACQUIRE_TIMEOUT` only if the election has an own `wait`.
    pub fn next(&self) -> Call<Option<Leadership>> {
        let (lock, candidate) = (self.lock.clone(), Arc::clone(&self.candidate));
        Call::undoing(
            |term: Option<Leadership>| term.iter().for_each(|term| term.undo()),
            move |responder| {
                candidate.begin(lock, responder);
                Some(Canceller::by(move |io| candidate.cancel(io)))
            },
        )
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        self.candidate.cancel(Io::Background);
        let mut state = self.candidate.state.lock();
        (state.leads, state.term, state.warned) = (false, None, false);
    }
}
