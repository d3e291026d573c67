//! Executor: who does the I/O of an operation. A request carries it from the caller to the connections.

use std::sync::{Arc, OnceLock};

use super::Reactor;
use crate::event::callback;

/// Who does the I/O of an operation, and of what follows from its answers.
#[derive(Clone, Debug)]
pub(crate) enum Io {
    /// The runtime of the task that runs on this thread, else the I/O thread. A hop to that and back costs an uncontended operation more
    /// than everything else together.
    Task,
    /// The I/O thread: the caller may be about to end its own runtime or thread.
    Background,
    /// The threads that wait in a reactor. One that begins an operation finds the reactor in its slot.
    Threads(Option<ReactorSlot>),
    /// The event loop of this thread, which sends all submitted requests together.
    Loop(ReactorSlot),
}

/// The reactor in which an operation is under way, if it is under way in any.
pub(crate) type ReactorSlot = Arc<OnceLock<Arc<Reactor>>>;

impl Io {
    /// Of an operation that nobody waits for on this thread. Code that the core calls runs on a thread that isn't its own.
    pub(crate) fn of_caller() -> Self {
        if callback::is_running() { Self::Background } else { Self::Task }
    }

    /// Whether a reactor does it.
    pub(crate) fn is_driven(&self) -> bool {
        matches!(self, Self::Threads(_) | Self::Loop(_))
    }

    /// Notes the reactor that does it.
    pub(crate) fn note(&self, reactor: &Arc<Reactor>) {
        if let Self::Threads(Some(slot)) | Self::Loop(slot) = self {
            slot.get_or_init(|| Arc::clone(reactor));
        }
    }
}
