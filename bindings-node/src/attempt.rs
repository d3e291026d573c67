//! Attempts: the functions of an attempt of a job.

use locktender::Attempt;
use locktender::host::milliseconds;
use napi::Env;
use napi_derive::napi;

use crate::any_hold::AnyHold;
use crate::client::CompletionQueue;
use crate::item::Value;

/// The functions that JavaScript calls on an attempt, besides those of a hold: see `Attempt` in lib/job.ts.
#[napi]
impl CompletionQueue {
    #[napi]
    pub fn complete(&self, env: Env, hold: i64, result: Option<String>) -> napi::Result<i64> {
        let hold = self.hold(hold)?;
        Ok(self.queue.call(&env, Ok(attempt(&hold)?.complete(result)), |()| Value::Nothing))
    }

    #[napi]
    pub fn fail(&self, env: Env, hold: i64, error: String, retry: bool, retry_in_ms: Option<f64>) -> napi::Result<i64> {
        let hold = self.hold(hold)?;
        let attempt = attempt(&hold)?;
        let call = match retry_in_ms {
            None if retry => Ok(attempt.fail(error)),
            None => Ok(attempt.fail_permanently(error)),
            Some(span) => milliseconds("retryInMs", span).map(|span| attempt.fail_in(error, span)),
        };
        Ok(self.queue.call(&env, call, |()| Value::Nothing))
    }
}

fn attempt(hold: &AnyHold) -> napi::Result<&Attempt> {
    match hold {
        AnyHold::Attempt(attempt) => Ok(attempt),
        _ => Err(napi::Error::from_reason(format!("the hold of {:?} is no attempt", hold.name()))),
    }
}
