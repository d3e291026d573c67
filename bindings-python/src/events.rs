//! Events on their way to `logging` and to callbacks. Threads of the core put them into a bounded queue; a daemon thread of
//! Python's (see `_events.py`) takes them out, so that no thread of the core ever waits for the interpreter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use locktender::host::{self, EventQueue, Follower, PerProcess, Process, Record};
use locktender::{Error, Level, LockEvent as CoreEvent, Sink};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::context::modules;
use crate::guarded::{Awaited, Guarded};
use crate::own;
use crate::visit::park;

/// How long the delivery waits at a time: what ends it is an event.
const A_WHILE: Duration = Duration::from_secs(3600);

/// The least level that is logged: 10, 20, 30, 40 as in `logging`; above that nothing is.
static LOGGED: AtomicU8 = AtomicU8::new(u8::MAX);

/// The process whose delivery thread was started. Locked only by threads that hold the interpreter.
static DELIVERS: Guarded<Option<Process>> = Guarded::new(None);

/// Whether an instrumentation follows acquires.
static FOLLOWED: AtomicBool = AtomicBool::new(false);

static QUEUE: PerProcess<Awaited<Waiting>> = PerProcess::new();

/// An event of the client with a number, and the counter of those that were dropped.
struct Queued {
    client: u64,
    event: CoreEvent,
    at: SystemTime,
    dropped: Arc<AtomicU64>,
}

impl host::Queued for Queued {
    fn counter(&self) -> Option<&AtomicU64> {
        Some(&self.dropped)
    }
}

#[derive(Default)]
struct Waiting {
    events: EventQueue<Queued>,
    /// Losses, by the number of who wants to know. None of them is dropped.
    losses: Vec<(u64, Error)>,
    follower: Follower,
    /// Whether what was taken is being delivered.
    busy: bool,
    stopped: bool,
    /// All were given, and no more will be: either none is left, or the exit waits no longer.
    delivered: bool,
}

/// What the thread that delivers is to do.
enum Next {
    Give(Batch),
    Sleep,
}

/// This process's queue: in a forked child the parent's may have been copied while locked.
fn queue() -> Arc<Awaited<Waiting>> {
    QUEUE.get_or_make(Awaited::default)
}

/// The sink of one client.
pub(crate) struct ClientSink {
    pub(crate) number: u64,
    pub(crate) app: String,
    pub(crate) has_callback: Arc<AtomicBool>,
    /// How many of its events were dropped, because the program was too far behind.
    pub(crate) dropped: Arc<AtomicU64>,
}

impl Sink for ClientSink {
    fn event(&self, event: &CoreEvent) {
        let wanted = level_of(event) >= LOGGED.load(Ordering::Relaxed) || self.has_callback.load(Ordering::Relaxed);
        if event.trace() != 0 {
            follow(|follower| follower.event(self.number, &self.app, event, SystemTime::now()));
        }
        if wanted && !event.is_refusal() {
            let queue = queue();
            queue.with(|waiting| waiting.add(self, event));
            queue.notify();
        }
    }
}

impl Waiting {
    fn add(&mut self, sink: &ClientSink, event: &CoreEvent) {
        if self.stopped {
            return;
        }
        self.events.push(Queued {
            client: sink.number,
            event: event.clone(),
            at: SystemTime::now(),
            dropped: Arc::clone(&sink.dropped),
        });
    }

    /// All there are.
    fn take(&mut self) -> Option<Next> {
        let any = !self.events.is_empty() || !self.losses.is_empty() || !self.follower.records.is_empty();
        self.busy = any;
        self.delivered |= self.stopped && !any;
        if self.delivered {
            return Some(Next::Sleep);
        }
        let events = self.events.take(usize::MAX).into_iter().map(|queued| (queued.client, queued.event, queued.at));
        any.then(|| Next::Give((std::mem::take(&mut self.losses), events.collect(), std::mem::take(&mut self.follower.records))))
    }
}

/// Lets the follower note something, and has the records delivered that it makes.
pub(crate) fn follow(note: impl FnOnce(&mut Follower) + Send) {
    let queue = queue();
    let is_empty = queue.with(|waiting| {
        note(&mut waiting.follower);
        waiting.follower.records.is_empty()
    });
    if !is_empty {
        queue.notify();
    }
}

/// Begins or ends to follow acquires. At the end all records so far are delivered, within a second.
pub(crate) fn set_followed(py: Python<'_>, followed: bool) {
    FOLLOWED.store(followed, Ordering::Relaxed);
    let queue = queue();
    if !followed && delivers() {
        let is_done = |waiting: &mut Waiting| (!waiting.busy && waiting.follower.records.is_empty()).then_some(());
        py.detach(|| queue.wait(Duration::from_secs(1), is_done));
        queue.with(|waiting| waiting.follower = Follower::default());
    }
}

/// Whether this process has a thread that delivers.
fn delivers() -> bool {
    DELIVERS.with(|delivers| *delivers) == Some(Process::current())
}

pub(crate) fn is_followed() -> bool {
    FOLLOWED.load(Ordering::Relaxed)
}

/// Whether one more acquire can be followed: not while a listener, or the instrumentation, is too far behind.
pub(crate) fn can_follow() -> bool {
    is_followed() && !queue().with(|waiting| waiting.follower.is_full())
}

/// Has the callable of that number called with the error. Called on any thread.
pub(crate) fn emit_loss(number: u64, error: Error) {
    let queue = queue();
    queue.with(|waiting| {
        if !waiting.stopped {
            waiting.losses.push((number, error));
        }
    });
    queue.notify();
}

/// The level as `logging` counts.
pub(crate) fn level_of(event: &CoreEvent) -> u8 {
    match event.level {
        Level::Debug => 10,
        Level::Info => 20,
        Level::Warning => 30,
        _ => 40,
    }
}

/// Finds out what is logged now, and starts the delivery if there is a listener. Called before every acquire.
pub(crate) fn refresh(py: Python<'_>, has_callback: bool) -> PyResult<()> {
    let has_callback = has_callback || is_followed();
    let logger = logger(py, has_callback)?;
    LOGGED.store(logger.map_or(Ok(u8::MAX), |logger| level(py, logger))?, Ordering::Relaxed);
    let here = Some(Process::current());
    let has_listener = LOGGED.load(Ordering::Relaxed) < u8::MAX || has_callback;
    if logger.is_some() && has_listener && DELIVERS.replace(here) != here {
        let started = own::call(py, "_events", "start", ()).inspect_err(|_| _ = DELIVERS.take());
        return match started {
            // The system has no thread left. A lock needs none, and the next acquire tries again.
            Err(error) if error.is_instance_of::<PyRuntimeError>(py) => Ok(()),
            started => started.map(drop),
        };
    }
    Ok(())
}

/// The package's logger, if it is `wanted`. Without having imported logging nobody has a handler.
///
/// A signal handler or a finalizer may come here while its own thread imports these modules. Then they aren't usable before it has
/// ended, and the next acquire finds them.
fn logger(py: Python<'_>, wanted: bool) -> PyResult<Option<&Py<PyAny>>> {
    static LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if let Some(logger) = LOGGER.get(py) {
        return Ok(Some(logger));
    }
    let usable = match modules(py)?.get_item("logging")? {
        Some(logging) => logging.hasattr("captureWarnings")?, // its last function
        None => wanted,
    };
    let logger = if usable { own::named(py, "_events", "logger")?.extract()? } else { None };
    if let Some(logger) = logger {
        let _ = LOGGER.set(py, logger);
    }
    Ok(LOGGER.get(py))
}

/// The least level it logs.
fn level(py: Python<'_>, logger: &Py<PyAny>) -> PyResult<u8> {
    let level: i64 = logger.call_method0(py, "getEffectiveLevel")?.extract(py)?;
    Ok(u8::try_from(level.clamp(0, 254)).unwrap_or(u8::MAX))
}

/// What is to be delivered: losses, by the number of who wants to know, events, by their client's, with their times, and records
/// for the instrumentation.
pub(crate) type Batch = (Vec<(u64, Error)>, Vec<(u64, CoreEvent, SystemTime)>, Vec<Record>);

/// Waits for events. When all were given, it sleeps: to come back the thread would need the interpreter, which ends.
pub(crate) fn next_batch(py: Python<'_>) -> Batch {
    let queue = queue();
    py.detach(|| {
        queue.with(|waiting| waiting.busy = false);
        queue.notify();
        loop {
            match queue.wait(A_WHILE, Waiting::take) {
                Some(Next::Give(batch)) => return batch,
                Some(Next::Sleep) => {
                    queue.notify();
                    park();
                }
                None => (),
            }
        }
    })
}

/// Ends the delivery: what is queued is still given, within a second.
pub(crate) fn stop(py: Python<'_>) {
    let queue = queue();
    queue.with(|waiting| waiting.stopped = true);
    queue.notify();
    if delivers() {
        py.detach(|| queue.wait(Duration::from_secs(1), |waiting| waiting.delivered.then_some(())));
        queue.with(|waiting| waiting.delivered = true);
    }
}
