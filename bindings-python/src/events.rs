//! Events on their way to `logging` and to callbacks. Threads of the core put them into a bounded queue; a daemon thread of
//! Python's (see `_events.py`) takes them out, so that no thread of the core ever waits for the interpreter.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use locktender::event::Level;
use locktender::sync::{Condvar, Mutex};
use locktender::{Event as CoreEvent, Sink};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::values::Event;
use crate::{exit, own};

/// How many events may wait; more of them drop the oldest.
const CAPACITY: usize = 4096;

/// The least level somebody logs: 10, 20, 30, 40 as in `logging`; above that nobody does.
static LOGGED: AtomicU8 = AtomicU8::new(u8::MAX);

/// The process whose delivery thread was started.
static DELIVERS: AtomicU32 = AtomicU32::new(0);

static QUEUE: ArcSwapOption<Queue> = ArcSwapOption::const_empty();

struct Queue {
    pid: u32,
    waiting: Mutex<Waiting>,
    filled: Condvar,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<(u64, CoreEvent)>,
    stopped: bool,
}

/// This process's queue: in a forked child the parent's may have been copied while locked.
fn queue() -> Arc<Queue> {
    let pid = std::process::id();
    if let Some(queue) = QUEUE.load_full().filter(|queue| queue.pid == pid) {
        return queue;
    }
    let fresh = Arc::new(Queue { pid, waiting: Mutex::default(), filled: Condvar::new() });
    let previous = QUEUE.rcu(|current| match current {
        Some(queue) if queue.pid == pid => Arc::clone(queue),
        _ => Arc::clone(&fresh),
    });
    std::mem::forget(previous);
    QUEUE.load_full().unwrap_or(fresh)
}

/// The sink of one client.
pub(crate) struct ClientSink {
    pub(crate) number: u64,
    pub(crate) has_callback: Arc<AtomicBool>,
}

impl Sink for ClientSink {
    fn event(&self, event: &CoreEvent) {
        if level_of(event) < LOGGED.load(Ordering::Relaxed) && !self.has_callback.load(Ordering::Relaxed) {
            return;
        }
        let queue = queue();
        let mut waiting = queue.waiting.lock();
        if waiting.stopped {
            return;
        }
        if waiting.events.len() == CAPACITY {
            waiting.events.pop_front();
        }
        waiting.events.push_back((self.number, event.clone()));
        drop(waiting);
        queue.filled.notify_one();
    }
}

/// The level as `logging` counts.
pub(crate) fn level_of(event: &CoreEvent) -> u8 {
    match event.kind.level() {
        Level::Debug => 10,
        Level::Info => 20,
        Level::Warning => 30,
        Level::Error => 40,
    }
}

/// Finds out what is logged now, and starts the delivery if somebody listens. Called before every acquire.
pub(crate) fn refresh(py: Python<'_>, has_callback: bool) -> PyResult<()> {
    let logged = logged_level(py)?;
    LOGGED.store(logged, Ordering::Relaxed);
    let pid = std::process::id();
    if (logged < u8::MAX || has_callback) && DELIVERS.swap(pid, Ordering::Relaxed) != pid {
        own::call(py, "_events", "start", ())?;
    }
    Ok(())
}

fn logged_level(py: Python<'_>) -> PyResult<u8> {
    static LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    // Whoever has not imported logging has no handler either.
    if LOGGER.get(py).is_none() && !py.import("sys")?.getattr("modules")?.contains("logging")? {
        return Ok(u8::MAX);
    }
    let logger = LOGGER.get_or_try_init(py, || py.import("locktender._events")?.getattr("logger").map(Bound::unbind))?;
    let level: i64 = logger.call_method0(py, "getEffectiveLevel")?.extract(py)?;
    Ok(u8::try_from(level.clamp(0, 254)).unwrap_or(u8::MAX))
}

/// An event, and the callback of its client.
type Delivery = (Option<Py<PyAny>>, Event);

/// Waits for events; `None` once the interpreter ends and all were given.
#[pyfunction(name = "_next_events")]
pub(crate) fn next_events(py: Python<'_>) -> PyResult<Option<Vec<Delivery>>> {
    let batch = py.detach(|| {
        let queue = queue();
        let mut waiting = queue.waiting.lock();
        while waiting.events.is_empty() && !waiting.stopped {
            waiting = queue.filled.wait(waiting);
        }
        std::mem::take(&mut waiting.events)
    });
    if batch.is_empty() {
        return Ok(None);
    }
    let callback = |number| exit::client(py, number).and_then(|client| client.get().callback(py));
    Ok(Some(batch.into_iter().map(|(number, event)| (callback(number), Event::from(event))).collect()))
}

/// Ends the delivery: what is queued is still given, within a second.
pub(crate) fn stop(py: Python<'_>) {
    let queue = queue();
    queue.waiting.lock().stopped = true;
    queue.filled.notify_all();
    if DELIVERS.load(Ordering::Relaxed) == std::process::id() {
        let joined = own::call(py, "_events", "join", (Duration::from_secs(1).as_secs_f64(),));
        drop(joined);
    }
}
