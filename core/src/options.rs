//! Options: plain data, every default in one place, validated here for all languages.

mod unknown;

use std::fmt;
use std::time::Duration;

use crate::clock::millis;
use crate::error::Error;
use crate::name::check_prefix;

pub use unknown::{Place, instead_of};

/// The shortest ttl that can be kept: below it, drift and one round trip leave nothing.
pub const MIN_TTL: Duration = Duration::from_millis(10);

/// The longest ttl: a lock's fence is kept for a day after its last use, so a key must not outlive it.
pub const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// The longest of all other times.
const MAX_SPAN: Duration = Duration::from_secs(366 * 24 * 3600);

/// The longest text option, in UTF-8 bytes.
const MAX_APP_BYTES: usize = 256;

/// How long an acquire waits for a busy lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// At most this long; zero is one attempt.
    For(Duration),
    /// Until the lock is free.
    Forever,
}

impl From<Duration> for Wait {
    fn from(span: Duration) -> Self {
        Self::For(span)
    }
}

/// What a lock does, with every option set. [`LockOptions::default`] is where the defaults are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockOptions {
    /// How long the key lives without a renewal. Default 10 s.
    pub ttl: Duration,
    /// How long an acquire waits. Default [`Wait::Forever`]; `try_acquire` ignores it.
    pub wait: Wait,
    /// Whether the core renews the hold in the background, first at a third of the ttl. Default true.
    pub renew: bool,
    /// The longest a hold lasts, counted from the grant, whatever renews or extends it. Default none.
    pub max_hold: Option<Duration>,
    /// Whether to queue by principle: strictly first come, first served among all that do, in every process. Default false:
    /// a newcomer may be faster than a waiter, though nobody starves. Not on a quorum, whose servers can't agree on who is
    /// first.
    pub fair: bool,
}

impl Default for LockOptions {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(10), wait: Wait::Forever, renew: true, max_hold: None, fair: false }
    }
}

/// The options a user gave for one lock; what is `None` comes from the client's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockSettings {
    /// See [`LockOptions::ttl`].
    pub ttl: Option<Duration>,
    /// See [`LockOptions::wait`].
    pub wait: Option<Wait>,
    /// See [`LockOptions::renew`].
    pub renew: Option<bool>,
    /// See [`LockOptions::max_hold`]; `Some(None)` takes a client's default back.
    pub max_hold: Option<Option<Duration>>,
    /// See [`LockOptions::fair`].
    pub fair: Option<bool>,
}

impl LockSettings {
    /// These settings, and `others` where nothing is given.
    pub(crate) fn or(self, others: &Self) -> Self {
        Self {
            ttl: self.ttl.or(others.ttl),
            wait: self.wait.or(others.wait),
            renew: self.renew.or(others.renew),
            max_hold: self.max_hold.or(others.max_hold),
            fair: self.fair.or(others.fair),
        }
    }

    /// These settings over `base`, checked.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the option and what was given.
    pub fn over(&self, base: &LockOptions) -> Result<LockOptions, Error> {
        let merged = LockOptions {
            ttl: self.ttl.unwrap_or(base.ttl),
            wait: self.wait.unwrap_or(base.wait),
            renew: self.renew.unwrap_or(base.renew),
            max_hold: self.max_hold.unwrap_or(base.max_hold),
            fair: self.fair.unwrap_or(base.fair),
        };
        merged.check()?;
        Ok(merged)
    }
}

impl LockOptions {
    fn check(&self) -> Result<(), Error> {
        check_ttl("ttl", self.ttl)?;
        if let Wait::For(span) = self.wait {
            check_span("wait", span)?;
        }
        if let Some(span) = self.max_hold {
            if span < MIN_TTL {
                return Err(Error::invalid("max_hold", Ms(span), format!("must be at least {} ms", MIN_TTL.as_millis())));
            }
            check_span("max_hold", span)?;
        }
        Ok(())
    }
}

/// What a client does, with every option set. [`ClientOptions::default`] is where the defaults are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Stands before every lock's name. Default empty.
    pub prefix: String,
    /// The application, shown in owner values. Default: the environment's `LOCKTENDER_APP`, else none.
    pub app: Option<String>,
    /// How long a connection may take. Default 1 s.
    pub connect_timeout: Duration,
    /// How long an answer may take. Default 1 s; 200 ms with more than one server.
    pub response_timeout: Option<Duration>,
    /// How long an operation keeps trying while no majority can be reached, without the time in which this process stands still.
    /// Default 5 s.
    pub unavailable_after: Duration,
    /// On a quorum, the longest a hold may remain: how long a server that lost its data must not vote. Default 60 s.
    pub max_ttl: Duration,
    /// A PEM file with the authorities to trust instead of the system's. Default none.
    pub tls_ca: Option<String>,
    /// A PEM file with the client's certificate. Default none.
    pub tls_cert: Option<String>,
    /// A PEM file with the client certificate's key. Default none.
    pub tls_key: Option<String>,
    /// Defaults for this client's locks.
    pub lock: LockOptions,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            app: None,
            connect_timeout: Duration::from_secs(1),
            response_timeout: None,
            unavailable_after: Duration::from_secs(5),
            max_ttl: Duration::from_secs(60),
            tls_ca: None,
            tls_cert: None,
            tls_key: None,
            lock: LockOptions::default(),
        }
    }
}

impl ClientOptions {
    /// The response timeout for a client of `servers` servers.
    #[must_use]
    pub fn response_timeout_for(&self, servers: usize) -> Duration {
        let default = if servers > 1 { Duration::from_millis(200) } else { Duration::from_secs(1) };
        self.response_timeout.unwrap_or(default)
    }

    /// The application, from the option or the environment.
    pub(crate) fn app_name(&self) -> Option<String> {
        self.app.clone().or_else(|| std::env::var("LOCKTENDER_APP").ok())
    }

    /// Checks every option.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the option and what was given.
    pub fn check(&self) -> Result<(), Error> {
        check_prefix(&self.prefix)?;
        if let Some(app) = self.app_name().filter(|app| app.len() > MAX_APP_BYTES || app.contains('\0')) {
            return Err(Error::invalid("app", app, format!("at most {MAX_APP_BYTES} UTF-8 bytes without NUL")));
        }
        for (option, span) in [
            ("connect_timeout", Some(self.connect_timeout)),
            ("response_timeout", self.response_timeout),
            ("unavailable_after", Some(self.unavailable_after)),
        ] {
            if let Some(span) = span {
                check_span(option, span)?;
                if span < Duration::from_millis(1) {
                    return Err(Error::invalid(option, Ms(span), "must be at least 1 ms".into()));
                }
            }
        }
        check_ttl("max_ttl", self.max_ttl)?;
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            let alone = self.tls_cert.as_ref().or(self.tls_key.as_ref()).map_or("", String::as_str);
            return Err(Error::invalid("tls_cert", alone, "tls_cert and tls_key go together".into()));
        }
        self.lock.check()
    }
}

/// A time as messages show it.
pub(crate) struct Ms(pub(crate) Duration);

impl fmt::Debug for Ms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0.as_secs_f64() * 1e3)
    }
}

/// Refuses a ttl that can't be kept, or is absurd.
pub(crate) fn check_ttl(option: &str, ttl: Duration) -> Result<(), Error> {
    if ttl < MIN_TTL || ttl > MAX_TTL {
        let why = format!("must be between {} ms and {} h", MIN_TTL.as_millis(), MAX_TTL.as_secs() / 3600);
        return Err(Error::invalid(option, Ms(ttl), why));
    }
    Ok(())
}

fn check_span(option: &str, span: Duration) -> Result<(), Error> {
    if span > MAX_SPAN {
        return Err(Error::invalid(option, Ms(span), format!("must be at most {} days", MAX_SPAN.as_secs() / 86_400)));
    }
    Ok(())
}

/// A time given as a number of seconds (Python).
///
/// # Errors
/// `INVALID_ARGUMENT` for NaN, infinite, negative and absurd values.
pub fn seconds(option: &str, value: f64) -> Result<Duration, Error> {
    number(option, value, "seconds", 1.0)
}

/// A time given as a number of milliseconds (Node).
///
/// # Errors
/// `INVALID_ARGUMENT` for NaN, infinite, negative and absurd values.
pub fn milliseconds(option: &str, value: f64) -> Result<Duration, Error> {
    number(option, value, "milliseconds", 1_000.0)
}

fn number(option: &str, value: f64, unit: &str, per_second: f64) -> Result<Duration, Error> {
    let refuse = |why: String| Err(Error::invalid(option, value, why));
    if value.is_nan() || value < 0.0 {
        return refuse(format!("must be a number of {unit}, zero or more"));
    }
    if value / per_second > MAX_SPAN.as_secs_f64() {
        return refuse(format!("must be at most {} days", MAX_SPAN.as_secs() / 86_400));
    }
    // Microseconds: what clocks here count in. Rounding keeps 0.1 s from becoming 99 ms.
    Ok(Duration::from_micros((value / per_second * 1e6).round() as u64))
}

/// The unit in which a language takes times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Python.
    Seconds,
    /// Node.
    Milliseconds,
}

/// A ttl that was probably meant in the other unit, as one sentence; `None` for any other.
///
/// Thousands of seconds without a rest (`ttl=10000`) were milliseconds, and less than a tenth of a second (`ttlMs: 10`) were
/// seconds. An hour, or any other time that people think of in seconds, is no multiple of a thousand.
#[must_use]
pub fn suspicious(ttl: Duration, unit: Unit) -> Option<String> {
    let (span, seconds) = (ttl.as_secs_f64() * 1e3, ttl.as_secs());
    match unit {
        Unit::Seconds if seconds >= 1_000 && ttl.as_millis().is_multiple_of(1_000_000) => Some(format!(
            "ttl: {seconds} s are {} h {} min; times are seconds here: was {} meant?",
            seconds / 3600,
            seconds % 3600 / 60,
            seconds / 1_000
        )),
        Unit::Milliseconds if ttl < Duration::from_millis(100) => Some(format!(
            "ttlMs: {span} ms are shorter than many a pause; times are milliseconds here: was {} meant?",
            span * 1e3
        )),
        _ => None,
    }
}

/// A time in whole milliseconds for the wire, rounded up: what is promised must really remain.
pub(crate) fn wire_millis(span: Duration) -> u64 {
    let floor = millis(span);
    if Duration::from_millis(floor) < span { floor.saturating_add(1) } else { floor }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn settings_lie_over_the_defaults() {
        let base = LockOptions::default();
        let settings = LockSettings { ttl: Some(Duration::from_secs(3)), ..LockSettings::default() };
        let merged = settings.over(&base).unwrap();
        assert_eq!((merged.ttl, merged.wait, merged.renew), (Duration::from_secs(3), Wait::Forever, true));
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        for settings in [
            LockSettings { ttl: Some(Duration::from_millis(9)), ..LockSettings::default() },
            LockSettings { ttl: Some(MAX_TTL + Duration::from_millis(1)), ..LockSettings::default() },
            LockSettings { max_hold: Some(Some(Duration::ZERO)), ..LockSettings::default() },
            LockSettings { wait: Some(Wait::For(Duration::MAX)), ..LockSettings::default() },
        ] {
            let error = settings.over(&LockOptions::default()).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{settings:?}");
        }
    }

    #[test]
    fn numbers_that_are_no_time_are_refused() {
        for value in [f64::NAN, f64::INFINITY, -0.001, 1e300] {
            assert!(seconds("ttl", value).is_err(), "{value}");
            assert!(milliseconds("ttlMs", value).is_err(), "{value}");
        }
        assert_eq!(seconds("ttl", 0.1).unwrap(), Duration::from_millis(100));
        assert_eq!(milliseconds("ttlMs", 1.5).unwrap(), Duration::from_micros(1_500));
    }

    #[test]
    fn a_ttl_in_the_other_unit_is_suspicious() {
        for (millis, unit, suspect) in [
            (10_000_000, Unit::Seconds, Some("was 10 meant?")),
            (1_000_000, Unit::Seconds, Some("0 h 16 min")),
            (86_000_000, Unit::Seconds, Some("23 h 53 min")),
            (3_600_000, Unit::Seconds, None),
            (7_200_000, Unit::Seconds, None),
            (86_400_000, Unit::Seconds, None),
            (10_000, Unit::Seconds, None),
            (10, Unit::Seconds, None),
            (10, Unit::Milliseconds, Some("was 10000 meant?")),
            (99, Unit::Milliseconds, Some("99 ms")),
            (100, Unit::Milliseconds, None),
            (10_000_000, Unit::Milliseconds, None),
        ] {
            let said = suspicious(Duration::from_millis(millis), unit);
            match suspect {
                None => assert_eq!(said, None, "{millis} ms"),
                Some(part) => assert!(said.as_ref().is_some_and(|said| said.contains(part)), "{millis} ms: {said:?}"),
            }
        }
    }

    #[test]
    fn wire_times_round_up() {
        assert_eq!(wire_millis(Duration::from_micros(1_001)), 2);
        assert_eq!(wire_millis(Duration::from_millis(7)), 7);
    }
}
