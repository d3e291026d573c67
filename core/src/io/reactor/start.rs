//! Start: an operation whose I/O the calling thread or its event loop does, and the reactor in which the caller then waits.

use std::cell::RefCell;
use std::sync::Arc;

use super::Reactor;
use crate::io::doer::{on_this_loop, on_this_thread};

thread_local! {
    /// The reactor of the operation that is being started on this thread.
    static NOTED: RefCell<Option<Arc<Reactor>>> = const { RefCell::new(None) };
}

/// Starts an operation whose I/O this thread will do; gives the reactor to drive.
pub(crate) fn start(start: impl FnOnce()) -> Option<Arc<Reactor>> {
    noted(|| on_this_thread(start))
}

/// Starts an operation whose I/O the event loop of this thread will do; gives the reactor to drive. Nothing is sent yet.
pub(crate) fn start_on_loop(start: impl FnOnce()) -> Option<Arc<Reactor>> {
    noted(|| on_this_loop(start))
}

fn noted(start: impl FnOnce()) -> Option<Arc<Reactor>> {
    // While it drove, this thread may have left a note for another operation.
    NOTED.take();
    start();
    NOTED.take()
}

impl Reactor {
    /// Notes this reactor as the one in which the starting thread waits for its operation.
    pub(crate) fn note(self: &Arc<Self>) {
        NOTED.with_borrow_mut(|noted| {
            if noted.is_none() {
                *noted = Some(Arc::clone(self));
            }
        });
    }
}
