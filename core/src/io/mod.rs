//! I/O: threads, timers and the readiness of sockets. This folder knows when something happens; its users know what.

pub(crate) mod call;
pub(crate) mod canceller;
pub(crate) mod drivers;
pub(crate) mod reactor;
pub(crate) mod runtime;
pub(crate) mod thread_waker;
pub(crate) mod timers;
pub(crate) mod watch;
