//! Watch: the event loop of another language that does the I/O of its own operations.
//!
//! To hand an operation to the I/O thread, and to be woken by it, costs a loop more than the operation. So the loop writes the
//! request itself, watches a descriptor, and reads the answer when the descriptor is readable. The I/O thread looks after answers
//! that no loop watches any more, and after those that take too long.

use std::ffi::c_int;
use std::fmt;
use std::sync::Arc;

use crate::io::reactor::{Io, Reactor};

/// The driver of an operation that [`Call::then_driven`](crate::Call::then_driven) sent off.
pub struct Driver(pub(crate) Arc<Reactor>);

impl Driver {
    /// The number of the reactor that serves the operation. One watch serves all operations with the same number.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.id()
    }

    /// Begins to watch.
    #[must_use]
    pub fn watch(self) -> Watch {
        self.0.count_watch(true);
        Watch(self.0)
    }

    /// Sends the operations that were sent off, for a loop that can't watch. The I/O thread does the rest.
    pub fn send(&self) {
        self.0.send();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Driver({})", self.id())
    }
}

/// A loop's watch over a client's connections. It ends when it is dropped.
pub struct Watch(Arc<Reactor>);

impl Watch {
    /// The number of the [driver](Driver::id).
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.id()
    }

    /// A descriptor that is readable when there is something to [`poll`](Watch::poll). It stays open as long as the watch. `None` on
    /// Windows: there is none, and the I/O thread reads the answers.
    #[must_use]
    pub fn descriptor(&self) -> Option<c_int> {
        self.0.descriptor()
    }

    /// Sends the operations that were sent off since the last time. Doesn't block.
    pub fn send(&self) {
        self.0.send();
    }

    /// Reads all answers that have come, and ends their operations: the callbacks are called here. Doesn't block.
    pub fn poll(&self) {
        self.0.poll_now(&Io::Threads(None));
    }

    /// Whether the client is gone, so that nothing more will come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // In a forked child the watch is the parent's.
        if !self.0.is_inherited() {
            self.0.count_watch(false);
            self.0.send();
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({})", self.id())
    }
}
