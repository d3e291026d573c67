//! Dates: points in time on their way to JavaScript.

use std::ptr;
use std::time::{SystemTime, UNIX_EPOCH};

use napi::bindgen_prelude::{ToNapiValue, check_status};
use napi_sys as sys;

use crate::error::measured_ms;

/// A point in time, which JavaScript gets as a `Date`.
pub struct Date(pub(crate) SystemTime);

impl ToNapiValue for Date {
    unsafe fn to_napi_value(env: sys::napi_env, at: Self) -> napi::Result<sys::napi_value> {
        let mut date = ptr::null_mut();
        let since_1970 = at.0.duration_since(UNIX_EPOCH).map_or(0.0, measured_ms);
        // SAFETY: the environment is that of the call, on its thread.
        check_status!(unsafe { sys::napi_create_date(env, since_1970, &raw mut date) })?;
        Ok(date)
    }
}
