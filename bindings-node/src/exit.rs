//! The exit of a JavaScript environment: what it still has goes back to the servers, within a bound.

use std::sync::Arc;
use std::time::Instant;

use locktender::Client;
use locktender::host::sync::Mutex;
use locktender::host::{EXIT_TIMEOUT, is_open, wait_for_all};

use crate::any_hold::AnyHold;
use crate::queue::Queue;

/// The crash of the main thread: it ends the workers, too, to which nothing else reports it.
static CRASH: Mutex<Option<String>> = Mutex::new(None);

/// The environment exits, by a `crash` or not.
pub(crate) fn exit(queue: &Queue, crash: Option<String>, is_main: bool) {
    let until = Instant::now() + EXIT_TIMEOUT;
    crash.iter().for_each(|crash| fail_attempts(queue, crash, until));
    if is_main {
        *CRASH.lock() = crash;
    }
    close_clients(queue, until);
}

/// The environment is gone, of a worker perhaps without an exit.
pub(crate) fn gone(queue: &Queue) {
    let until = Instant::now() + EXIT_TIMEOUT;
    let crash = CRASH.lock().clone();
    crash.iter().for_each(|crash| fail_attempts(queue, crash, until));
    queue.close();
    close_clients(queue, until);
}

/// Notes that the attempts have failed whose work is under way.
fn fail_attempts(queue: &Queue, crash: &str, until: Instant) {
    let failed = |hold: &Arc<AnyHold>| match &**hold {
        AnyHold::Attempt(attempt) if is_open(attempt) => Some(attempt.fail(crash)),
        _ => None,
    };
    wait_for_all(queue.holds().iter().filter_map(failed).collect(), until);
}

/// Closes every client, which releases held locks, and waits until they are closed.
fn close_clients(queue: &Queue, until: Instant) {
    wait_for_all(queue.take_clients().iter().map(Client::close).collect(), until);
}
