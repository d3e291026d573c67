//! Wake: the handle by which any thread wakes JavaScript.
//!
//! Tools such as `jest --detectOpenHandles` blame a program for each handle that it leaves open. So there is none before the first
//! client, and none once the last one is closed.

use napi::bindgen_prelude::FunctionRef;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status};

/// It is weak: it keeps the environment alive only on request.
pub(crate) type Handle = ThreadsafeFunction<(), (), (), Status, false, true>;

pub(crate) struct Wake {
    /// The function that takes the results.
    drain: FunctionRef<(), ()>,
    handle: Option<Handle>,
    /// Whether the environment is kept alive.
    kept: bool,
}

impl Wake {
    pub(crate) fn new(drain: FunctionRef<(), ()>) -> Self {
        Self { drain, handle: None, kept: false }
    }

    /// Opens the handle unless it is open; whether it did.
    pub(crate) fn open(&mut self, env: &Env) -> bool {
        if self.handle.is_some() {
            return false;
        }
        let drain = self.drain.borrow_back(env);
        // Fails only while the environment ends, when it no longer matters.
        self.handle = drain.and_then(|drain| drain.build_threadsafe_function().weak::<true>().build()).ok();
        self.kept = false;
        self.handle.is_some()
    }

    /// Lets JavaScript take the results soon. Without a handle it takes them when there is one again.
    pub(crate) fn call(&self) {
        if let Some(handle) = &self.handle {
            handle.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    /// Keeps the environment alive, or doesn't.
    #[expect(deprecated, reason = "the counted replacement would keep it alive for as long as the queue exists")]
    pub(crate) fn keep_alive(&mut self, env: &Env, wanted: bool) {
        let Some(handle) = self.handle.as_mut().filter(|_| self.kept != wanted) else { return };
        self.kept = wanted;
        // Fails only while the environment ends, when it no longer matters.
        let _ = if wanted { handle.refer(env) } else { handle.unref(env) };
    }

    /// Takes the handle, which closes when it is dropped.
    pub(crate) fn close(&mut self) -> Option<Handle> {
        self.handle.take()
    }
}
