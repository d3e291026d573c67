//! Maker: locks by their kind, name and options.

use locktender::Error;
use napi::Env;
use napi::bindgen_prelude::{Either, Object};
use napi_derive::napi;

use crate::client::Client;
use crate::error::Failure;
use crate::item::Value;
use crate::lock::{Lock, checked};
use crate::options::permits;

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
        self.queue.call(&env, call, |hold| Value::held(Some(hold)))
    }

    /// The same, trying only once.
    #[napi]
    pub fn try_acquire(&self, env: Env, maker: LockMaker, name: String, options: Option<Object<'_>>) -> i64 {
        let call = made(self, maker, name, options.as_ref()).map(|lock| lock.try_acquire());
        self.queue.call(&env, call, Value::held)
    }
}
