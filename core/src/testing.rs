//! The clock of a test: time that can be moved, for every lock of the process.
//!
//! Renewals, expiry and waits run on the process's own clock, which fake timers of other libraries don't move. A test moves it here,
//! from one alarm to the next: so what is due on the way happens at its time, and in its order. Servers of this process
//! (`memory://`, scripted ones) have the same clock. A real server doesn't: its locks would expire at another time.

pub use crate::server::memory::MemoryServer;
pub use crate::server::scripted::{ScriptedServer, Seen, Step};

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::api::Call;
use crate::clock::{self, Tick};
use crate::error::Error;
use crate::io::runtime::Runtime;
use crate::io::timers::Timers;
use crate::options::check_span;
use crate::process::{PerProcess, Process};
use crate::session::Session;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// How long to wait for another thread that is at work on an acquisition.
const WORK: Duration = Duration::from_millis(1);

/// The clock of all locks in this process, in the hands of one test.
///
/// Time passes by itself, and [`advance`](Self::advance) moves it forward; it is never moved back. It is the clock of the whole process:
/// tests that take it wait for one another. A test that doesn't take it, and runs at the same time in the same process, has its
/// locks moved, too: give tests with a clock a test binary of their own (a file in `tests/`), or run each test in a process
/// (`cargo nextest`).
///
/// ```standalone_crate
/// use std::time::Duration;
/// use locktender::{Client, testing::Clock};
///
/// let clock = Clock::take()?;
/// let client = Client::open("memory://docs-clock")?;
/// let hold = client.lock("nightly").ttl(Duration::from_secs(10)).acquire_blocking()?;
/// clock.advance_blocking(Duration::from_secs(3600))?;
/// assert!(hold.is_valid()); // renewed for an hour
///
/// let left = client.lock("report").ttl(Duration::from_secs(10)).renew(false).acquire_blocking()?;
/// clock.advance_blocking(Duration::from_secs(10))?;
/// assert!(!left.is_valid());
/// # Ok::<(), locktender::Error>(())
/// ```
pub struct Clock {
    of: Process,
    taken: Arc<Taken>,
    given_back: AtomicBool,
}

/// Which thread's test has the clock.
#[derive(Default)]
struct Taken {
    by: Mutex<Option<ThreadId>>,
    free: Condvar,
}

static TAKEN: PerProcess<Taken> = PerProcess::new();

/// What every client of this process has at work.
static SESSIONS: PerProcess<Mutex<Vec<Weak<Session>>>> = PerProcess::new();

impl Clock {
    /// Takes the process's clock. Waits until the test of another thread has dropped it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if this very thread has it already.
    pub fn take() -> Result<Self, Error> {
        let taken = TAKEN.get_or_make(Taken::default);
        let mut by = taken.by.lock();
        while by.is_some() {
            if *by == Some(thread::current().id()) {
                return Err(Error::clock_is_taken());
            }
            by = taken.free.wait(by);
        }
        Ok(Self::of(&taken, by))
    }

    /// [`Clock::take`] without waiting, for threads that must not block.
    #[doc(hidden)]
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if another test has it.
    pub fn try_take() -> Result<Self, Error> {
        let taken = TAKEN.get_or_make(Taken::default);
        let by = taken.by.lock();
        if by.is_some() {
            return Err(Error::clock_is_taken());
        }
        Ok(Self::of(&taken, by))
    }

    fn of(taken: &Arc<Taken>, mut by: MutexGuard<'_, Option<ThreadId>>) -> Self {
        *by = Some(thread::current().id());
        Self { of: Process::current(), taken: Arc::clone(taken), given_back: AtomicBool::new(false) }
    }

    /// Moves the clock forward by `span`. Everything that is due until then has happened when it ends, each at its time: renewals,
    /// retries, the end of waits and of holds, late answers of scripted servers. What your own tasks and threads do about it they
    /// do in their own time, meanwhile or later.
    ///
    /// # Cancel safety
    /// Once started the clock moves to its end, also if the call is dropped.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for more than 366 days, and while a lock is held or waited for on a server
    /// that has a clock of its own, which may show on the way.
    pub fn advance(&self, span: Duration) -> Call<()> {
        let own = if self.given_back.load(Ordering::Relaxed) { Err(Error::clock_is_closed()) } else { Ok(()) };
        let runtime = match own.and_then(|()| check_span("span", span)).and_then(|()| Runtime::current()) {
            Ok(runtime) => runtime,
            Err(error) => return Call::refused(error),
        };
        Call::started(move |responder| {
            let io_thread = Arc::clone(&runtime);
            runtime.handle().spawn(async move {
                let gone = go(io_thread.timers(), span).await;
                io_thread.timers().clock_was_moved();
                responder.respond(gone);
            });
        })
    }

    /// [`Clock::advance`], blocking this thread.
    ///
    /// # Errors
    /// As [`Clock::advance`].
    pub fn advance_blocking(&self, span: Duration) -> Result<(), Error> {
        self.advance(span).blocking()
    }

    /// Releases the clock, as dropping it does: another test may take it. Time continues from where it is.
    #[doc(hidden)]
    pub fn close(&self) {
        // A forked child's copy may be locked without end.
        if self.of.is_current() && !self.given_back.swap(true, Ordering::Relaxed) {
            *self.taken.by.lock() = None;
            self.taken.free.notify_one();
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Has the clock look after what a client has at work in this process.
pub(crate) fn note(session: &Arc<Session>) {
    let sessions = SESSIONS.get_or_make(Mutex::default);
    let mut sessions = sessions.lock();
    sessions.retain(|session| session.strong_count() > 0);
    sessions.push(Arc::downgrade(session));
}

/// Moves the clock from alarm to alarm. On the I/O thread, so nothing else rings between a look at the alarms and a move.
async fn go(timers: &Timers, span: Duration) -> Result<(), Error> {
    let (mut due, mut left) = (Vec::new(), span);
    loop {
        let Some(alarm) = timers.ring_due(&mut due) else {
            tokio::task::yield_now().await;
            continue;
        };
        let Some(first) = first_wake()? else {
            // Another thread is at work: what it sets an alarm for may be the next to come.
            tokio::time::sleep(WORK).await;
            continue;
        };
        if left.is_zero() {
            return Ok(());
        }
        let step = alarm.min(first).since(Tick::now()).min(left);
        clock::advance(step);
        left -= step;
        tokio::task::yield_now().await;
    }
}

/// When the first acquisition of all clients has to be woken; `None` while another thread works one off.
fn first_wake() -> Result<Option<Tick>, Error> {
    let sessions: Vec<_> = SESSIONS.get_or_make(Mutex::default).lock().iter().filter_map(Weak::upgrade).collect();
    if let Some(address) = sessions.iter().find_map(|session| session.own_clock()) {
        return Err(Error::clock_of_its_own(address));
    }
    Ok(sessions.iter().try_fold(Tick::NEVER, |first, session| Some(first.min(session.wakes_at()?))))
}
