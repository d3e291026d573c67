//! Spans: times that users give, and the bounds of each option.

use std::time::Duration;

use crate::clock::millis;
use crate::error::Error;
use crate::wording::{Language, Part, Text, plain};

/// The shortest ttl that can be kept: drift and one round trip use up a shorter one.
pub const MIN_TTL: Duration = Duration::from_millis(10);

/// The longest ttl: on a quorum a lock's fence is kept for a day after its last use, so a key must not outlive it.
pub const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// The shortest time for which a job that is over is remembered.
pub(crate) const MIN_RETENTION: Duration = Duration::from_secs(1);

/// The longest of all other times.
pub(crate) const MAX_SPAN: Duration = Duration::from_secs(366 * 24 * 3600);

/// The lower and the upper bound of an option, in any spelling.
fn bounds(option: &str) -> (Duration, Duration) {
    // Each lock has these options, so their own names take no other spelling into account.
    match option {
        "ttl" => (MIN_TTL, MAX_TTL),
        "min_hold" | "grace" => (Duration::ZERO, MAX_TTL),
        _ => bounds_of_plain(&plain(option)),
    }
}

fn bounds_of_plain(option: &str) -> (Duration, Duration) {
    match option {
        "ttl" | "maxttl" => (MIN_TTL, MAX_TTL),
        "minhold" | "grace" => (Duration::ZERO, MAX_TTL),
        "maxhold" => (MIN_TTL, MAX_SPAN),
        "retention" | "every" | "maxlateness" => (MIN_RETENTION, MAX_SPAN),
        "retrydelay" | "retryin" => (Duration::ZERO, Duration::from_secs(3600)),
        "connecttimeout" | "responsetimeout" | "unavailableafter" | "replicastimeout" => (Duration::from_millis(1), MAX_SPAN),
        _ => (Duration::ZERO, MAX_SPAN),
    }
}

/// Refuses a time that is out of the option's bounds.
pub(crate) fn check_span(option: &str, span: Duration) -> Result<(), Error> {
    let (least, most) = bounds(option);
    if (least..=most).contains(&span) {
        return Ok(());
    }
    Err(Error::invalid_time(option, span, Text::new("must be from {} to {}", [Part::Time(least), Part::Time(most)])))
}

/// A time given as a number of seconds (Python).
///
/// # Errors
/// `INVALID_ARGUMENT` for NaN, infinite, negative and absurd values.
pub fn seconds(option: &str, value: f64) -> Result<Duration, Error> {
    number(option, value, 1.0)
}

/// A time given as a number of milliseconds (Node).
///
/// # Errors
/// `INVALID_ARGUMENT` for NaN, infinite, negative and absurd values.
pub fn milliseconds(option: &str, value: f64) -> Result<Duration, Error> {
    number(option, value, 1_000.0)
}

fn number(option: &str, value: f64, per_second: f64) -> Result<Duration, Error> {
    let (least, most) = bounds(option);
    if (0.0..=most.as_secs_f64()).contains(&(value / per_second)) {
        // Microseconds, as all clocks here. Rounding keeps 0.1 s from becoming 99 ms.
        return Ok(Duration::from_micros((value / per_second * 1e6).round() as u64));
    }
    let endless = match plain(option).as_str() {
        "wait" | "maxhold" => Text::new("; {forever} is without end", []),
        _ => Text::default(),
    };
    let parts = [Part::Time(least), Part::Time(most), Part::Text(endless)];
    Err(Error::invalid(option, value, Text::new("must be a number of {units} from {} to {}{}", parts)))
}

/// A sentence about a ttl that was probably meant in another unit; `None` for any other ttl.
///
/// Whole thousands of seconds (`ttl=10000`) were probably milliseconds. Less than a tenth of a second (`ttlMs: 10`) was probably
/// seconds. An hour, or any other usual number of seconds, is no multiple of a thousand.
#[must_use]
pub fn suspicious(ttl: Duration, language: Language) -> Option<String> {
    let (span, seconds) = (ttl.as_secs_f64() * 1e3, ttl.as_secs());
    match language {
        Language::Python if seconds >= 1_000 && ttl.as_millis().is_multiple_of(1_000_000) => Some(format!(
            "ttl: {seconds} s are {} h {} min; times are seconds here: was {} meant?",
            seconds / 3600,
            seconds % 3600 / 60,
            seconds / 1_000
        )),
        Language::Node if ttl < Duration::from_millis(100) => Some(format!(
            "ttlMs: {span} ms is shorter than an ordinary pause of a process; times are milliseconds here: was {} meant?",
            span * 1e3
        )),
        _ => None,
    }
}

/// A time in whole milliseconds for the wire, rounded up, so that at least the promised time remains.
pub(crate) fn wire_millis(span: Duration) -> u64 {
    let floor = millis(span);
    if Duration::from_millis(floor) < span { floor.saturating_add(1) } else { floor }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bound_is_named_however_far_off_a_time_is() {
        let message = |error: Error| {
            error.in_words_of(Language::Python).split(" (given").next().unwrap().replace(" a number of seconds", "")
        };
        for option in ["ttl", "max_ttl", "max_hold", "connect_timeout", "response_timeout", "unavailable_after", "wait"] {
            let bound = |error: Error| message(error).split(';').next().unwrap().to_owned();
            let far = bound(seconds(option, 1e300).unwrap_err());
            assert_eq!(bound(check_span(option, Duration::MAX).unwrap_err()), far);
            assert_eq!(bound(seconds(option, f64::NAN).unwrap_err()), far);
            assert_eq!(bound(seconds(option, -1.0).unwrap_err()), far);
        }
        for value in [25.0 * 3600.0, 367.0 * 86_400.0] {
            let error = seconds("ttl", value).unwrap_err();
            assert!(message(error).ends_with("from 0.01 s to 86400 s (24 h)"), "{value}");
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
            (10_000_000, Language::Python, Some("was 10 meant?")),
            (1_000_000, Language::Python, Some("0 h 16 min")),
            (86_000_000, Language::Python, Some("23 h 53 min")),
            (3_600_000, Language::Python, None),
            (7_200_000, Language::Python, None),
            (86_400_000, Language::Python, None),
            (10_000, Language::Python, None),
            (10, Language::Python, None),
            (10, Language::Node, Some("was 10000 meant?")),
            (99, Language::Node, Some("99 ms")),
            (100, Language::Node, None),
            (10_000_000, Language::Node, None),
        ] {
            let advice = suspicious(Duration::from_millis(millis), unit);
            match suspect {
                None => assert_eq!(advice, None, "{millis} ms"),
                Some(part) => assert!(advice.as_ref().is_some_and(|advice| advice.contains(part)), "{millis} ms: {advice:?}"),
            }
        }
    }

    #[test]
    fn wire_times_round_up() {
        assert_eq!(wire_millis(Duration::from_micros(1_001)), 2);
        assert_eq!(wire_millis(Duration::from_millis(7)), 7);
    }
}
