//! Times in arguments. Spans: `30s`, `5m`, `1h 30m`, and a bare number for seconds. Instants: `2026-11-21T02:00:00+01:00`, `@1795222800`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Reads a span of time.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    bare_seconds(text)
        .or_else(|| humantime::parse_duration(text).ok())
        .ok_or_else(|| "write a number of seconds, or a span such as 500ms, 30s, 5m or 1h".to_owned())
}

fn bare_seconds(text: &str) -> Option<Duration> {
    let seconds = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.').then(|| text.parse().ok()).flatten();
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// Reads an instant: of RFC 3339, with its offset from UTC, or `@` and seconds since 1970.
pub(super) fn instant(text: &str) -> Result<SystemTime, String> {
    let read = match text.strip_prefix('@') {
        Some(seconds) => bare_seconds(seconds).and_then(|since| UNIX_EPOCH.checked_add(since)),
        None => rfc_3339(text),
    };
    let how = "write a time with its offset from UTC, such as 2026-11-21T02:00:00+01:00, or @ and seconds since 1970";
    read.ok_or_else(|| how.to_owned())
}

fn rfc_3339(text: &str) -> Option<SystemTime> {
    let text = text.to_uppercase();
    if text.ends_with('Z') {
        return humantime::parse_rfc3339(&text).ok();
    }
    // The crate knows no other offset. One has six letters: +01:00.
    let (local, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let local = humantime::parse_rfc3339(&format!("{local}Z")).ok()?;
    let (sign, offset) = offset.split_at_checked(1)?;
    let (hours, minutes) = offset.split_once(':')?;
    let [hours, minutes] = [(hours, 23_u64), (minutes, 59)]
        .map(|(part, most)| part.parse::<u64>().ok().filter(|number| !part.starts_with('+') && *number <= most));
    let ahead = Duration::from_secs(hours? * 3_600 + minutes? * 60);
    match sign {
        "+" => local.checked_sub(ahead),
        "-" => local.checked_add(ahead),
        _ => None,
    }
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

    #[test]
    fn an_instant_has_its_offset_or_counts_from_1970() {
        for (text, seconds) in [
            ("@0", Some(0)),
            ("@1795222800", Some(1_795_222_800)),
            ("2026-11-21T01:00:00Z", Some(1_795_222_800)),
            ("2026-11-21t01:00:00z", Some(1_795_222_800)),
            ("2026-11-21T02:00:00+01:00", Some(1_795_222_800)),
            ("2026-11-20T21:30:00-03:30", Some(1_795_222_800)),
            ("2026-11-21T02:00:00.000+01:00", Some(1_795_222_800)),
            ("2026-11-21T02:00:00", None),
            ("2026-11-21", None),
            ("2026-11-21T02:00:00+1:00", None),
            ("2026-11-21T02:00:00+24:00", None),
            ("2026-11-21T02:00:00+01:60", None),
            ("2026-11-21T02:00:00+-1:00", None),
            ("2026-11-21T02:00:00++1:00", None),
            ("2026-11-21T02:00:00é01:0", None),
            ("tomorrow", None),
            ("1795222800", None),
            ("@", None),
            ("@-1", None),
            ("@99999999999999999999999", None),
            ("é", None),
            ("", None),
        ] {
            assert_eq!(instant(text).ok(), seconds.map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds)), "{text:?}");
        }
    }
}
