//! Threads, timers and the readiness of sockets: when something happens, never what.

pub(crate) mod reactor;
pub(crate) mod runtime;
pub(crate) mod thread_waker;
pub(crate) mod timers;
pub(crate) mod watch;
