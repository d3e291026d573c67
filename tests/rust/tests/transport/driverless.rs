//! Runtimes that may have no timers or no I/O: those of programs that use tokio for other things. The example `driverless` has this file, too.

use locktender::Client;
use tokio::runtime::{Builder, Runtime};

/// With I/O and timers, with one of them, and with none.
pub const DRIVERS: [(bool, bool); 4] = [(true, true), (true, false), (false, true), (false, false)];

/// A runtime on this thread, with I/O and timers or without.
pub fn runtime((io, time): (bool, bool)) -> Runtime {
    let mut builder = Builder::new_current_thread();
    if io {
        builder.enable_io();
    }
    if time {
        builder.enable_time();
    }
    builder.build().unwrap()
}

/// Acquires a lock so many times, and releases it.
pub async fn locks(client: &Client, times: usize) {
    for _ in 0..times {
        client.lock("driverless").acquire().await.unwrap().release().await.unwrap();
    }
}
