//! Wanted options: options in the form of a case.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use locktender::host::LockOverrides;
use locktender::host::milliseconds;
use locktender::{Client, ClientOptions, Error, Job, Lock, Overlap, Wait};
use serde_json::Value;

pub fn duration(wanted: &Value, key: &str) -> Result<Option<Duration>, Error> {
    let special = |text: &str| match text {
        "nan" => f64::NAN,
        "inf" => f64::INFINITY,
        "-inf" => f64::NEG_INFINITY,
        other => panic!("no number: {other}"),
    };
    let number = match &wanted[key] {
        Value::Null => return Ok(None),
        Value::String(text) => special(text),
        value => value.as_f64().unwrap(),
    };
    milliseconds(key.trim_end_matches("_ms"), number).map(Some)
}

pub fn lock_settings(wanted: &Value) -> Result<LockOverrides, Error> {
    let mut settings = LockOverrides::default();
    settings.ttl = duration(wanted, "ttl_ms")?;
    settings.wait =
        if wanted["wait_ms"] == "forever" { Some(Wait::Forever) } else { duration(wanted, "wait_ms")?.map(Wait::For) };
    settings.renew = wanted["renew"].as_bool();
    settings.max_hold = duration(wanted, "max_hold_ms")?.map(Some);
    settings.min_hold = duration(wanted, "min_hold_ms")?;
    settings.grace = duration(wanted, "grace_ms")?;
    settings.fair = wanted["fair"].as_bool();
    settings.category = wanted["category"].as_str().map(|category| Some(category.into()));
    Ok(settings)
}

/// The lock, of readers, with permits or of several names if that is wanted.
pub fn lock_of(client: &Client, name: String, wanted: &Value) -> Lock {
    if let Some(names) = wanted["names"].as_array() {
        return client.multi_lock(names.iter().map(|name| name.as_str().unwrap())).into_lock();
    }
    match wanted["permits"].as_u64() {
        Some(permits) => client.semaphore(name, u32::try_from(permits).unwrap()),
        None if wanted["read"] == true => client.read_lock(name),
        None => client.lock(name),
    }
}

/// The time in whole milliseconds.
pub fn now() -> SystemTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    UNIX_EPOCH + Duration::from_secs(since.as_secs()) + Duration::from_millis(since.subsec_millis().into())
}

/// The job with the options of a schedule, whose scheduled time counts from `start`.
pub fn scheduled(mut job: Job, wanted: &Value, start: SystemTime) -> Result<Job, Error> {
    if let Some(ms) = wanted["at_ms"].as_i64() {
        let span = Duration::from_millis(ms.unsigned_abs());
        job = job.at(if ms < 0 { start - span } else { start + span });
    }
    if let Some(ms) = wanted["at_epoch_ms"].as_u64() {
        job = job.at(UNIX_EPOCH + Duration::from_millis(ms));
    }
    if let Some(every) = duration(wanted, "every_ms")? {
        job = job.every(every);
    }
    if let Some(late) = duration(wanted, "max_lateness_ms")? {
        job = job.max_lateness(late);
    }
    Ok(if wanted["on_overlap"] == "wait" { job.on_overlap(Overlap::Wait) } else { job })
}

pub fn client_options(wanted: &Value, options: &mut ClientOptions) -> Result<(), Error> {
    let text = |key: &str| wanted[key].as_str().map(str::to_owned);
    options.history = wanted["history"].as_bool().unwrap_or(options.history);
    options.prefix = text("prefix").unwrap_or_default();
    (options.app, options.tls_ca, options.tls_cert, options.tls_key) =
        (text("app"), text("tls_ca"), text("tls_cert"), text("tls_key"));
    for (key, option) in [
        ("connect_timeout_ms", &mut options.connect_timeout),
        ("unavailable_after_ms", &mut options.unavailable_after),
        ("max_ttl_ms", &mut options.max_ttl),
    ] {
        *option = duration(wanted, key)?.unwrap_or(*option);
    }
    options.response_timeout = duration(wanted, "response_timeout_ms")?.or(options.response_timeout);
    Ok(())
}
