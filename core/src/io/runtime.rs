//! Runtime: the core's own I/O thread.
//!
//! There is one such thread in a process, started by the first operation. After a fork the child's first operation starts its own:
//! threads don't survive a fork, and a runtime without its thread hangs every caller. Renewals and the end of validity run here,
//! so a blocked event loop or a held interpreter lock can't stop them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::clock::Tick;
use crate::error::Error;
use crate::event::callback;
use crate::event::trace;
use crate::io::timers::{Alarm, Timers};
use crate::process::PerProcess;

/// The I/O thread's pause after a panic.
const REST: Duration = Duration::from_millis(1);

/// Runs the I/O thread without end: all holds and connections of the process depend on it. A bug of the library that unwinds to
/// here ends one turn of the thread. Tasks and alarms are still there for the next turn.
fn for_ever(mut turn: impl FnMut()) {
    loop {
        if let Err(panic) = callback::caught(&mut turn) {
            let _ = callback::call(|| trace(&panic.warning("the I/O thread")));
            // If the next turn ends like this one, the thread must not use up the processor.
            std::thread::sleep(REST);
        }
    }
}

/// The I/O thread of one process.
pub(crate) struct Runtime {
    handle: tokio::runtime::Handle,
    timers: Arc<Timers>,
    ids: AtomicU64,
}

/// The thread of a parent isn't in its child, and a drop there would disturb the parent's poller.
static CURRENT: PerProcess<Runtime> = PerProcess::new();

impl Runtime {
    /// This process's runtime. The first call starts it.
    pub(crate) fn current() -> Result<Arc<Self>, Error> {
        CURRENT.get_or_try_make(Self::start)
    }

    fn start() -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::internal(None, &format!("the I/O thread could not be started: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let timers = {
            let _entered = runtime.enter();
            Arc::new(Timers::new())
        };
        let keeper = Arc::clone(&timers);
        let run = move || for_ever(|| runtime.block_on(keeper.run()));
        std::thread::Builder::new().name("locktender-io".to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { handle, timers, ids: AtomicU64::new(0) })
    }

    pub(crate) fn handle(&self) -> &tokio::runtime::Handle {
        &self.handle
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn timers(&self) -> &Arc<Timers> {
        &self.timers
    }

    /// A number that is unique in this process.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Rings `alarm` at `at`, or soon after. The alarm has to ignore a ring that comes too early.
    pub(crate) fn set_alarm(&self, at: Tick, id: u64, alarm: Weak<dyn Alarm>) {
        self.timers.set(at, id, alarm);
    }

    /// The same, until the value is dropped.
    pub(crate) fn alarm(&self, at: Tick, alarm: Weak<dyn Alarm>) -> SetAlarm {
        let id = self.next_id();
        self.set_alarm(at, id, alarm);
        SetAlarm { timers: Arc::downgrade(&self.timers), at, id }
    }

    /// Cancels the alarm that `id` set for `at`. Most holds end long before their alarms. Alarms that stayed until they are due
    /// would take most of a busy client's memory.
    pub(crate) fn cancel_alarm(&self, at: Tick, id: u64) {
        self.timers.cancel(at, id);
    }
}

/// An alarm that is set. Dropping it cancels it.
pub(crate) struct SetAlarm {
    timers: Weak<Timers>,
    pub(crate) at: Tick,
    id: u64,
}

impl Drop for SetAlarm {
    fn drop(&mut self) {
        if let Some(timers) = self.timers.upgrade() {
            timers.cancel(self.at, self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_panic_ends_a_turn_of_the_io_thread_and_not_its_tasks() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (sender, results) = channel();
        let task = runtime.spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            sender.send("still here").unwrap();
        });
        let mut turns = 0;
        std::thread::spawn(move || {
            for_ever(|| {
                turns += 1;
                runtime.block_on(async { assert!(turns > 2, "on purpose, in turn {turns}") });
                runtime.block_on(std::future::pending::<()>());
            });
        });
        assert_eq!(results.recv_timeout(Duration::from_secs(60)), Ok("still here"));
        drop(task);
    }

    #[test]
    fn an_alarm_that_nobody_keeps_is_cancelled() {
        struct Never;
        impl Alarm for Never {
            fn ring(self: Arc<Self>) {
                panic!("it rang");
            }
        }
        let (runtime, never) = (Runtime::current().unwrap(), Arc::new(Never));
        let alarm = runtime.alarm(Tick::now().after(Duration::from_secs(60)), Arc::downgrade(&never) as Weak<dyn Alarm>);
        let id = alarm.id;
        assert_eq!(runtime.timers.count(id), 1);
        drop(alarm);
        assert_eq!(runtime.timers.count(id), 0);
    }
}
