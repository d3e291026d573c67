//! Errors as plain data: `lib/errors.ts` makes the classes.

use std::time::Duration;

use locktender::host::Language;
use locktender::{Error, Remaining};
use napi::bindgen_prelude::Either;
use napi_derive::napi;

use crate::questions::cause;

/// The fields of an error.
#[napi(object, object_from_js = false, use_nullable = true)]
pub struct Failure {
    pub code: String,
    pub message: String,
    pub lock_name: Option<String>,
    pub holder: Option<String>,
    pub remaining_ms: Option<f64>,
    pub rank: Option<f64>,
    pub reason: Option<String>,
    pub next_owner: Option<String>,
    pub next_fence: Option<f64>,
    pub overrun_ms: f64,
    pub attempts: Option<u32>,
    pub last_error: Option<String>,
    pub servers: Vec<ServerFailure>,
    /// The number of the question whose error is behind this one.
    pub cause: Option<f64>,
}

/// The failure of one server.
#[napi(object, object_from_js = false)]
pub struct ServerFailure {
    pub server: String,
    pub kind: String,
    pub message: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (holder, loss) = (error.holder(), error.loss());
        Self {
            code: error.code().as_str().to_owned(),
            message: error.in_words_of(Language::Node),
            lock_name: error.lock_name().map(str::to_owned),
            holder: holder.map(|holder| holder.owner.clone()),
            remaining_ms: holder.map(|holder| remaining_ms(holder.remaining)),
            rank: error.rank().map(|rank| rank as f64),
            reason: loss.map(|loss| loss.reason.as_str().to_owned()),
            next_owner: loss.and_then(|loss| loss.next_owner.clone()),
            next_fence: loss.and_then(|loss| loss.next_fence).map(|fence| fence as f64),
            overrun_ms: loss.map_or(0.0, |loss| ms(loss.overrun)),
            attempts: error.attempts(),
            last_error: error.last_error().map(str::to_owned),
            servers: error.servers().iter().map(ServerFailure::from).collect(),
            cause: cause(&error),
        }
    }
}

/// A value, or its failure as plain data.
pub(crate) fn or_failure<T>(result: Result<T, Error>) -> Either<T, Failure> {
    result.map_or_else(|error| Either::B(error.into()), Either::A)
}

impl From<&locktender::ServerFailure> for ServerFailure {
    fn from(error: &locktender::ServerFailure) -> Self {
        Self { server: error.server.clone(), kind: error.kind.as_str().to_owned(), message: error.message.clone() }
    }
}

/// A time as JavaScript counts it, in whole milliseconds: of seconds as a float 2.97 would be 2969.9999999999995.
pub(crate) fn ms(span: Duration) -> f64 {
    span.as_millis() as f64
}

/// A measured time, which may be shorter than a millisecond.
pub(crate) fn measured_ms(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e3
}

/// The remaining time of a key.
pub(crate) fn remaining_ms(remaining: Remaining) -> f64 {
    match remaining {
        Remaining::For(span) => ms(span),
        Remaining::Forever => f64::INFINITY,
        _ => 0.0,
    }
}
