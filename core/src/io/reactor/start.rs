//! Start: an operation whose I/O the calling thread, or its event loop, shall do, and the reactor in which it then waits.

use std::cell::RefCell;
use std::sync::Arc;

use super::Reactor;
use crate::io::runtime::{on_this_loop, on_this_thread};

thread_local! {
    /// The reactor of the operation that is being started on this thread.
    static NOTED: RefCell<Option<Arc<Reactor>>> = const { RefCell::new(None) };
}

/// Starts an operation whose I/O this thread shall do; gives what it is to drive.
pub(crate) fn start(start: impl FnOnce()) -> Option<Arc<Reactor>> {
    noted(|| on_this_thread(start))
}

/// Starts an operation whose I/O the event loop of this thread shall do; gives what it is to drive. Nothing is sent yet.
pub(crate) fn start_on_loop(start: impl FnOnce()) -> Option<Arc<Reactor>> {
    noted(|| on_this_loop(start))
}

fn noted(start: impl FnOnce()) -> Option<Arc<Reactor>> {
    // What this thread did for others while it drove may have left a note.
    NOTED.take();
    start();
    NOTED.take()
}

impl Reactor {
    /// Has the thread that is starting an operation wait for it here.
    pub(crate) fn note(self: &Arc<Self>) {
        NOTED.with_borrow_mut(|noted| {
            if noted.is_none() {
                *noted = Some(Arc::clone(self));
            }
        });
    }
}
