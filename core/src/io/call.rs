//! Call: one operation under way, and the three kinds of caller that may wait for it.
//!
//! A [`Call`] is a future for any executor. A blocked thread can also wait for it, or it hands its result to a callback (a host
//! language's completion queue). It starts when it is first polled, waited for or sent off, and not before.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::event::callback;
use crate::io::canceller::Canceller;
use crate::io::reactor::{Io, Reactor, ReactorSlot};
use crate::io::watch::Driver;
use crate::sync::Mutex;

/// As long as a wait without an end: a clock can't name a time that is as far ahead as [`Duration::MAX`].
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// The name of a callback of [`Call::then`] in warnings.
const CALLBACK: &str = "the callback of an operation";

/// A function that undoes the result of an operation that its caller did not get.
pub(crate) type Undo<T> = fn(T);

/// A function that starts an operation and gives its canceller.
type Starter<T> = Box<dyn FnOnce(Responder<T>) -> Option<Canceller> + Send>;

/// An operation under way: a future for any executor, which a thread may also wait for, or send off with a callback.
///
/// It starts with the first poll, wait or [`Call::then`], and not before. Dropping it before its end cancels it. The method that
/// made the call says under *Cancel safety* what that means.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let client = locktender::Client::open("memory://docs-call").unwrap();
/// let lock = client.lock("nightly");
/// let awaited = lock.acquire().await?.fence();
/// let waited = lock.acquire().blocking()?.fence(); // blocks the thread
/// assert!(waited > awaited);
/// # Ok::<(), locktender::Error>(())
/// # }).unwrap();
/// ```
#[must_use = "a call does nothing unless it is awaited, waited for or sent off"]
pub struct Call<T> {
    starter: Option<Starter<T>>,
    slot: Arc<ResultCell<T>>,
    canceller: Option<Canceller>,
    /// The reactor that a waiting thread drives meanwhile.
    reactor: Option<Arc<Reactor>>,
}

impl<T: Send + 'static> Call<T> {
    pub(crate) fn new(start: impl FnOnce(Responder<T>) -> Option<Canceller> + Send + 'static) -> Self {
        Self { starter: Some(Box::new(start)), slot: ResultCell::new(None), canceller: None, reactor: None }
    }

    /// A call whose result is undone, and not just dropped, if its caller is gone when it comes.
    pub(crate) fn undoing(undo: Undo<T>, start: impl FnOnce(Responder<T>) -> Option<Canceller> + Send + 'static) -> Self {
        Self { starter: Some(Box::new(start)), slot: ResultCell::new(Some(undo)), canceller: None, reactor: None }
    }

    /// What a host does with a result that its own caller did not get; `None` if it may be dropped.
    #[doc(hidden)]
    #[must_use]
    pub fn undo(&self) -> Option<fn(T)> {
        self.slot.undo
    }

    /// A call that nothing cancels.
    pub(crate) fn started(start: impl FnOnce(Responder<T>) + Send + 'static) -> Self {
        Self::new(move |responder| {
            start(responder);
            None
        })
    }

    /// A call that is refused before it starts.
    pub(crate) fn refused(error: Error) -> Self {
        Self::started(move |responder| responder.respond(Err(error)))
    }

    fn start(&mut self, io: Io) {
        if let Some(start) = self.starter.take() {
            self.canceller = start(Responder { slot: Some(Arc::clone(&self.slot)), io });
        }
    }

    /// Blocks this thread until the operation has ended.
    ///
    /// ```
    /// # let client = locktender::Client::open("memory://docs-call-wait")?;
    /// let hold = client.lock("nightly").acquire().blocking()?; // the same as acquire_blocking()
    /// # Ok::<(), locktender::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the operation. `INVALID_ARGUMENT` in code that the core calls (a sink, a callback), unless there is a result
    /// at once: this thread may be the one that has to bring it. The operation has begun then, and is cancelled like one that is
    /// dropped.
    pub fn blocking(mut self) -> Result<T, Error> {
        loop {
            if let Some(result) = self.wait_for(Duration::from_secs(3600)) {
                return result;
            }
        }
    }

    /// Blocks this thread until the operation has ended, at most `timeout`. Gives `None` if it continues.
    ///
    /// A signal may end the wait earlier. Call it again to go on waiting, or drop the call to cancel.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let client = locktender::Client::open("memory://docs-call-wait-for")?;
    /// let first = client.lock("nightly").acquire_blocking()?;
    /// let mut second = client.lock("nightly").acquire();
    /// assert!(second.wait_for(Duration::from_millis(10)).is_none()); // the lock is busy
    /// first.release_blocking()?;
    /// let second = second.blocking()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn wait_for(&mut self, timeout: Duration) -> Option<Result<T, Error>> {
        let until = Instant::now().checked_add(timeout).unwrap_or_else(|| Instant::now() + LONGEST);
        if self.starter.is_some() {
            let slot = ReactorSlot::default();
            self.start(Io::Threads(Some(Arc::clone(&slot))));
            self.reactor = slot.get().cloned();
        }
        let mut state = self.slot.state.lock();
        if state.result.is_none() && callback::is_running() && !timeout.is_zero() {
            return Some(Err(Error::waits_in_callback()));
        }
        if state.result.is_none() {
            state.waiter = Waiter::Thread(thread::current(), self.reactor.clone());
            drop(state);
            self.slot.park(until, self.reactor.as_ref());
            state = self.slot.state.lock();
        } else if let Some(reactor) = &self.reactor {
            // Other I/O that the operation began may still be under way: it needs a driver.
            reactor.promote_next();
        }
        state.result.take().inspect(|_| self.canceller = None)
    }

    /// Sends the operation off: `receive` is called with the result. Gives a [`Cancel`], and dropping that cancels nothing.
    ///
    /// `receive` is called on any thread, also on this one before `then` returns, and must not block. A panic in it ends there,
    /// with a warning to `tracing`.
    ///
    /// ```
    /// # use std::sync::mpsc;
    /// # let client = locktender::Client::open("memory://docs-call-then")?;
    /// let (sender, receiver) = mpsc::channel();
    /// client.lock("nightly").acquire().then(move |result| sender.send(result).unwrap());
    /// let hold = receiver.recv().unwrap()?;
    /// # Ok::<(), locktender::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn then(self, receive: impl FnOnce(Result<T, Error>) + Send + 'static) -> Cancel {
        self.then_by(Io::of_caller(), receive)
    }

    /// [`Call::then`] for a part of another operation.
    pub(crate) fn then_by(mut self, io: Io, receive: impl FnOnce(Result<T, Error>) + Send + 'static) -> Cancel {
        self.start(io);
        self.hand(receive)
    }

    /// [`Call::then`] for a thread that runs an event loop. If it gives a driver, the loop must have it
    /// [sent](crate::host::Watch::send), and then watch it. Without a driver the operation needs none.
    #[doc(hidden)]
    pub fn then_driven(mut self, receive: impl FnOnce(Result<T, Error>) + Send + 'static) -> (Cancel, Option<Driver>) {
        let slot = ReactorSlot::default();
        self.start(Io::Loop(Arc::clone(&slot)));
        (self.hand(receive), slot.get().cloned().map(Driver))
    }

    fn hand(mut self, receive: impl FnOnce(Result<T, Error>) + Send + 'static) -> Cancel {
        let mut state = self.slot.state.lock();
        if let Some(result) = state.result.take() {
            drop(state);
            self.canceller = None;
            callback::call_or_trace(CALLBACK, || receive(result));
            return Cancel(None);
        }
        state.waiter = Waiter::Callback(Box::new(receive));
        drop(state);
        Cancel(self.canceller.take())
    }
}

impl<T: Send + 'static> Future for Call<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.start(Io::of_caller());
        let mut state = self.slot.state.lock();
        if let Some(result) = state.result.take() {
            drop(state);
            self.canceller = None;
            return Poll::Ready(result);
        }
        match &mut state.waiter {
            Waiter::Task(waker) => waker.clone_from(context.waker()),
            waiter => *waiter = Waiter::Task(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl<T> Unpin for Call<T> {}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        if let Some(cancel) = self.canceller.take() {
            // The caller's runtime may have no driver any more.
            cancel.cancel(Io::Background);
        }
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("started", &self.starter.is_none()).finish_non_exhaustive()
    }
}

/// The means to cancel a call that was sent off with [`Call::then`]. Dropping it cancels nothing.
#[doc(hidden)]
#[derive(Default)]
pub struct Cancel(Option<Canceller>);

impl Cancel {
    /// Cancels the operation, as dropping its call would. The callback is called all the same: with the result if the
    /// operation ended before, or can't be cancelled; else with an error.
    ///
    /// ```
    /// # use std::sync::mpsc;
    /// # let client = locktender::Client::open("memory://docs-cancel")?;
    /// let first = client.lock("nightly").acquire_blocking()?;
    /// let (sender, receiver) = mpsc::channel();
    /// let second = client.lock("nightly").acquire().then(move |result| sender.send(result.is_ok()).unwrap());
    /// second.cancel();
    /// first.release_blocking()?;
    /// assert_eq!(receiver.recv(), Ok(false)); // it doesn't get the lock
    /// # Ok::<(), locktender::Error>(())
    /// ```
    pub fn cancel(mut self) {
        self.cancel_by(Io::Background);
    }

    /// [`Cancel::cancel`] for a part of another operation.
    pub(crate) fn cancel_by(&mut self, io: Io) {
        if let Some(cancel) = self.0.take() {
            cancel.cancel(io);
        }
    }

    /// [`Cancel::cancel`] for a thread that runs an event loop, as [`Call::then_driven`]. The undo takes the same connection as the
    /// operation, after it.
    #[doc(hidden)]
    pub fn cancel_driven(mut self) -> Option<Driver> {
        let slot = ReactorSlot::default();
        self.cancel_by(Io::Loop(Arc::clone(&slot)));
        slot.get().cloned().map(Driver)
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancel")
    }
}

/// The end of a call. Dropped without a response it ends the call with `INTERNAL`, so that no caller waits without end.
pub(crate) struct Responder<T> {
    slot: Option<Arc<ResultCell<T>>>,
    io: Io,
}

impl<T> Responder<T> {
    /// Who does the I/O of the call.
    pub(crate) fn io(&self) -> &Io {
        &self.io
    }

    pub(crate) fn respond(mut self, result: Result<T, Error>) {
        if let Some(slot) = self.slot.take() {
            slot.fill(result);
        }
    }

    /// The responder with what its operation begins with. If there is an error in that place, it is the result of the call.
    pub(crate) fn unless_failed<S>(self, begun: Result<S, Error>) -> Option<(S, Self)> {
        match begun {
            Ok(begun) => Some((begun, self)),
            Err(error) => {
                self.respond(Err(error));
                None
            }
        }
    }

    /// Leaves the call without an end.
    pub(crate) fn never(mut self) {
        self.slot = None;
    }
}

impl<T> Drop for Responder<T> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            slot.fill(Err(Error::internal(None, "an operation ended without a result")));
        }
    }
}

enum Waiter<T> {
    Nobody,
    Task(Waker),
    Thread(Thread, Option<Arc<Reactor>>),
    Callback(Box<dyn FnOnce(Result<T, Error>) + Send>),
}

struct State<T> {
    result: Option<Result<T, Error>>,
    waiter: Waiter<T>,
}

struct ResultCell<T> {
    state: Mutex<State<T>>,
    undo: Option<Undo<T>>,
}

impl<T> ResultCell<T> {
    fn new(undo: Option<Undo<T>>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { result: None, waiter: Waiter::Nobody }), undo })
    }

    fn is_filled(&self) -> bool {
        self.state.lock().result.is_some()
    }

    /// Blocks this thread until there is a result, or until `until`.
    fn park(&self, until: Instant, reactor: Option<&Arc<Reactor>>) {
        if let Some(reactor) = reactor {
            return reactor.wait(until, || self.is_filled());
        }
        while !self.is_filled() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::park_timeout(left);
        }
    }

    fn fill(&self, result: Result<T, Error>) {
        let mut state = self.state.lock();
        match std::mem::replace(&mut state.waiter, Waiter::Nobody) {
            Waiter::Callback(receive) => {
                drop(state);
                callback::call_or_trace(CALLBACK, || receive(result));
            }
            waiter => {
                state.result = Some(result);
                drop(state);
                match waiter {
                    Waiter::Task(waker) => callback::call_or_trace("the waker of a task", || waker.wake()),
                    // This thread filled the result itself: it is awake.
                    Waiter::Thread(thread, _) if thread.id() == thread::current().id() => (),
                    Waiter::Thread(thread, Some(reactor)) => reactor.wake(&thread),
                    Waiter::Thread(thread, None) => thread.unpark(),
                    Waiter::Nobody | Waiter::Callback(_) => (),
                }
            }
        }
    }
}

impl<T> Drop for ResultCell<T> {
    fn drop(&mut self) {
        let result = self.state.lock().result.take();
        if let (Some(undo), Some(Ok(value))) = (self.undo, result) {
            undo(value);
        }
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
