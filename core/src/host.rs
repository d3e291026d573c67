//! A host language's event loop that does the I/O of the calls made on its thread.
//!
//! A hop to the core's I/O thread and back costs a call more than everything else together. A host whose event loop can watch a
//! descriptor avoids it: what is called within [`EventLoop::enter`] is sent by the loop's next [`EventLoop::flush`], and the
//! answers are read where the loop finds the [`Line`] readable. The I/O thread stays the safety net: it connects, it does
//! all that is not called on the loop's thread, and where the loop is blocked it sends and reads in the loop's place.

use std::cell::RefCell;
use std::fmt;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::runtime::is_at_home;

thread_local! {
    static CURRENT: RefCell<Option<Arc<EventLoop>>> = const { RefCell::new(None) };
}

/// The event loop within whose [`EventLoop::enter`] this thread is.
pub(crate) fn current() -> Option<Arc<EventLoop>> {
    if is_at_home() { None } else { CURRENT.with_borrow(Clone::clone) }
}

/// One event loop.
pub struct EventLoop {
    opened: Box<dyn Fn(Line) + Send + Sync>,
    /// Lines with something to send.
    unsent: Mutex<Vec<Arc<dyn Driven>>>,
    lines: Mutex<Vec<Weak<dyn Driven>>>,
    ended: AtomicBool,
}

impl EventLoop {
    /// A loop that is told of each line to watch by `opened`: on any thread, and it must not block.
    pub fn new(opened: impl Fn(Line) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            opened: Box::new(opened),
            unsent: Mutex::default(),
            lines: Mutex::default(),
            ended: AtomicBool::new(false),
        })
    }

    /// Runs `work` on the loop's thread; the operations that it starts are this loop's to carry out.
    pub fn enter<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        struct Before(Option<Arc<EventLoop>>);
        impl Drop for Before {
            fn drop(&mut self) {
                CURRENT.set(self.0.take());
            }
        }
        let _before = Before(CURRENT.replace(Some(Arc::clone(self))));
        work()
    }

    /// Sends what was started since the last time: once in each turn of the loop, before it sleeps.
    pub fn flush(&self) {
        let unsent = std::mem::take(&mut *self.unsent.lock());
        for line in unsent {
            line.flush();
        }
    }

    /// The loop is gone: what is under way is left to the I/O thread.
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        let lines = std::mem::take(&mut *self.lines.lock());
        self.unsent.lock().clear();
        lines.iter().filter_map(Weak::upgrade).for_each(|line| line.orphan());
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    pub(crate) fn open(&self, driven: &Arc<dyn Driven>, socket: Arc<dyn AsRawFd + Send + Sync>) {
        let mut lines = self.lines.lock();
        lines.retain(|line| line.strong_count() > 0);
        lines.push(Arc::downgrade(driven));
        drop(lines);
        if self.has_ended() {
            return driven.orphan();
        }
        (self.opened)(Line { driven: Arc::clone(driven), socket });
    }

    pub(crate) fn has_to_send(&self, driven: Arc<dyn Driven>) {
        self.unsent.lock().push(driven);
    }
}

impl fmt::Debug for EventLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventLoop")
    }
}

/// What a line leads to.
pub(crate) trait Driven: Send + Sync {
    /// Sends what is waiting.
    fn flush(&self);

    /// Reads what has arrived on the connection with this descriptor; whether that goes on.
    fn read(&self, descriptor: RawFd) -> bool;

    /// No loop watches the connection any more.
    fn orphan(&self);
}

/// A connection that an event loop watches. Its descriptor stays open for as long as this lives.
pub struct Line {
    driven: Arc<dyn Driven>,
    socket: Arc<dyn AsRawFd + Send + Sync>,
}

impl Line {
    /// What to watch for being readable.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Reads what has arrived, and ends the operations that it answers. `false`: the connection is over, and no longer to be
    /// watched.
    #[must_use]
    pub fn read(&self) -> bool {
        self.driven.read(self.descriptor())
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("descriptor", &self.descriptor()).finish_non_exhaustive()
    }
}
