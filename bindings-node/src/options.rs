//! Options: options from JavaScript. A missing option keeps the core's default, and the core checks a given one.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use locktender::Error;
use locktender::host::{
    JobOverrides, Language, LockOverrides, Options, Place, Value, ValueKind, milliseconds, options_of, suspicious,
};
use napi::bindgen_prelude::{Either4, Object};
use napi_derive::napi;

/// The call that got an option.
#[napi(string_enum = "snake_case")]
pub enum OptionPlace {
    Client,
    Lock,
    Acquire,
    Job,
    CronJob,
    Begin,
    Fail,
    Election,
    Campaign,
}

impl From<OptionPlace> for Place {
    fn from(place: OptionPlace) -> Self {
        match place {
            OptionPlace::Client => Self::Client,
            OptionPlace::Lock => Self::Lock,
            OptionPlace::Acquire => Self::Acquire,
            OptionPlace::Job => Self::Job,
            OptionPlace::CronJob => Self::CronJob,
            OptionPlace::Begin => Self::Begin,
            OptionPlace::Fail => Self::Fail,
            OptionPlace::Election => Self::Election,
            OptionPlace::Campaign => Self::Campaign,
        }
    }
}

/// The options of a call, each with its kind as `Kind` in lib/checks.ts names it.
#[napi(js_name = "optionsOf")]
pub fn listed(place: OptionPlace) -> Vec<Vec<String>> {
    let kind = |kind| match kind {
        ValueKind::Time | ValueKind::EndlessTime => "number",
        ValueKind::Switch => "boolean",
        ValueKind::Count(..) => "count",
        ValueKind::Instant => "time",
        ValueKind::Addresses => "addresses",
        ValueKind::Function => "function",
        _ => "string",
    };
    let options = options_of(place.into(), Language::Node).into_iter();
    options.map(|(name, value)| vec![Language::Node.spell(name).into_owned(), kind(value).to_owned()]).collect()
}

/// The answer for the unknown option `name`.
#[napi]
pub fn instead_of(name: String, place: OptionPlace) -> String {
    locktender::host::instead_of(&name, place.into(), Language::Node).in_words_of(Language::Node)
}

/// The answer for a call of a method `name` of another library.
#[napi]
pub fn instead_of_member(name: String) -> String {
    locktender::host::instead_of_member(&name).unwrap_or_default().in_words_of(Language::Node)
}

/// The same for several locks, and for the hold of several.
#[napi]
pub fn instead_of_member_of_several(name: String) -> String {
    locktender::host::instead_of_member_of_several(&name).unwrap_or_default().in_words_of(Language::Node)
}

/// The answer for an event `name` that there is not.
#[napi(ts_return_type = "string | null")]
pub fn instead_of_event(name: String) -> Option<String> {
    locktender::host::instead_of_event(&name).map(|text| text.in_words_of(Language::Node))
}

/// The sentence about a ttl that was probably meant in another unit.
#[napi(ts_return_type = "string | null")]
pub fn suspicious_ttl(ms: f64) -> Option<String> {
    suspicious(milliseconds("ttlMs", ms).ok()?, Language::Node)
}

/// What an option is in JavaScript: numbers, as most are, first.
type Plain = Either4<f64, bool, String, HashMap<String, String>>;

/// The core's names of all options, by those of JavaScript.
static NAMES: LazyLock<HashMap<String, &'static str>> = LazyLock::new(|| {
    let options = [Place::Client, Place::Job, Place::CronJob].map(|place| options_of(place, Language::Node));
    options.concat().into_iter().map(|(name, _)| (Language::Node.spell(name).into_owned(), name)).collect()
});

/// Sets those of the options that are `T`'s. `checked` in lib/checks.ts has checked their types.
fn set<T: Options>(mut options: T, given: &Object<'_>) -> Result<T, Error> {
    for name in Object::keys(given).unwrap_or_default() {
        let Some(row) = NAMES.get(&name).and_then(|name| T::row(name)) else { continue };
        let plain = given.get::<Plain>(&name).map_err(|error| Error::invalid(&name, error.reason, "has another type"))?;
        let value = match plain {
            Some(Either4::B(switch)) => Value::Switch(switch),
            Some(Either4::A(f64::INFINITY)) if row.kind == ValueKind::EndlessTime => Value::Endless,
            // A whole number. One that is too large becomes the largest, which the core refuses, too.
            Some(Either4::A(count)) if matches!(row.kind, ValueKind::Count(..)) => Value::Count(count as u32),
            Some(Either4::A(at)) if row.kind == ValueKind::Instant => Value::Instant(since_1970(at)?),
            Some(Either4::A(ms)) => Value::Time(milliseconds(&name, ms)?),
            Some(Either4::C(text)) => Value::Text(text),
            Some(Either4::D(addresses)) => Value::Addresses(addresses.into_iter().collect()),
            None => continue,
        };
        row.set(&mut options, value)?;
    }
    Ok(options)
}

/// A time as JavaScript has it: milliseconds since 1970.
fn since_1970(ms: f64) -> Result<SystemTime, Error> {
    let micros = (ms * 1e3).round();
    let time = (0.0..1e18).contains(&micros).then(|| UNIX_EPOCH + Duration::from_micros(micros as u64));
    time.ok_or_else(|| Error::invalid("at", ms, "must be a Date, or milliseconds since 1970"))
}

/// The options of a lock.
pub(crate) fn lock_options(given: &Object<'_>) -> Result<LockOverrides, Error> {
    set(LockOverrides::default(), given)
}

/// The permits of a semaphore. `semaphoreOptions` in lib/options.ts has checked that they are a whole number.
pub(crate) fn permits(given: Option<&Object<'_>>) -> Result<u32, Error> {
    // A number that is too large becomes the largest, which the core refuses, too.
    let permits = given.and_then(|given| given.get::<f64>("permits").ok().flatten()).map(|permits| permits as u32);
    permits.ok_or_else(|| Error::invalid("permits", "none", "must be a whole number"))
}

/// The job with the options.
pub(crate) fn with_options(job: locktender::Job, given: &Object<'_>) -> Result<locktender::Job, Error> {
    Ok(job.overrides(set(JobOverrides::default(), given)?).settings(lock_options(given)?))
}

/// The options of a client, over the core's defaults.
pub(crate) fn client_options(given: &Object<'_>) -> Result<locktender::ClientOptions, Error> {
    let base = locktender::ClientOptions::default();
    let lock = lock_options(given)?.over(&base.lock)?;
    let mut options = set(base, given)?;
    options.lock = lock;
    Ok(options)
}
