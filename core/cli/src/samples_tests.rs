//! Samples: what a server shows, with other values, for the tests of this crate.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use locktender::{Client, Grant, HoldState, LockInfo, OwnerFields, Remaining};

/// A lock that is held, and the hold in the history.
fn shown() -> (LockInfo, Grant) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let client = Client::open(format!("memory://samples-{}", COUNT.fetch_add(1, Ordering::Relaxed))).unwrap();
    let held = client.lock("sample").acquire_blocking().unwrap();
    held.extend_blocking(Duration::from_secs(60)).unwrap();
    let (lock, grants) = (client.lock("sample").inspect_blocking(), client.history_blocking(None, 1));
    (lock.unwrap().unwrap(), grants.unwrap().remove(0))
}

/// A held lock.
pub(crate) fn lock_info(name: &str, owner: &str, fence: u64, remaining: Remaining, queue: &[&str]) -> LockInfo {
    let (mut lock, _) = shown();
    (lock.name, lock.owner, lock.fields) = (name.to_owned(), owner.to_owned(), OwnerFields::parse(owner));
    lock.holders = vec![owner.to_owned()];
    (lock.fence, lock.remaining) = (Some(fence), remaining);
    (lock.waiters, lock.queue) = (queue.len() as u64, queue.iter().copied().map(str::to_owned).collect());
    lock
}

/// A hold of the history, with its times in milliseconds.
pub(crate) fn grant(name: &str, owner: &str, fence: u64, (began, ended): (u64, Option<u64>), state: HoldState) -> Grant {
    let at = |ms| UNIX_EPOCH + Duration::from_millis(ms);
    let (_, mut grant) = shown();
    (grant.name, grant.owner, grant.fields) = (name.to_owned(), owner.to_owned(), OwnerFields::parse(owner));
    (grant.fence, grant.began, grant.ended, grant.state) = (fence, at(began), ended.map(at), state);
    grant
}
