//! Callbacks: user code that the core calls. It is in event sinks, `tracing` subscribers, callbacks, wakers and users' own
//! servers.
//!
//! User code runs on the thread that calls it: the I/O thread, or a thread that reads the answers of all callers. Without a
//! guard, a panic in user code would end this thread. Then nothing in this process would be renewed, notified or released any
//! more. So a panic ends here. User code also can't block on an operation, because only this very thread may be able to complete
//! the operation.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::event::{EventKind, LockEvent, trace};

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// The message of a panic.
#[derive(Debug)]
pub(crate) struct Panic(String);

impl Panic {
    fn of(payload: Box<dyn Any + Send>) -> Self {
        let message = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = message.or_else(|| payload.downcast_ref::<String>().cloned());
        // Any other payload is the user's, too, and may panic once more when it is dropped.
        std::mem::forget(payload);
        Self(message.unwrap_or_else(|| "something that is no text".to_owned()))
    }

    /// The warning that `whose` code panicked.
    pub(crate) fn warning(&self, whose: &str) -> LockEvent {
        LockEvent { message: Some(format!("{whose} panicked: {}", self.0)), ..LockEvent::new(EventKind::Warning) }
    }
}

/// Runs `work` and catches its panic.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(work)).map_err(Panic::of)
}

/// Calls user code. The I/O thread executes the operations that it starts.
pub(crate) fn call<T>(code: impl FnOnce() -> T) -> Result<T, Panic> {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            RUNNING.set(self.0);
        }
    }
    let _before = Before(RUNNING.replace(true));
    caught(code)
}

/// [`call`] for code that belongs to no client: `tracing` reports a panic.
pub(crate) fn call_or_trace(whose: &str, code: impl FnOnce()) {
    if let Err(panic) = call(code) {
        // If the subscriber panics, too, its own panic message has reported it.
        let _ = call(|| trace(&panic.warning(whose)));
    }
}

/// Whether this thread runs user code that the core called.
pub(crate) fn is_running() -> bool {
    RUNNING.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_here_and_says_what_it_said() {
        let message = |code: fn()| call(code).unwrap_err().warning("a test").message.unwrap();
        assert_eq!(message(|| panic!("plainly")), "a test panicked: plainly");
        assert_eq!(message(|| panic!("{} times", 2)), "a test panicked: 2 times");
        assert_eq!(message(|| std::panic::panic_any(Bomb)), "a test panicked: something that is no text");
        assert!(!is_running());
    }

    /// Panics when it is dropped.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[test]
    fn code_called_within_such_code_is_such_code() {
        let seen = call(|| {
            let _ = call(|| panic!("within"));
            is_running()
        });
        assert!(seen.unwrap() && !is_running());
    }
}
