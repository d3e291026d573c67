//! Canceller: how an operation is undone whose caller is gone.

use std::sync::{Arc, Weak};

use crate::io::reactor::Io;
use crate::process::Process;

/// What is cancelled when the caller of an operation is gone.
pub(crate) trait Cancellable: Send + Sync {
    /// Cancels it; `io` does the I/O.
    fn cancel(self: Arc<Self>, io: &Io);
}

/// How an operation whose caller is gone is undone.
pub(crate) enum Canceller {
    /// By the operation itself, if it is still there.
    Of(Weak<dyn Cancellable>),
    /// In the process in which it began.
    By(Process, Box<dyn FnOnce(Io) + Send>),
}

impl Canceller {
    pub(crate) fn by(cancel: impl FnOnce(Io) + Send + 'static) -> Self {
        Self::By(Process::current(), Box::new(cancel))
    }

    pub(super) fn cancel(self, io: Io) {
        match self {
            Self::Of(operation) => _ = operation.upgrade().map(|operation| operation.cancel(&io)),
            Self::By(process, cancel) if process.is_current() => cancel(io),
            // A fork has copied it, with the mutexes that it would lock.
            Self::By(_, cancel) => std::mem::forget(cancel),
        }
    }
}
