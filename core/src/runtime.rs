//! The core's own I/O thread, and the timers that run on it.
//!
//! One thread a process, started by the first operation and keyed by the process id: after a fork the child's first operation
//! starts its own, because threads don't survive a fork and a runtime without its thread hangs whoever waits for it. Renewals
//! and the end of validity run here, whatever the host's threads, event loops and interpreter locks do.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock::Tick;
use crate::error::Error;

thread_local! {
    static AT_HOME: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` without making use of the caller's own runtime: because the caller is about to block it, or may end it.
pub(crate) fn at_home<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            AT_HOME.set(self.0);
        }
    }
    let _before = Before(AT_HOME.replace(true));
    work()
}

/// The caller's own runtime, if it has one that may do its I/O: a hop to the I/O thread and back costs an uncontended
/// operation more than everything else together.
pub(crate) fn of_the_caller() -> Option<tokio::runtime::Handle> {
    if AT_HOME.get() { None } else { tokio::runtime::Handle::try_current().ok() }
}

/// The longest sleep of the timer: the runtime's clock stands still while the machine is suspended, ours doesn't.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);

/// Something to wake.
pub(crate) trait Alarm: Send + Sync {
    fn ring(self: Arc<Self>);
}

/// The I/O thread of one process.
pub(crate) struct Runtime {
    pid: u32,
    handle: tokio::runtime::Handle,
    timers: Arc<Timers>,
}

static CURRENT: ArcSwapOption<Runtime> = ArcSwapOption::const_empty();

impl Runtime {
    /// This process's runtime, started if need be.
    pub(crate) fn current() -> Result<Arc<Self>, Error> {
        let pid = std::process::id();
        if let Some(runtime) = CURRENT.load_full() {
            if runtime.pid == pid {
                return Ok(runtime);
            }
            // The parent's: its thread isn't here, and dropping it would disturb the parent's poller.
            std::mem::forget(runtime);
        }
        let started = Arc::new(Self::start(pid)?);
        let previous = CURRENT.rcu(|current| match current {
            Some(runtime) if runtime.pid == pid => Arc::clone(runtime),
            _ => Arc::clone(&started),
        });
        std::mem::forget(previous);
        CURRENT.load_full().ok_or_else(|| Error::internal(None, "the runtime is gone"))
    }

    fn start(pid: u32) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::internal(None, &format!("the I/O thread could not be started: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let timers = Arc::new(Timers::default());
        let keeper = Arc::clone(&timers);
        let run = move || runtime.block_on(keeper.run());
        std::thread::Builder::new().name("locktender-io".to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { pid, handle, timers })
    }

    pub(crate) fn handle(&self) -> &tokio::runtime::Handle {
        &self.handle
    }

    /// Rings `alarm` at `at`, or soon after. Alarms can't be taken back; they are to be ignored when they come too early.
    pub(crate) fn set_alarm(&self, at: Tick, alarm: Weak<dyn Alarm>) {
        self.timers.set(at, alarm);
    }
}

struct Entry {
    at: Tick,
    alarm: Weak<dyn Alarm>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

#[derive(Default)]
struct Timers {
    queue: Mutex<Queue>,
    earlier: Notify,
}

#[derive(Default)]
struct Queue {
    entries: BinaryHeap<Reverse<Entry>>,
    /// Until when the thread sleeps, if it does: an alarm after that needs no wake-up call.
    sleeps_until: Option<Tick>,
}

impl Timers {
    fn set(&self, at: Tick, alarm: Weak<dyn Alarm>) {
        let mut queue = self.queue.lock();
        queue.entries.push(Reverse(Entry { at, alarm }));
        if queue.sleeps_until.is_some_and(|until| at < until) {
            queue.sleeps_until = None;
            drop(queue);
            self.earlier.notify_one();
        }
    }

    async fn run(&self) {
        let mut due = Vec::new();
        loop {
            let until = self.collect(&mut due);
            if due.is_empty() {
                let pause = until.since(Tick::now());
                // Half a millisecond short sleeps would be rounded up by the runtime's timer; that is on the late side by < 1 ms.
                tokio::select! {
                    biased;
                    () = self.earlier.notified() => (),
                    () = tokio::time::sleep(pause.min(LONGEST_SLEEP)), if until != Tick::NEVER => (),
                }
                continue;
            }
            // All that is due at once is rung in one go, so that what it sends leaves in one write per server.
            for alarm in due.drain(..) {
                alarm.ring();
            }
            tokio::task::yield_now().await;
        }
    }

    fn collect(&self, due: &mut Vec<Arc<dyn Alarm>>) -> Tick {
        let now = Tick::now();
        let mut queue = self.queue.lock();
        queue.sleeps_until = None;
        // Most holds end before their alarms: those are swept away here, instead of waking the thread for each of them.
        let is_up = |entry: &Entry| entry.at <= now || entry.alarm.strong_count() == 0;
        while queue.entries.peek().is_some_and(|Reverse(entry)| is_up(entry)) {
            if let Some(alarm) = queue.entries.pop().and_then(|Reverse(entry)| entry.alarm.upgrade()) {
                due.push(alarm);
            }
        }
        let until = queue.entries.peek().map_or(Tick::NEVER, |Reverse(entry)| entry.at);
        if due.is_empty() {
            queue.sleeps_until = Some(until);
        }
        until
    }
}
