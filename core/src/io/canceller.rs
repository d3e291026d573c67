//! Canceller: how an operation is undone whose caller is gone.

use std::sync::{Arc, Weak};

use crate::io::reactor::Io;

/// What is cancelled when the caller of an operation is gone.
pub(crate) trait Cancellable: Send + Sync {
    /// Cancels it; `io` does the I/O.
    fn cancel(self: Arc<Self>, io: &Io);
}

/// How an operation whose caller is gone is undone.
pub(crate) enum Canceller {
    /// By the operation itself, if it is still there.
    Of(Weak<dyn Cancellable>),
    By(Box<dyn FnOnce(Io) + Send>),
}

impl Canceller {
    pub(crate) fn by(cancel: impl FnOnce(Io) + Send + 'static) -> Self {
        Self::By(Box::new(cancel))
    }

    pub(super) fn cancel(self, io: Io) {
        match self {
            Self::Of(operation) => _ = operation.upgrade().map(|operation| operation.cancel(&io)),
            Self::By(cancel) => cancel(io),
        }
    }
}
