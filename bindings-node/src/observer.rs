//! An observer of an election, and what it sees.

use std::sync::Arc;

use napi::Env;
use napi_derive::napi;

use crate::date::Date;
use crate::error::remaining_ms;
use crate::item::Value;
use crate::queue::Queue;

/// See `Election.observe` in lib/election.ts.
#[napi]
pub struct Observer {
    pub(crate) core: locktender::Observer,
    pub(crate) queue: Arc<Queue>,
}

#[napi]
impl Observer {
    #[napi]
    pub fn next(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.observe()), |seen| Value::data(Observation::from(seen)))
    }
}

/// What an observer saw.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct Observation {
    pub leader: Option<Leader>,
    pub unknown: bool,
}

/// The leader that an observer saw.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct Leader {
    pub owner: String,
    pub term: f64,
    pub since: Option<Date>,
    pub remaining_ms: f64,
}

impl From<locktender::Observation> for Observation {
    fn from(seen: locktender::Observation) -> Self {
        let leader = |leader: locktender::Leader| Leader {
            owner: leader.owner,
            term: leader.term as f64,
            since: leader.since.map(Date),
            remaining_ms: remaining_ms(leader.remaining),
        };
        Self { leader: seen.leader.map(leader), unknown: seen.unknown }
    }
}
