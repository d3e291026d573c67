//! Locks as programs use them.

use super::*;
use crate::api::client::Client;

#[test]
fn a_lock_that_is_used_again_prepares_its_keys_once() {
    let client = Client::open("memory://prepared").unwrap();
    let lock = client.lock("nightly");
    let keys = |lock: &Lock| Arc::as_ptr(&lock.recipe(true, None).unwrap().1.keys);
    let prepared = keys(&lock.clone());
    assert_eq!([keys(&lock), keys(&lock.clone())], [prepared; 2], "also by a clone, as each acquire has one");
}
