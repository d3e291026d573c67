//! A held lock, and what its release and an inspection find.

use std::sync::Arc;

use locktender::Error;
use locktender::options::milliseconds;
use napi::Env;
use napi::bindgen_prelude::Either;
use napi_derive::napi;

use crate::error::{Failure, ms, remaining_ms};
use crate::queue::{Item, Queue, Value};

/// See `Held` in lib/held.ts.
#[napi]
pub struct Held {
    core: Arc<locktender::Held>,
    queue: Arc<Queue>,
}

#[napi]
impl Held {
    pub(crate) fn new(core: locktender::Held, queue: &Arc<Queue>) -> Self {
        Self { core: Arc::new(core), queue: Arc::clone(queue) }
    }

    #[napi(getter)]
    pub fn name(&self) -> &str {
        self.core.name()
    }

    #[napi(getter)]
    pub fn owner(&self) -> &str {
        self.core.owner()
    }

    /// Microseconds since the epoch at most: exact in a number until 2255.
    #[napi(getter)]
    pub fn fence(&self) -> f64 {
        self.core.fence() as f64
    }

    #[napi]
    pub fn remaining_ms(&self) -> f64 {
        ms(self.core.remaining())
    }

    #[napi]
    pub fn is_valid(&self) -> bool {
        self.core.is_valid()
    }

    #[napi]
    pub fn check(&self) -> Option<Failure> {
        self.core.check().err().map(Failure::from)
    }

    #[napi]
    pub fn extend(&self, env: Env, ttl_ms: Option<f64>) -> i64 {
        let call = match ttl_ms {
            None => Ok(self.core.extend_again()),
            Some(ttl) => milliseconds("ttlMs", ttl).map(|ttl| self.core.extend(ttl)),
        };
        self.queue.call(&env, call, |()| Value::Nothing)
    }

    #[napi]
    pub fn extend_by(&self, env: Env, ms: f64) -> i64 {
        let call = milliseconds("ms", ms).map(|more| self.core.extend_by(more));
        self.queue.call(&env, call, |()| Value::Nothing)
    }

    #[napi]
    pub fn release(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.release()), Value::Released)
    }

    /// Ends a body.
    #[napi]
    pub fn leave(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.leave()), |()| Value::Nothing)
    }

    #[napi]
    pub fn hand_over(&self) -> Either<String, Failure> {
        match self.core.hand_over() {
            Ok(ticket) => Either::A(ticket),
            Err(error) => Either::B(error.into()),
        }
    }

    /// Has the end of the hold come out of the queue, under the number it gives.
    #[napi]
    pub fn watch(&self) -> i64 {
        let (id, queue, name) = (self.queue.next_id(), Arc::clone(&self.queue), self.core.name().to_owned());
        let loss = move |loss| Error::lost(&name, loss);
        self.core.ended().then(move |ended| queue.push(Item::Ended(id, ended.ok().flatten().map(loss))));
        id
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Garbage-collected. The work may still be running, so the lock isn't given back; the core warns if it was held.
        // By the queue, because Node also looks for the garbage of a worker that was terminated: its locks are given back.
        if self.core.is_valid() {
            self.queue.push(Item::Garbage(Arc::clone(&self.core)));
        } else {
            self.core.abandon();
        }
    }
}

/// What a release found.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct Release {
    pub outcome: String,
    pub rival: Option<String>,
    pub overrun_ms: f64,
}

impl From<locktender::Release> for Release {
    fn from(release: locktender::Release) -> Self {
        let locktender::Release { outcome, rival, overrun, .. } = release;
        Self { outcome: outcome.as_str().to_owned(), rival, overrun_ms: ms(overrun) }
    }
}

/// What an inspection found.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct LockInfo {
    pub owner: String,
    pub fields: Option<OwnerFields>,
    pub remaining_ms: Option<f64>,
    pub fence: f64,
    pub waiters: f64,
    pub queue: Vec<String>,
}

/// The fields of an owner value.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct OwnerFields {
    pub app: Option<String>,
    pub host: Option<String>,
    pub pid: Option<u32>,
    pub at: Option<String>,
    pub id: Option<String>,
}

impl From<locktender::LockInfo> for LockInfo {
    fn from(info: locktender::LockInfo) -> Self {
        let fields = |fields: locktender::OwnerFields| {
            let locktender::OwnerFields { app, host, pid, at, id, .. } = fields;
            OwnerFields { app, host, pid, at, id }
        };
        Self {
            fields: info.fields.map(fields),
            remaining_ms: remaining_ms(info.remaining),
            fence: info.fence as f64,
            waiters: info.waiters as f64,
            queue: info.queue,
            owner: info.owner,
        }
    }
}
