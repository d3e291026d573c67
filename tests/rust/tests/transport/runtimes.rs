//! The runtime of the caller, which may have no timers or no I/O.

use std::sync::atomic::{AtomicUsize, Ordering};

use locktender::Client;
use locktender_tests::RealServer;

use crate::driverless::{DRIVERS, locks, runtime};

static PANICS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_runtime_without_timers_or_io_is_tried_once_and_left_alone() {
    let server = RealServer::start();
    std::panic::set_hook(Box::new(|_| _ = PANICS.fetch_add(1, Ordering::SeqCst)));
    for (drivers, panics) in DRIVERS.into_iter().zip([0, 1, 1, 1]) {
        let client = Client::open(server.url()).unwrap();
        runtime(drivers).block_on(locks(&client, 20));
        assert_eq!(PANICS.swap(0, Ordering::SeqCst), panics, "{drivers:?}");
        // The caller may know better.
        let client = Client::builder().url(server.url()).callers_runtime(false).build().unwrap();
        runtime(drivers).block_on(locks(&client, 3));
        assert_eq!(PANICS.load(Ordering::SeqCst), 0, "{drivers:?}");
    }
}
