//! A job: the recipe for attempts, and what is known of it.

use std::sync::Arc;

use locktender::Attempt;
use napi::Env;
use napi::bindgen_prelude::{Either, Object};
use napi_derive::napi;

use crate::date::Date;
use crate::error::{Failure, ms, or_failure, remaining_ms};
use crate::item::Value;
use crate::options::with_options;
use crate::queue::Queue;

/// See `Job` in lib/job.ts.
#[napi]
pub struct Job {
    core: locktender::Job,
    queue: Arc<Queue>,
}

#[napi]
impl Job {
    pub(crate) fn make(job: locktender::Job, options: &Object<'_>, queue: &Arc<Queue>) -> Either<Self, Failure> {
        or_failure(with_options(job, options).and_then(|core| {
            core.validate()?;
            Ok(Self { core, queue: Arc::clone(queue) })
        }))
    }

    #[napi]
    pub fn begin(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.begin()), |begun| Value::Begun(Box::new(begun)))
    }

    #[napi]
    pub fn status(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.status()), |status| Value::data(JobStatus::from(status)))
    }

    #[napi]
    pub fn reset(&self, env: Env) -> i64 {
        self.queue.call(&env, Ok(self.core.reset()), Value::data)
    }
}

/// An attempt that has begun.
#[napi(object, object_from_js = false)]
pub(crate) struct BegunAttempt {
    pub hold: f64,
    pub fence: f64,
    pub number: u32,
    pub max_attempts: u32,
    pub is_last: bool,
}

impl BegunAttempt {
    pub(crate) fn new(hold: i64, attempt: &Attempt) -> Self {
        Self {
            hold: hold as f64,
            fence: attempt.fence() as f64,
            number: attempt.number(),
            max_attempts: attempt.max_attempts(),
            is_last: attempt.is_last(),
        }
    }
}

/// The outcome of a job whose work this process didn't run.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct JobOutcome {
    pub ran: bool,
    pub reason: Option<String>,
    pub result: Option<String>,
    pub attempts: u32,
    pub last_error: Option<String>,
}

impl From<locktender::JobOutcome> for JobOutcome {
    fn from(outcome: locktender::JobOutcome) -> Self {
        let locktender::JobOutcome { ran, reason, result, attempts, last_error, .. } = outcome;
        Self { ran, reason: reason.map(|reason| reason.as_str().to_owned()), result, attempts, last_error }
    }
}

/// What is known of a job.
#[napi(object, object_from_js = false, use_nullable = true)]
pub(crate) struct JobStatus {
    pub state: String,
    pub attempts: u32,
    pub max_attempts: Option<u32>,
    pub last_owner: Option<String>,
    pub began_ago_ms: Option<f64>,
    pub remaining_ms: f64,
    pub retry_in_ms: Option<f64>,
    pub last_error: Option<String>,
    pub result: Option<String>,
    pub scheduled_time: Option<Date>,
    pub last_done: Option<Date>,
}

impl From<locktender::JobStatus> for JobStatus {
    fn from(status: locktender::JobStatus) -> Self {
        Self {
            state: status.state.as_str().to_owned(),
            attempts: status.attempts,
            max_attempts: status.max_attempts,
            last_owner: status.last_owner,
            began_ago_ms: status.began_ago.map(ms),
            remaining_ms: remaining_ms(status.remaining),
            retry_in_ms: status.retry_in.map(ms),
            last_error: status.last_error,
            result: status.result,
            scheduled_time: status.scheduled_time.map(Date),
            last_done: status.last_done.map(Date),
        }
    }
}
