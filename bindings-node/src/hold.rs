//! Held locks: the functions of a hold, the result of a release, and the result of an inspection.

use std::sync::Arc;

use locktender::host::milliseconds;
use locktender::{Error, Loss};
use napi::Env;
use napi::bindgen_prelude::Either;
use napi_derive::napi;

use crate::any_hold::AnyHold;
use crate::client::CompletionQueue;
use crate::error::{Failure, ms, or_failure};
use crate::item::Value;

/// The failure of a call on a hold that was freed.
#[napi]
pub fn released(lock_name: String) -> Failure {
    Error::released(&lock_name).into()
}

/// The functions that JavaScript calls on a hold: see `Hold` in lib/hold.ts. A hold is identified by the number of the call that
/// got it. This costs less than an object that both sides share.
#[napi]
impl CompletionQueue {
    pub(crate) fn hold(&self, hold: i64) -> napi::Result<Arc<AnyHold>> {
        self.queue.hold(hold).ok_or_else(|| napi::Error::from_reason(format!("there is no hold {hold}")))
    }

    #[napi]
    pub fn owner(&self, hold: i64) -> napi::Result<String> {
        Ok(self.hold(hold)?.owner().to_owned())
    }

    /// The fences of a hold of several locks, in the order of their names.
    #[napi]
    pub fn fences(&self, hold: i64) -> napi::Result<Vec<f64>> {
        Ok(self.hold(hold)?.fences().into_iter().map(|(_, fence)| fence as f64).collect())
    }

    #[napi]
    pub fn remaining_ms(&self, hold: i64) -> napi::Result<f64> {
        Ok(ms(self.hold(hold)?.remaining()))
    }

    #[napi]
    pub fn is_valid(&self, hold: i64) -> napi::Result<bool> {
        Ok(self.hold(hold)?.is_valid())
    }

    #[napi]
    pub fn check_hold(&self, hold: i64) -> napi::Result<Option<Failure>> {
        Ok(self.hold(hold)?.check().err().map(Failure::from))
    }

    #[napi]
    pub fn extend(&self, env: Env, hold: i64, ttl_ms: Option<f64>, by_ms: Option<f64>) -> napi::Result<i64> {
        let held = self.hold(hold)?;
        let call = match (ttl_ms, by_ms) {
            (None, None) => Ok(held.renew_now()),
            (Some(ttl), _) => milliseconds("ttlMs", ttl).map(|ttl| held.extend(ttl)),
            (None, Some(by)) => milliseconds("byMs", by).map(|by| held.extend_by(by)),
        };
        Ok(self.queue.call(&env, call, |()| Value::Nothing))
    }

    #[napi]
    pub fn release(&self, env: Env, hold: i64) -> napi::Result<i64> {
        Ok(self.queue.call(&env, Ok(self.hold(hold)?.release()), Value::Released))
    }

    /// Ends a body.
    #[napi]
    pub fn leave(&self, env: Env, hold: i64) -> napi::Result<i64> {
        Ok(self.queue.call(&env, Ok(self.hold(hold)?.leave()), |()| Value::Nothing))
    }

    /// Ends the body of an `await using`.
    #[napi]
    pub fn dispose(&self, env: Env, hold: i64) -> napi::Result<i64> {
        Ok(self.queue.call(&env, Ok(self.hold(hold)?.dispose()), |()| Value::Nothing))
    }

    /// Whether the program has learnt that the lock is not held.
    #[napi]
    pub fn holder_knows(&self, hold: i64) -> napi::Result<bool> {
        Ok(self.hold(hold)?.holder_knows())
    }

    #[napi]
    pub fn hand_over(&self, hold: i64) -> napi::Result<Either<String, Failure>> {
        Ok(or_failure(self.hold(hold)?.hand_over()))
    }

    /// Makes a reader's hold of a writer's, under the number of this call.
    #[napi]
    pub fn downgrade(&self, env: Env, hold: i64) -> napi::Result<i64> {
        Ok(self.queue.call(&env, Ok(self.hold(hold)?.downgrade()), |hold| Value::held(Some(hold))))
    }

    /// Asks for the end of the hold as a result, under the hold's number.
    #[napi]
    pub fn watch(&self, env: Env, hold: i64) -> napi::Result<()> {
        let held = self.hold(hold)?;
        self.queue.watch(&env, hold, &held);
        Ok(())
    }

    /// Settles with the end of the hold: a loss, or nothing. Until then it keeps the environment alive.
    #[napi]
    pub fn await_end(&self, env: Env, hold: i64) -> napi::Result<i64> {
        let ended = |lost: Option<(String, Loss)>| Value::data(lost.map(|(name, loss)| Failure::from(Error::lost(&name, loss))));
        Ok(self.queue.call(&env, Ok(self.hold(hold)?.ended_of()), ended))
    }

    /// Frees a hold that was released, and gives its owner value. Gives nothing, and frees nothing, if a later call may still have
    /// something to report.
    #[napi]
    pub fn free(&self, hold: i64) -> Option<String> {
        self.queue.forget_released(hold).map(|held| held.owner().to_owned())
    }

    /// The hold was garbage-collected. The work may still be running, so the lock isn't released. The core warns if it was held.
    #[napi]
    pub fn abandon(&self, hold: i64) {
        if let Some(held) = self.queue.forget_hold(hold) {
            held.abandon();
        }
    }
}
