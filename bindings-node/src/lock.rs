//! A lock: the recipe for holds.

use std::sync::Arc;

use locktender::Error;
use napi::Env;
use napi::bindgen_prelude::{Either, Object};
use napi_derive::napi;

use crate::error::{Failure, or_failure};
use crate::item::Value;
use crate::options::lock_options;
use crate::queue::Queue;
use crate::results::LockInfo;

/// See `safeName` in lib/lock.ts.
#[napi]
pub fn safe_name(text: String) -> String {
    locktender::safe_name(&text)
}

/// The lock with these options, checked.
pub(crate) fn checked(lock: locktender::Lock, options: Option<&Object<'_>>) -> Result<locktender::Lock, Error> {
    let lock = if let Some(options) = options { lock.settings(lock_options(options)?) } else { lock };
    lock.validate()?;
    Ok(lock)
}

/// See `Lock` in lib/lock.ts.
#[napi]
pub struct Lock {
    core: locktender::Lock,
    queue: Arc<Queue>,
}

#[napi]
impl Lock {
    pub(crate) fn make(lock: Result<locktender::Lock, Error>, queue: &Arc<Queue>) -> Either<Self, Failure> {
        or_failure(lock.map(|core| Self { core, queue: Arc::clone(queue) }))
    }

    #[napi(getter)]
    pub fn name(&self) -> &str {
        self.core.name()
    }

    #[napi]
    pub fn acquire(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.acquire()), |hold| Value::held(Some(hold)))
    }

    #[napi]
    pub fn try_acquire(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.try_acquire()), Value::held)
    }

    #[napi]
    pub fn inspect(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.inspect()), |found| Value::data(found.map(LockInfo::from)))
    }

    #[napi]
    pub fn force_release(&self, env: Env, owner: Option<String>) -> i64 {
        self.queue.call(&env, Ok(self.core.force_release(owner.as_deref())), |ended| Value::data(ended.map(LockInfo::from)))
    }
}
