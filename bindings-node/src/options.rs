//! Options: options from JavaScript. A missing option keeps the core's default, and the core checks a given one.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use locktender::host::{Language, LockOverrides, Place, milliseconds, suspicious};
use locktender::{Error, Overlap, Wait};
use napi_derive::napi;

/// The call that got an option.
#[napi(string_enum = "lowercase")]
pub enum OptionPlace {
    Client,
    Lock,
    Acquire,
    Job,
    Once,
    Begin,
    Fail,
    Election,
    Campaign,
}

/// The answer for the unknown option `name`.
#[napi]
pub fn instead_of(name: String, place: OptionPlace) -> String {
    let place = match place {
        OptionPlace::Client => Place::Client,
        OptionPlace::Lock => Place::Lock,
        OptionPlace::Acquire => Place::Acquire,
        OptionPlace::Job => Place::Job,
        OptionPlace::Once => Place::Once,
        OptionPlace::Begin => Place::Begin,
        OptionPlace::Fail => Place::Fail,
        OptionPlace::Election => Place::Election,
        OptionPlace::Campaign => Place::Campaign,
    };
    locktender::host::instead_of(&name, place, Language::Node).in_words_of(Language::Node)
}

/// The answer for a call of a method `name` of another library.
#[napi]
pub fn instead_of_member(name: String) -> String {
    locktender::host::instead_of_member(&name).unwrap_or_default().in_words_of(Language::Node)
}

/// The sentence about a ttl that was probably meant in another unit.
#[napi(ts_return_type = "string | null")]
pub fn suspicious_ttl(ms: f64) -> Option<String> {
    suspicious(milliseconds("ttlMs", ms).ok()?, Language::Node)
}

/// A class of options with those of a lock behind its own. JavaScript's objects don't contain others.
macro_rules! with_lock_options {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$of:meta])* pub $option:ident: Option<$kind:ident>,)* }) => {
        $(#[$meta])*
        #[napi(object, object_to_js = false)]
        pub struct $name {
            $($(#[$of])* pub $option: Option<$kind>,)*
            pub ttl_ms: Option<f64>,
            pub wait_ms: Option<f64>,
            pub renew: Option<bool>,
            pub max_hold_ms: Option<f64>,
            pub fair: Option<bool>,
            pub min_hold_ms: Option<f64>,
            pub grace_ms: Option<f64>,
            pub family: Option<String>,
        }

        impl $name {
            /// Those of the lock.
            pub(crate) fn settings(&self) -> Result<LockOverrides, Error> {
                let mut settings = LockOverrides::default();
                settings.ttl = self.ttl_ms.map(|ttl| milliseconds("ttlMs", ttl)).transpose()?;
                settings.wait = self.wait_ms.map(wait).transpose()?;
                settings.renew = self.renew;
                settings.max_hold = self.max_hold_ms.map(max_hold).transpose()?;
                settings.fair = self.fair;
                settings.min_hold = self.min_hold_ms.map(|span| milliseconds("minHoldMs", span)).transpose()?;
                settings.grace = self.grace_ms.map(|span| milliseconds("graceMs", span)).transpose()?;
                settings.family = self.family.as_deref().map(|family| Some(family.into()));
                Ok(settings)
            }
        }
    };
}

with_lock_options! {
    /// Options of a lock.
    pub struct LockOptions {}
}

fn wait(ms: f64) -> Result<Wait, Error> {
    if ms == f64::INFINITY { Ok(Wait::Forever) } else { milliseconds("waitMs", ms).map(Wait::For) }
}

fn max_hold(ms: f64) -> Result<Option<Duration>, Error> {
    if ms == f64::INFINITY { Ok(None) } else { milliseconds("maxHoldMs", ms).map(Some) }
}

with_lock_options! {
    /// Options of a job, and of its lock.
    pub struct JobOptions {
        pub max_attempts: Option<f64>,
        pub retry_delay_ms: Option<f64>,
        pub keep_ms: Option<f64>,
        pub at: Option<f64>,
        pub every_ms: Option<f64>,
        pub late_ms: Option<f64>,
        pub overlap: Option<String>,
    }
}

impl JobOptions {
    /// The job with these options.
    pub(crate) fn over(&self, mut job: locktender::Job) -> Result<locktender::Job, Error> {
        if let Some(attempts) = self.max_attempts {
            // A whole number. One that is too large becomes the largest, which the core refuses, too.
            job = job.max_attempts(attempts as u32);
        }
        if let Some(delay) = self.retry_delay_ms {
            job = job.retry_delay(milliseconds("retryDelayMs", delay)?);
        }
        if let Some(keep) = self.keep_ms {
            job = job.keep(milliseconds("keepMs", keep)?);
        }
        if let Some(at) = self.at {
            job = job.at(fire_time(at)?);
        }
        if let Some(every) = self.every_ms {
            job = job.every(milliseconds("everyMs", every)?);
        }
        if let Some(late) = self.late_ms {
            job = job.late(milliseconds("lateMs", late)?);
        }
        job = match self.overlap.as_deref() {
            None => job,
            Some("skip") => job.overlap(Overlap::Skip),
            Some("wait") => job.overlap(Overlap::Wait),
            Some(other) => return Err(Error::invalid("overlap", other, "must be 'skip' or 'wait'".to_owned())),
        };
        Ok(job.settings(self.settings()?))
    }
}

/// A time as JavaScript has it: milliseconds since 1970.
fn fire_time(ms: f64) -> Result<SystemTime, Error> {
    let micros = (ms * 1e3).round();
    let time = (0.0..1e18).contains(&micros).then(|| UNIX_EPOCH + Duration::from_micros(micros as u64));
    time.ok_or_else(|| Error::invalid("at", ms, "must be a Date, or milliseconds since 1970".to_owned()))
}

/// Reachable addresses, by the announced ones.
type AddressMap = HashMap<String, String>;

with_lock_options! {
    /// Options of a client, and defaults for its locks.
    pub struct ClientOptions {
        pub prefix: Option<String>,
        pub app: Option<String>,
        pub connect_timeout_ms: Option<f64>,
        pub response_timeout_ms: Option<f64>,
        pub unavailable_after_ms: Option<f64>,
        pub max_ttl_ms: Option<f64>,
        pub failover: Option<String>,
        pub replicas: Option<f64>,
        pub replicas_timeout_ms: Option<f64>,
        pub tls_ca: Option<String>,
        pub tls_cert: Option<String>,
        pub tls_key: Option<String>,
        pub tls_name: Option<String>,
        #[napi(ts_type = "Record<string, string>")]
        pub address_map: Option<AddressMap>,
        pub history: Option<bool>,
    }
}

impl ClientOptions {
    /// These options over the core's defaults.
    pub(crate) fn over(self, mut base: locktender::ClientOptions) -> Result<locktender::ClientOptions, Error> {
        let lock = self.settings()?.over(&base.lock)?;
        set_time(&mut base.connect_timeout, "connectTimeoutMs", self.connect_timeout_ms)?;
        set_time(&mut base.unavailable_after, "unavailableAfterMs", self.unavailable_after_ms)?;
        set_time(&mut base.max_ttl, "maxTtlMs", self.max_ttl_ms)?;
        set_time(&mut base.replicas_timeout, "replicasTimeoutMs", self.replicas_timeout_ms)?;
        // A whole number. One that is too large becomes the largest, which the core refuses, too.
        base.replicas = self.replicas.map_or(base.replicas, |replicas| replicas as u32);
        if let Some(span) = self.response_timeout_ms {
            base.response_timeout = Some(milliseconds("responseTimeoutMs", span)?);
        }
        if let Some(name) = &self.failover {
            base.failover = locktender::Failover::named(name)?;
        }
        base.prefix = self.prefix.unwrap_or(base.prefix);
        base.app = self.app.or(base.app);
        (base.tls_ca, base.tls_cert, base.tls_key) = (self.tls_ca, self.tls_cert, self.tls_key);
        base.tls_name = self.tls_name;
        base.address_map = self.address_map.into_iter().flatten().collect();
        base.history = self.history.unwrap_or(base.history);
        base.lock = lock;
        Ok(base)
    }
}

fn set_time(option: &mut std::time::Duration, name: &str, given: Option<f64>) -> Result<(), Error> {
    if let Some(span) = given {
        *option = milliseconds(name, span)?;
    }
    Ok(())
}
