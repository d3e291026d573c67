//! A lock: the recipe for holds.

use std::sync::Arc;

use locktender::Error;
use napi::Env;
use napi::bindgen_prelude::{Either, Object};
use napi_derive::napi;

use crate::client::Client;
use crate::error::Failure;
use crate::item::Value;
use crate::options::{lock_options, permits};
use crate::queue::Queue;

/// See `safeName` in lib/lock.ts.
#[napi]
pub fn safe_name(text: String) -> String {
    locktender::safe_name(&text)
}

/// What a lock is for: the name of the function that makes it.
#[napi(string_enum = "camelCase")]
pub enum LockMaker {
    Lock,
    Semaphore,
    ReadLock,
}

/// A lock of this name, with options that are checked.
fn made(client: &Client, maker: LockMaker, name: String, options: Option<&Object<'_>>) -> Result<locktender::Lock, Error> {
    let lock = match maker {
        LockMaker::Lock => client.core.lock(name),
        LockMaker::Semaphore => client.core.semaphore(name, permits(options)?),
        LockMaker::ReadLock => client.core.read_lock(name),
    };
    checked(lock, options)
}

/// The lock with these options, checked.
pub(crate) fn checked(lock: locktender::Lock, options: Option<&Object<'_>>) -> Result<locktender::Lock, Error> {
    let lock = if let Some(options) = options { lock.settings(lock_options(options)?) } else { lock };
    lock.validate()?;
    Ok(lock)
}

fn held_if_any(hold: Option<locktender::Hold>) -> Value {
    hold.map_or(Value::Nothing, held)
}

fn held(hold: locktender::Hold) -> Value {
    Value::Held(Box::new(hold))
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
        match lock {
            Ok(core) => Either::A(Self { core, queue: Arc::clone(queue) }),
            Err(error) => Either::B(error.into()),
        }
    }

    #[napi(getter)]
    pub fn name(&self) -> &str {
        self.core.name()
    }

    #[napi]
    pub fn acquire(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.acquire()), held)
    }

    #[napi]
    pub fn try_acquire(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.try_acquire()), held_if_any)
    }

    #[napi]
    pub fn inspect(&self, env: Env) -> i64 {
        let info = |info: Option<locktender::LockInfo>| info.map_or(Value::Nothing, |info| Value::Info(Box::new(info)));
        self.queue.call(&env, Ok(self.core.inspect()), info)
    }

    #[napi]
    pub fn force_release(&self, env: Env, owner: Option<String>) -> i64 {
        let info = |info: Option<locktender::LockInfo>| info.map_or(Value::Nothing, |info| Value::Info(Box::new(info)));
        self.queue.call(&env, Ok(self.core.force_release(owner.as_deref())), info)
    }
}

#[napi]
impl Client {
    /// Why there can be no such lock.
    #[napi]
    pub fn refusal(&self, maker: LockMaker, name: String, options: Option<Object<'_>>) -> Option<Failure> {
        made(self, maker, name, options.as_ref()).err().map(Failure::from)
    }

    #[napi]
    pub fn lock(&self, maker: LockMaker, name: String, options: Option<Object<'_>>) -> Either<Lock, Failure> {
        Lock::make(made(self, maker, name, options.as_ref()), &self.queue)
    }

    /// Acquires a lock that is perhaps used for this alone: without an object of its own it costs less.
    #[napi]
    pub fn acquire(&self, env: Env, maker: LockMaker, name: String, options: Option<Object<'_>>) -> i64 {
        let call = made(self, maker, name, options.as_ref()).map(|lock| lock.acquire());
        self.queue.call(&env, call, held)
    }

    /// The same, trying only once.
    #[napi]
    pub fn try_acquire(&self, env: Env, maker: LockMaker, name: String, options: Option<Object<'_>>) -> i64 {
        let call = made(self, maker, name, options.as_ref()).map(|lock| lock.try_acquire());
        self.queue.call(&env, call, held_if_any)
    }
}
