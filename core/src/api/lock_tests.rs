//! Locks as programs use them.

use super::*;
use crate::api::client::Client;

#[test]
fn a_lock_that_is_used_again_prepares_its_keys_once() {
    let client = Client::open("memory://prepared").unwrap();
    let lock = client.lock("nightly");
    drop(lock.acquire());
    let keys = || Arc::as_ptr(&lock.recipe(true, None).unwrap().1.keys);
    let prepared = lock.prepared.get().map(|prepared| Arc::as_ptr(&prepared.as_ref().unwrap().keys));
    assert_eq!(prepared, Some(keys()));
}
