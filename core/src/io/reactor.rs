//! Reactor: the I/O that blocked threads do themselves, by the leader/followers pattern.
//!
//! A thread that waits for an operation drives the connections of its client until its own result is there. It sleeps in the
//! poller instead of on a condition, so nobody has to be woken between the server's answer and the caller. One thread at a time is
//! the *driver*, for all. The other waiting threads are parked, and each is woken by its own result alone. When the driver leaves,
//! a parked thread is promoted. If no thread waits while an answer is still to come, the I/O thread polls for it.

mod executor;

use std::ffi::c_int;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, Thread, ThreadId};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use mio::{Events, Poll, Registry, Token, Waker};

pub(crate) use self::executor::{Io, ReactorSlot};
use crate::clock::Tick;
use crate::error::Error;
use crate::io::runtime::Runtime;
use crate::io::timers::Alarm;
use crate::process::Process;
use crate::sync::Mutex;

/// The token of the waker. The tokens of connections count from zero.
const WAKE: Token = Token(usize::MAX);

/// The pause between two polls of the I/O thread while no thread drives: no caller waits for such an answer any more.
const POLL_PAUSE: Duration = Duration::from_millis(5);

/// The pause between two such polls while event loops watch: a loop may be blocked, or closed by now.
const POLL_PAUSE_ON_LOOPS: Duration = Duration::from_millis(50);

/// Something to drive: a connection, or a connection to be.
pub(crate) trait Handler: Send + Sync {
    /// Takes note of an event of the poller.
    fn notice(&self, event: &mio::event::Event);

    /// Does all work that is possible without waiting; `io` does what follows from it.
    fn poll(&self, io: &Io);

    /// The time at which it must be polled without an event of the poller.
    fn due(&self) -> Tick;

    /// Whether a caller waits for an answer that is still to come.
    fn is_busy(&self) -> bool;
}

/// The connections of one client that blocked threads drive.
pub(crate) struct Reactor {
    of: Process,
    id: u64,
    runtime: Arc<Runtime>,
    registry: Registry,
    waker: Waker,
    tokens: AtomicUsize,
    handlers: ArcSwap<Vec<(Token, Weak<dyn Handler>)>>,
    waiting: Mutex<WaitingThreads>,
    /// Locked by the driver alone.
    poller: Mutex<Poller>,
    /// The end of the driver's sleep, if it sleeps.
    asleep_until: AtomicU64,
    /// The time at which the I/O thread will poll.
    alarm_at: AtomicU64,
    /// The number of event loops that watch the poller.
    watches: AtomicUsize,
}

/// A reactor that is made when a thread first blocks, and that lasts as long as a connection of it.
#[derive(Default)]
pub(crate) struct LazyReactor(Mutex<Weak<Reactor>>);

impl LazyReactor {
    /// The reactor; `None` if the system has no poller left.
    pub(crate) fn get(&self) -> Option<Arc<Reactor>> {
        let mut known = self.0.lock();
        let reactor = known.upgrade().or_else(|| Runtime::current().and_then(Reactor::new).ok())?;
        *known = Arc::downgrade(&reactor);
        Some(reactor)
    }
}

/// The threads that wait.
#[derive(Default)]
struct WaitingThreads {
    driver: Option<ThreadId>,
    parked: Vec<Thread>,
}

impl WaitingThreads {
    fn forget(&mut self, thread: &Thread) {
        if let Some(at) = self.parked.iter().rposition(|parked| parked.id() == thread.id()) {
            self.parked.remove(at);
        }
    }
}

/// The time of a driver. However it ends, another thread can drive afterwards.
struct Driving<'a>(&'a Reactor);

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        self.0.waiting.lock().driver = None;
    }
}

struct Poller {
    poll: Poll,
    events: Events,
}

impl Reactor {
    fn new(runtime: Arc<Runtime>) -> Result<Arc<Self>, Error> {
        let failed = |error: io::Error| Error::internal(None, &format!("no poller could be made: {error}"));
        let poll = Poll::new().map_err(failed)?;
        let registry = poll.registry().try_clone().map_err(failed)?;
        let waker = Waker::new(&registry, WAKE).map_err(failed)?;
        Ok(Arc::new(Self {
            of: Process::current(),
            id: runtime.next_id(),
            runtime,
            registry,
            waker,
            tokens: AtomicUsize::new(0),
            handlers: ArcSwap::default(),
            waiting: Mutex::default(),
            poller: Mutex::new(Poller { poll, events: Events::with_capacity(64) }),
            asleep_until: AtomicU64::new(0),
            alarm_at: AtomicU64::new(u64::MAX),
            watches: AtomicUsize::new(0),
        }))
    }

    /// The poller's registry of connections.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Adds the handler that `make` gives for a token.
    pub(crate) fn add<D: Handler + 'static>(&self, make: impl FnOnce(Token) -> Arc<D>) -> Arc<D> {
        let token = Token(self.tokens.fetch_add(1, Ordering::Relaxed));
        let added = make(token);
        let weak: Weak<dyn Handler> = Arc::downgrade(&added) as Weak<dyn Handler>;
        self.handlers.rcu(|handlers| {
            // Nodes of a cluster come and go.
            let alive = handlers.iter().filter(|(_, handler)| handler.strong_count() > 0);
            alive.cloned().chain([(token, weak.clone())]).collect::<Vec<_>>()
        });
        added
    }

    fn each(&self, mut act: impl FnMut(&dyn Handler)) {
        self.handlers.load().iter().filter_map(|(_, handler)| handler.upgrade()).for_each(|handler| act(&*handler));
    }

    /// Whether a caller waits for an answer to come, and the time at which work is due.
    fn work(&self) -> (bool, Tick) {
        let mut work = (false, Tick::NEVER);
        self.each(|handler| work = (work.0 || handler.is_busy(), work.1.min(handler.due())));
        work
    }

    /// Whether driving has a purpose: an answer to come, or work that is due at some time.
    fn is_needed(&self) -> bool {
        let needs = |handler: Arc<dyn Handler>| handler.is_busy() || handler.due() != Tick::NEVER;
        self.handlers.load().iter().any(|(_, handler)| handler.upgrade().is_some_and(needs))
    }

    /// Blocks this thread until `ended`, or `until`, or a signal. The thread drives meanwhile, unless another thread does.
    pub(crate) fn wait(self: &Arc<Self>, until: Instant, ended: impl Fn() -> bool) {
        let inherited = self.is_inherited();
        let me = thread::current();
        while !ended() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            if inherited {
                // The parent's reactor: nothing of it may be touched.
                thread::park_timeout(left);
            } else if self.become_driver(&me) {
                let driving = Driving(self);
                let interrupted = self.drive(until, &ended);
                drop(driving);
                if interrupted {
                    break;
                }
            } else {
                thread::park_timeout(left);
                self.waiting.lock().forget(&me);
            }
        }
        if !inherited {
            self.promote_next();
        }
    }

    /// Makes this thread the driver if one is needed, else parks it among the waiting threads. Gives whether it drives.
    fn become_driver(&self, me: &Thread) -> bool {
        let needed = self.is_needed();
        let mut waiting = self.waiting.lock();
        if waiting.driver.is_none() && needed {
            waiting.driver = Some(me.id());
            return true;
        }
        waiting.parked.push(me.clone());
        false
    }

    /// Drives until another thread can; gives whether a signal came.
    fn drive(&self, until: Instant, ended: impl Fn() -> bool) -> bool {
        while !ended() && self.is_needed() {
            let now = Instant::now();
            if now >= until {
                break;
            }
            match self.turn(until - now, &Io::Threads(None)) {
                Ok(()) => (),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return true,
                // The poller can't be waited for: the connections' timers will report that.
                Err(_) => thread::sleep(POLL_PAUSE.min(until - now)),
            }
        }
        false
    }

    /// Waits for the poller at most `timeout`, and polls all handlers that are due.
    fn turn(&self, timeout: Duration, by: &Io) -> io::Result<()> {
        let mut poller = self.poller.lock();
        let Poller { poll, events } = &mut *poller;
        let now = Tick::now();
        let sleep_until = now.after(timeout);
        // Before the handlers are asked: a thread that makes some work due from now on sees this thread asleep.
        self.asleep_until.store(sleep_until.as_micros(), Ordering::SeqCst);
        let sleep_until = sleep_until.min(self.work().1);
        self.asleep_until.store(sleep_until.as_micros(), Ordering::SeqCst);
        let polled = poll.poll(events, Some(sleep_until.since(now)));
        self.asleep_until.store(0, Ordering::SeqCst);
        polled?;
        let handlers = self.handlers.load();
        for event in events.iter() {
            let handler = handlers.iter().find(|(token, _)| *token == event.token());
            if let Some(handler) = handler.and_then(|(_, handlers)| handlers.upgrade()) {
                handler.notice(event);
                handler.poll(by);
            }
        }
        drop(poller);
        self.poll_due(by);
        Ok(())
    }

    fn poll_due(&self, by: &Io) {
        let now = Tick::now();
        self.each(|handler| {
            if handler.due() <= now {
                handler.poll(by);
            }
        });
    }

    /// Some work is due earlier than before: the driver may have to sleep less.
    pub(crate) fn is_due(&self, at: Tick) {
        if at.as_micros() < self.asleep_until.load(Ordering::SeqCst) {
            self.wake_driver();
        }
    }

    /// Wakes the driver, or the event loops that watch.
    pub(crate) fn wake_driver(&self) {
        // The waker fails only if its counter is full, and then the driver is awake.
        let _ = self.waker.wake();
    }

    /// Wakes a thread that waits here.
    pub(crate) fn wake(&self, thread: &Thread) {
        let mut waiting = self.waiting.lock();
        if waiting.driver == Some(thread.id()) {
            self.wake_driver();
        } else {
            // Off the list at once. Else the thread may be asked to drive when it has nothing to wait for any more.
            waiting.forget(thread);
            drop(waiting);
            thread.unpark();
        }
    }

    /// Handles all events so far, unless a thread drives: then the driver finds them.
    pub(crate) fn poll_now(self: &Arc<Self>, by: &Io) {
        let mut waiting = self.waiting.lock();
        if waiting.driver.is_none() {
            waiting.driver = Some(thread::current().id());
            drop(waiting);
            let _driving = Driving(self);
            // An error here comes again for the next thread that waits.
            let _ = self.turn(Duration::ZERO, by);
        } else {
            drop(waiting);
        }
        self.promote_next();
    }

    /// Sends the requests that were submitted without being sent.
    pub(crate) fn send(self: &Arc<Self>) {
        self.each(|handler| handler.poll(&Io::Threads(None)));
        self.promote_next();
    }

    /// Whether the client is gone, with all its handlers.
    pub(crate) fn is_over(&self) -> bool {
        self.handlers.load().iter().all(|(_, handler)| handler.strong_count() == 0)
    }

    pub(crate) fn is_inherited(&self) -> bool {
        !self.of.is_current()
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Counts an event loop that begins to watch the poller, or stops.
    pub(crate) fn count_watch(&self, begins: bool) {
        if begins {
            self.watches.fetch_add(1, Ordering::SeqCst)
        } else {
            self.watches.fetch_sub(1, Ordering::SeqCst)
        };
    }

    /// A descriptor that is readable when there are events to handle, where the system has one.
    pub(crate) fn descriptor(&self) -> Option<c_int> {
        #[cfg(unix)]
        return Some(std::os::fd::AsRawFd::as_raw_fd(&self.registry));
        #[cfg(not(unix))]
        None
    }

    /// Promotes a parked thread to the driver if one is needed; without a parked thread the I/O thread polls soon.
    pub(crate) fn promote_next(self: &Arc<Self>) {
        let (is_busy, due) = self.work();
        if !is_busy && due == Tick::NEVER {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.driver.is_some() {
            return;
        }
        // The last one: the others have waited longer, for something that takes long.
        if let Some(next) = waiting.parked.pop() {
            return next.unpark();
        }
        drop(waiting);
        let pause = if self.watches.load(Ordering::SeqCst) == 0 { POLL_PAUSE } else { POLL_PAUSE_ON_LOOPS };
        let soon = if is_busy { Tick::now().after(pause) } else { Tick::NEVER };
        let at = due.min(soon);
        if self.alarm_at.fetch_min(at.as_micros(), Ordering::SeqCst) > at.as_micros() {
            let alarm: Weak<dyn Alarm> = Arc::downgrade(self) as Weak<dyn Alarm>;
            self.runtime.set_alarm(at, self.id, alarm);
        }
    }
}

/// The I/O thread polls.
impl Alarm for Reactor {
    fn ring(self: Arc<Self>) {
        // An alarm that an earlier one has replaced rings too. If it set another one, the alarms would become more and more.
        if self.alarm_at.load(Ordering::SeqCst) > Tick::now().as_micros() {
            return;
        }
        self.alarm_at.store(u64::MAX, Ordering::SeqCst);
        self.poll_now(&Io::Background);
    }
}

impl fmt::Debug for Reactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reactor")
    }
}

#[cfg(test)]
#[path = "reactor_tests.rs"]
mod tests;
