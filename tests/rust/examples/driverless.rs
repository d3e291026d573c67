//! Locks on tokio runtimes that were built without timers, without I/O, or without both. It is built with `panic = "abort"`, so that any
//! panic ends it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../tests/transport/driverless.rs"]
mod driverless;

use driverless::{DRIVERS, locks, runtime};

fn main() {
    let url = std::env::args().nth(1).unwrap();
    for drivers in DRIVERS {
        runtime(drivers).block_on(locks(&locktender::Client::open(url.as_str()).unwrap(), 20));
    }
}
