//! Follow: the acquires that instrumentations follow, as `lib/follow.ts` reports them.

use std::time::SystemTime;

use locktender::host::Follower;
use napi_derive::napi;

use crate::client::CompletionQueue;
use crate::record::Recorded;

#[napi]
impl CompletionQueue {
    /// Follows the next acquire, of this lock, by this number.
    #[napi]
    pub fn follow(&self, number: f64, lock: String) {
        self.queue.follower.lock().begin(number as u64, Some(&lock), SystemTime::now());
    }

    /// The acquire was started.
    #[napi]
    pub fn started(&self, number: f64) {
        self.queue.follower.lock().started(number as u64);
    }

    /// The caller of the acquire got a result, an error with this code and this text, or `left`.
    #[napi]
    pub fn answered(&self, number: f64, failure: Option<(String, String)>, left: bool) -> Vec<Recorded> {
        let mut follower = self.queue.follower.lock();
        follower.answer(number as u64, failure, left, SystemTime::now());
        follower.records.drain(..).map(Recorded::from).collect()
    }

    /// No acquire is followed any more.
    #[napi]
    pub fn unfollow(&self) {
        *self.queue.follower.lock() = Follower::default();
    }
}
