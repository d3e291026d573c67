//! An election: the recipe for terms of a leader.

use std::sync::Arc;

use locktender::host;
use napi::Env;
use napi::bindgen_prelude::{Either, Object};
use napi_derive::napi;

use crate::error::{Failure, or_failure};
use crate::item::Value;
use crate::observer::Observer;
use crate::options::lock_options;
use crate::queue::Queue;

/// See `Election` in lib/election.ts.
#[napi]
pub struct Election {
    core: locktender::Election,
    queue: Arc<Queue>,
}

#[napi]
impl Election {
    pub(crate) fn make(election: locktender::Election, options: &Object<'_>, queue: &Arc<Queue>) -> Either<Self, Failure> {
        or_failure(lock_options(options).and_then(|settings| {
            let core = election.settings(settings);
            core.validate()?;
            Ok(Self { core, queue: Arc::clone(queue) })
        }))
    }

    #[napi]
    pub fn campaign(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.campaign()), |leadership| Value::led(Some(leadership)))
    }

    #[napi]
    pub fn try_campaign(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.try_campaign()), Value::led)
    }

    #[napi]
    pub fn observe(&self) -> Observer {
        Observer { core: self.core.observe(), queue: Arc::clone(&self.queue) }
    }

    /// Begins to lead, unless another call leads by this election.
    #[napi]
    pub fn leading(&self) -> Either<Leading, Failure> {
        or_failure(self.core.leading().map(|core| Leading { core: Some(core), queue: Arc::clone(&self.queue) }))
    }
}

/// One call of `lead`: it asks for one term after the other.
#[napi]
pub struct Leading {
    core: Option<host::Leading>,
    queue: Arc<Queue>,
}

#[napi]
impl Leading {
    /// Campaigns for the next term.
    #[napi]
    pub fn next(&self, env: Env) -> napi::Result<i64> {
        let ended = || napi::Error::from_reason("this call of lead has ended");
        let call = self.core.as_ref().map(host::Leading::next).ok_or_else(ended)?;
        Ok(self.queue.call(&env, Ok(call), Value::led))
    }

    /// Lets another call lead.
    #[napi]
    pub fn end(&mut self) {
        self.core = None;
    }
}
