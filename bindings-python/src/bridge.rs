//! One completion queue per event loop. The thread that ends an operation pushes its number; the loop's own thread takes the
//! numbers out and settles the futures. Most operations the loop itself has sent and read the answer of (see `turns`); threads of
//! the core wake it by a file descriptor. None of them touches a Python object or waits for the interpreter.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use locktender::host::Process;
use locktender::{Call, Cancel, Error};
use pyo3::exceptions::PyNotImplementedError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::garbage::during_a_visit;
use crate::guarded::{Awaited, Guarded};
use crate::known::Known;
use crate::own;
use crate::turns::Turns;
use crate::visit::{self, Visit};
use crate::wake::Wake;

/// The end of the queue that threads of the core see.
struct Queue {
    ready: Awaited<Ready>,
    wake: Wake,
}

#[derive(Default)]
struct Ready {
    numbers: Vec<u64>,
    /// The loop's thread is about to take them: nobody has to wake it.
    awake: bool,
}

impl Ready {
    fn take(&mut self) -> Vec<u64> {
        self.awake = false;
        std::mem::take(&mut self.numbers)
    }
}

/// Notifies one loop that one operation has ended.
pub(crate) struct Signal {
    queue: Arc<Queue>,
    number: u64,
    /// Made after the exit began.
    late: bool,
}

impl Signal {
    /// Called on any thread, with or without the interpreter.
    pub(crate) fn raise(&self) {
        // A loop that still runs then is a daemon thread's: what its tasks would say about the closed client helps nobody.
        if visit::is_over() && !self.late {
            return;
        }
        let first = self.queue.ready.with(|ready| {
            ready.numbers.push(self.number);
            ready.numbers.len() == 1 && !ready.awake
        });
        if first {
            self.queue.wake.signal();
            self.queue.ready.notify();
        }
    }
}

/// Who waits for an operation.
enum Waiter {
    Future(Py<PyAny>),
    Callback(Py<PyAny>),
}

impl Waiter {
    fn settle(self, py: Python<'_>) -> PyResult<()> {
        match self {
            Self::Callback(callback) => callback.call0(py).map(drop),
            Self::Future(future) if future.call_method0(py, intern!(py, "done"))?.is_truthy(py)? => Ok(()),
            Self::Future(future) => future.call_method1(py, intern!(py, "set_result"), (py.None(),)).map(drop),
        }
    }
}

/// The loop's end of the queue. The loop itself keeps it alive, so that closing the loop lets go of everything.
#[pyclass(module = "locktender._native", name = "_Drain", frozen, weakref)]
pub(crate) struct Drain {
    queue: Arc<Queue>,
    of: Process,
    waiters: Guarded<HashMap<u64, Waiter>>,
    /// How many futures are among them.
    futures: AtomicUsize,
    turns: Turns,
}

#[pymethods]
impl Drain {
    /// Settles what has ended; runs on the loop's thread.
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let _visit = Visit::begin(py)?;
        // A forked child may have inherited the loop: what there is to take is the parent's.
        if self.of.is_current() {
            self.queue.wake.clear();
            self.settle(py);
        }
        Ok(())
    }

    /// What the loop calls when there is something to read.
    fn _poll(&self, py: Python<'_>, id: u64) -> PyResult<()> {
        self.turning(py, |turns| turns.poll(id))
    }

    /// Sends what the tasks of this turn have asked for.
    fn _send(&self, py: Python<'_>) -> PyResult<()> {
        self.turning(py, Turns::send)
    }

    /// For loops that can't watch a descriptor: blocks a thread that stands in until something has ended, at most a second.
    fn _wait(&self, py: Python<'_>) -> bool {
        let filled = |ready: &mut Ready| (!ready.numbers.is_empty()).then_some(());
        visit::detached(py, || self.queue.ready.wait(Duration::from_secs(1), filled)).0.is_some()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.waiters.traverse(|waiters| {
            waiters.values().try_for_each(|waiter| match waiter {
                Waiter::Future(object) | Waiter::Callback(object) => visit.call(object),
            })
        })
    }

    fn __clear__(&self) {
        during_a_visit(|_| drop(self.waiters.take()));
    }
}

impl Drain {
    /// Does the loop's share of the I/O, and settles what that has ended.
    pub(crate) fn turning(&self, py: Python<'_>, work: impl FnOnce(&Turns)) -> PyResult<()> {
        let _visit = Visit::begin(py)?;
        // A forked child may have inherited the loop while it ran: its connections are the parent's.
        if self.of.is_current() {
            self.queue.ready.with(|ready| ready.awake = true);
            work(&self.turns);
            self.settle(py);
        }
        Ok(())
    }

    fn settle(&self, py: Python<'_>) {
        for number in self.queue.ready.with(Ready::take) {
            if let Some(Err(error)) = self.take(number).map(|waiter| waiter.settle(py)) {
                error.write_unraisable(py, None);
            }
        }
    }

    /// Sends `call` off. The loop does the I/O if it can, else the core's thread does.
    pub(crate) fn start<T: Send + 'static>(
        slf: &Bound<'_, Self>,
        event_loop: &Bound<'_, PyAny>,
        call: Call<T>,
        receive: impl FnOnce(Result<T, Error>) + Send + 'static,
    ) -> PyResult<Cancel> {
        let turns = &slf.get().turns;
        if !turns.can_watch() {
            return Ok(call.then(receive));
        }
        let (cancel, driver) = call.then_driven(receive);
        let Some(driver) = driver else { return Ok(cancel) };
        turns.watch(event_loop, driver, || slf.getattr(intern!(slf.py(), "_poll")))?;
        // One operation leaves at once; those of many tasks leave together, when each has had its turn.
        if slf.get().futures.load(Ordering::Relaxed) == 0 {
            turns.send();
        } else if turns.is_first_to_send_later() {
            event_loop.call_method1(intern!(slf.py(), "call_soon"), (slf.getattr(intern!(slf.py(), "_send"))?,))?;
        }
        Ok(cancel)
    }

    /// A number for a new operation, and what notifies this loop of its end.
    pub(crate) fn signal(&self) -> (u64, Signal) {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        (number, Signal { queue: Arc::clone(&self.queue), number, late: visit::is_over() })
    }

    pub(crate) fn expect_future(&self, number: u64, future: Py<PyAny>) {
        drop(self.waiters.with(|waiters| waiters.insert(number, Waiter::Future(future))));
        self.futures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn expect_callback(&self, number: u64, callback: Py<PyAny>) {
        drop(self.waiters.with(|waiters| waiters.insert(number, Waiter::Callback(callback))));
    }

    /// Nobody waits for it any more.
    pub(crate) fn forget(&self, number: u64) {
        drop(self.take(number));
    }

    fn take(&self, number: u64) -> Option<Waiter> {
        let waiter = self.waiters.with(|waiters| waiters.remove(&number));
        if matches!(waiter, Some(Waiter::Future(_))) {
            self.futures.fetch_sub(1, Ordering::Relaxed);
        }
        waiter
    }
}

/// The loops with a queue, and their drains, which are not kept alive either.
static KNOWN: Known<Py<PyWeakrefReference>> = Known::new();

/// The completion queue of `event_loop`, which is the running one.
pub(crate) fn drain_of<'py>(event_loop: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Drain>> {
    let py = event_loop.py();
    if let Some(drain) = known(event_loop) {
        return Ok(drain);
    }
    let _visit = Visit::begin(py)?;
    let queue = Queue { ready: Awaited::default(), wake: Wake::new()? };
    let drain = Drain {
        queue: Arc::new(queue),
        of: Process::current(),
        waiters: Guarded::default(),
        futures: AtomicUsize::new(0),
        turns: Turns::default(),
    };
    let drain = Bound::new(py, drain)?;
    attach(event_loop, &drain)?;
    KNOWN.note(event_loop, PyWeakrefReference::new(&drain)?.unbind())?;
    Ok(drain)
}

fn known<'py>(event_loop: &Bound<'py, PyAny>) -> Option<Bound<'py, Drain>> {
    let drain = KNOWN.find(event_loop)?.bind(event_loop.py()).upgrade()?.cast_into::<Drain>().ok()?;
    // A forked child shares the descriptor with its parent, and must not take what is the parent's.
    drain.get().of.is_current().then_some(drain)
}

/// Has the loop watch the descriptor; one that can't gets a thread that stands in.
fn attach(event_loop: &Bound<'_, PyAny>, drain: &Bound<'_, Drain>) -> PyResult<()> {
    let py = event_loop.py();
    let stand_in = || own::call(py, "_asyncio", "stand_in", (event_loop, drain)).map(drop);
    let Some(descriptor) = drain.get().queue.wake.descriptor() else { return stand_in() };
    match event_loop.call_method1("add_reader", (descriptor, drain)) {
        Ok(_) => {
            drain.get().turns.begin();
            Ok(())
        }
        Err(error) if error.is_instance_of::<PyNotImplementedError>(py) => stand_in(),
        Err(error) => Err(error),
    }
}
