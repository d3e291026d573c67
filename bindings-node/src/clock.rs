//! The clock that users' tests move.

use std::sync::Arc;

use locktender::{host, testing};
use napi::Env;
use napi::bindgen_prelude::Either;
use napi_derive::napi;

use crate::client::CompletionQueue;
use crate::error::{Failure, or_failure};
use crate::item::Value;
use crate::queue::Queue;

/// See `Clock` in lib/clock.ts.
#[napi]
pub struct Clock {
    core: testing::Clock,
    queue: Arc<Queue>,
}

#[napi]
impl CompletionQueue {
    /// Takes the process's clock.
    #[napi]
    pub fn clock(&self) -> Either<Clock, Failure> {
        or_failure(testing::Clock::try_take().map(|core| Clock { core, queue: Arc::clone(&self.queue) }))
    }
}

#[napi]
impl Clock {
    #[napi]
    pub fn advance(&self, env: Env, ms: f64) -> i64 {
        let call = host::milliseconds("ms", ms).map(|span| self.core.advance(span));
        self.queue.call(&env, call, |()| Value::Nothing)
    }

    #[napi]
    pub fn close(&self) {
        self.core.close();
    }
}
