//! Doer: who does the I/O of an operation that a thread submits.

use std::cell::Cell;

/// The thread that does the I/O of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doer {
    /// The runtime of the task that runs on this thread, else the I/O thread.
    Task,
    /// The I/O thread.
    Home,
    /// This thread itself.
    Thread,
    /// The event loop that runs on this thread. It sends all submitted requests together.
    Loop,
}

thread_local! {
    static DOER: Cell<Doer> = const { Cell::new(Doer::Task) };
}

fn done_by<T>(doer: Doer, work: impl FnOnce() -> T) -> T {
    struct Before(Doer);
    impl Drop for Before {
        fn drop(&mut self) {
            DOER.set(self.0);
        }
    }
    let _before = Before(DOER.replace(doer));
    work()
}

/// Runs `work` without the caller's own runtime or thread: the caller may be about to end either.
pub(crate) fn at_home<T>(work: impl FnOnce() -> T) -> T {
    done_by(Doer::Home, work)
}

/// Runs `work` on behalf of threads that wait for it and do their I/O themselves.
pub(crate) fn on_this_thread<T>(work: impl FnOnce() -> T) -> T {
    done_by(Doer::Thread, work)
}

/// Runs `work` on behalf of an event loop, which sends the submitted requests later.
pub(crate) fn on_this_loop<T>(work: impl FnOnce() -> T) -> T {
    done_by(Doer::Loop, work)
}

/// Whether this thread does its own I/O.
pub(crate) fn is_on_this_thread() -> bool {
    matches!(DOER.get(), Doer::Thread | Doer::Loop)
}

/// Whether submitted requests are sent later.
pub(crate) fn sends_later() -> bool {
    DOER.get() == Doer::Loop
}

/// The caller's own runtime, if it has one that may do its I/O. A hop to the I/O thread and back costs an uncontended operation
/// more than everything else together.
pub(crate) fn of_the_caller() -> Option<tokio::runtime::Handle> {
    if DOER.get() == Doer::Task { tokio::runtime::Handle::try_current().ok() } else { None }
}
