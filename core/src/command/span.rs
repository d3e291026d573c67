//! Spans of time in arguments: `30s`, `5m`, `1h 30m`, and a bare number for seconds.

use std::time::Duration;

/// Reads a span of time.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let seconds = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.').then(|| text.parse().ok()).flatten();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .or_else(|| humantime::parse_duration(text).ok())
        .ok_or_else(|| "write a number of seconds, or a span such as 500ms, 30s, 5m or 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_seconds_or_has_units() {
        for (text, milliseconds) in [
            ("0", Some(0)),
            ("5", Some(5_000)),
            ("0.25", Some(250)),
            (".5", Some(500)),
            ("500ms", Some(500)),
            ("5m", Some(300_000)),
            ("1h 30m", Some(5_400_000)),
            ("", None),
            (".", None),
            ("-1", None),
            ("1e3", None),
            ("5 apples", None),
            ("99999999999999999999999", None),
            ("1.2.3", None),
            ("inf", None),
        ] {
            assert_eq!(span(text).ok(), milliseconds.map(Duration::from_millis), "{text:?}");
        }
    }
}
