//! A host language's event loop that does the I/O of the calls made on its thread.
//!
//! A hop to the core's I/O thread and back costs a call more than everything else together. A host whose event loop can watch a
//! descriptor avoids it: what is called within [`EventLoop::enter`] is sent by the loop's next [`EventLoop::flush`], and the
//! answers are read where the loop finds the descriptor readable. The I/O thread stays the safety net: it connects, it does
//! all that is not called on the loop's thread, and where the loop is blocked it sends and reads in the loop's place.

use std::cell::RefCell;
use std::fmt;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::drive::{Drive, Driven};
use crate::error::Error;
use crate::runtime::{Runtime, is_elsewhere};

thread_local! {
    static CURRENT: RefCell<Option<Arc<EventLoop>>> = const { RefCell::new(None) };
}

/// The event loop within whose [`EventLoop::enter`] this thread is.
pub(crate) fn current() -> Option<Arc<EventLoop>> {
    if is_elsewhere() { None } else { CURRENT.with_borrow(Clone::clone) }
}

/// One event loop.
pub struct EventLoop {
    drive: Arc<Drive>,
    descriptor: RawFd,
    /// Connections with something to send.
    unsent: Mutex<Vec<Arc<dyn Driven>>>,
    ended: AtomicBool,
}

impl EventLoop {
    /// A loop without connections.
    ///
    /// # Errors
    /// `INTERNAL` if the system has no poller or thread left.
    pub fn new() -> Result<Arc<Self>, Error> {
        let drive = Drive::new(Runtime::current()?)?;
        let descriptor = drive.descriptor();
        Ok(Arc::new(Self { drive, descriptor, unsent: Mutex::default(), ended: AtomicBool::new(false) }))
    }

    /// What to watch for being readable: then [`EventLoop::turn`] is to be called. It lives as long as this does.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.descriptor
    }

    /// Runs `work` on the loop's thread; the operations that it starts are this loop's to carry out.
    pub fn enter<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        struct Before(Option<Arc<EventLoop>>);
        impl Drop for Before {
            fn drop(&mut self) {
                CURRENT.set(self.0.take());
            }
        }
        let own = (!self.ended.load(Ordering::SeqCst)).then(|| Arc::clone(self));
        let _before = Before(CURRENT.replace(own));
        work()
    }

    /// Reads what has arrived, and ends the operations that it answers. Doesn't wait.
    pub fn turn(self: &Arc<Self>) {
        self.enter(|| self.drive.look());
    }

    /// Sends what was started since the last time: once in each turn of the loop, before it sleeps.
    pub fn flush(self: &Arc<Self>) {
        let unsent = std::mem::take(&mut *self.unsent.lock());
        if unsent.is_empty() {
            return;
        }
        self.enter(|| unsent.iter().for_each(|driven| driven.attend()));
        self.drive.pass_on();
    }

    /// The loop is gone: what is under way is left to the I/O thread.
    pub fn end(self: &Arc<Self>) {
        self.ended.store(true, Ordering::SeqCst);
        self.flush();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    pub(crate) fn drive(&self) -> &Arc<Drive> {
        &self.drive
    }

    pub(crate) fn has_to_send(&self, driven: Arc<dyn Driven>) {
        self.unsent.lock().push(driven);
        // Should the loop not come to it soon, the I/O thread will.
        self.drive.pass_on();
    }
}

impl fmt::Debug for EventLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoop").field("descriptor", &self.descriptor).finish_non_exhaustive()
    }
}
