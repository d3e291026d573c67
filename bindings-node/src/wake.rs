//! Wake: the handle by which any thread wakes JavaScript.
//!
//! Tools such as `jest --detectOpenHandles` blame a program for each handle that it leaves open. So there is none before the first
//! client, and none once the last one is closed. Crate `napi` has handles of this kind, too, but with them it opens one more for each
//! environment, and never closes it. So the functions of Node are called here.

use std::ptr;

use napi::Env;
use napi::bindgen_prelude::{FunctionRef, JsValue};
use napi_sys as sys;

const NAME: &str = "locktender";

/// An open handle. It is weak: it keeps the environment alive only on request.
pub(crate) struct Handle(sys::napi_threadsafe_function);

// SAFETY: Node promises that any thread may call and release it.
unsafe impl Send for Handle {}

impl Handle {
    /// `drain` takes the results.
    fn open(env: &Env, drain: &FunctionRef<(), ()>) -> Option<Self> {
        let drain = drain.borrow_back(env).ok()?;
        let (env, none) = (env.raw(), ptr::null_mut());
        let (mut name, mut handle) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: all of this environment, on its thread. Without a function that calls it, `drain` is called without arguments.
        unsafe {
            let named = sys::napi_create_string_utf8(env, NAME.as_ptr().cast(), NAME.len() as isize, &raw mut name);
            let call = drain.raw();
            let made = |handle| {
                let (resource, no_js) = (ptr::null_mut(), None);
                sys::napi_create_threadsafe_function(env, call, resource, name, 0, 1, none, None, none, no_js, handle)
            };
            if named != sys::Status::napi_ok || made(&raw mut handle) != sys::Status::napi_ok {
                return None;
            }
            sys::napi_unref_threadsafe_function(env, handle);
        }
        Some(Self(handle))
    }

    /// Gives itself back unless the environment ends: Node has taken the handle then, and nobody may use it again.
    fn call(self) -> Option<Self> {
        // SAFETY: nobody has released it, and Node has not taken it.
        let status =
            unsafe { sys::napi_call_threadsafe_function(self.0, ptr::null_mut(), sys::ThreadsafeFunctionCallMode::nonblocking) };
        if status == sys::Status::napi_closing {
            std::mem::forget(self);
            return None;
        }
        Some(self)
    }

    /// Keeps the environment alive, or doesn't. It fails only while the environment ends, when it no longer matters.
    fn keep_alive(&self, env: &Env, wanted: bool) {
        // SAFETY: as above, on the environment's thread.
        unsafe {
            if wanted {
                sys::napi_ref_threadsafe_function(env.raw(), self.0)
            } else {
                sys::napi_unref_threadsafe_function(env.raw(), self.0)
            }
        };
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: once, and Node has not taken it.
        unsafe { sys::napi_release_threadsafe_function(self.0, sys::ThreadsafeFunctionReleaseMode::release) };
    }
}

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

    /// Opens the handle unless it is open; whether it did. It fails only while the environment ends, when it no longer matters.
    pub(crate) fn open(&mut self, env: &Env) -> bool {
        if self.handle.is_some() {
            return false;
        }
        self.handle = Handle::open(env, &self.drain);
        self.kept = false;
        self.handle.is_some()
    }

    /// Lets JavaScript take the results soon. Without a handle it takes them when there is one again.
    pub(crate) fn call(&mut self) {
        self.handle = self.handle.take().and_then(Handle::call);
    }

    /// Keeps the environment alive, or doesn't.
    pub(crate) fn keep_alive(&mut self, env: &Env, wanted: bool) {
        let Some(handle) = self.handle.as_ref().filter(|_| self.kept != wanted) else { return };
        handle.keep_alive(env, wanted);
        self.kept = wanted;
    }

    /// Takes the handle, which closes when it is dropped.
    pub(crate) fn close(&mut self) -> Option<Handle> {
        self.handle.take()
    }
}
