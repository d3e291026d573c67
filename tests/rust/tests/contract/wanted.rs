//! Options as a case writes them.

use std::time::Duration;

use locktender::host::LockOverrides;
use locktender::host::milliseconds;
use locktender::{ClientOptions, Error, Wait};
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
    settings.fair = wanted["fair"].as_bool();
    Ok(settings)
}

pub fn client_options(wanted: &Value, options: &mut ClientOptions) -> Result<(), Error> {
    let text = |key: &str| wanted[key].as_str().map(str::to_owned);
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
