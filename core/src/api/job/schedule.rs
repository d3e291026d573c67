//! Schedule: the scheduled times of a job that runs once for each.

use std::time::{Duration, UNIX_EPOCH};

use crate::clock::{micros, wall_micros};
use crate::error::Error;
use crate::op::job::ScheduledTime;
use crate::options::{JobOverrides, NO_SCHEDULE, Overlap, since_epoch, wire_millis};
use crate::wording::Text;

/// How much longer than a scheduled time may be late its record is kept: so forgetting it can't make anything run twice.
pub(super) const KEPT_BEYOND_LATENESS: Duration = Duration::from_secs(24 * 3600);

/// How long ago a scheduled time may be and still run, unless the job says otherwise.
const MAX_LATENESS: Duration = Duration::from_secs(24 * 3600);

impl JobOverrides {
    /// The scheduled time that is meant now.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` without any. A guess would run a schedule twice whose replicas start further apart.
    pub(super) fn scheduled_time(&self) -> Result<ScheduledTime, Error> {
        let at_ms = match (self.at, self.every) {
            (Some(at), _) => since_epoch(at),
            (None, Some(every)) => rounded(wall_micros(), micros(every)) / 1_000,
            (None, None) => {
                let why = Text::new(
                    "name the scheduled time: {at} is the time for which the scheduler planned this run, and {every} the time between two \
                     runs, to a multiple of which now is rounded down",
                    [],
                );
                return Err(Error::invalid("at", format_args!("neither"), why));
            }
        };
        Ok(ScheduledTime { at_ms, max_lateness_ms: wire_millis(self.latest()), waits: self.on_overlap == Some(Overlap::Wait) })
    }

    /// How long ago a scheduled time may be and still run. A rounded one is not late by its rounding: it counts from the end of its
    /// slot.
    pub(super) fn latest(&self) -> Duration {
        self.max_lateness.unwrap_or(MAX_LATENESS) + self.every.filter(|_| self.at.is_none()).unwrap_or_default()
    }
}

/// Refuses a line of a crontab in the place of a name: five or six fields.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let is_time = |field: &str| field.chars().all(|letter| letter.is_ascii_digit() || "*/,-?#LW".contains(letter));
    let is_field = |field: &str| is_time(field) || field.len() == 3 && field.chars().all(|letter| letter.is_ascii_uppercase());
    let fields: Vec<_> = name.split_whitespace().collect();
    if matches!(fields.len(), 5 | 6) && fields.into_iter().all(is_field) {
        return Err(Error::invalid("name", format_args!("{name:?}"), Text::new(NO_SCHEDULE, [])));
    }
    Ok(())
}

/// A time rounded down to a multiple of `every`, both in microseconds. A timer may fire a little too early: up to a second, or a tenth
/// of a short `every`, counts for the next multiple.
fn rounded(now_us: u64, every_us: u64) -> u64 {
    let early = (every_us / 10).min(1_000_000);
    (now_us + early) / every_us * every_us
}

/// The refusal of a scheduled time that the server, whose clock shows `time_us`, finds too far ahead.
pub(super) fn too_early(scheduled_time: Option<ScheduledTime>, time_us: u64) -> Error {
    let shown = |at_us| humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_micros(at_us)).to_string();
    let at_us = scheduled_time.map_or(0, |scheduled_time| scheduled_time.at_ms.saturating_mul(1_000));
    let ahead_ms = at_us.saturating_sub(time_us).div_ceil(1_000);
    let why = format!(
        "is {}.{:03} s ahead of the server, whose clock shows {}; at most {} s are accepted, so that one wrong clock can't stop a \
         schedule for longer",
        ahead_ms / 1_000,
        ahead_ms % 1_000,
        shown(time_us),
        ScheduledTime::MAX_AHEAD_MS / 1_000
    );
    Error::invalid("at", shown(at_us), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_early_by_a_little_is_shown_as_too_early() {
        let now_us = 1_795_222_800_000_999;
        for (ahead_ms, message) in
            [(300_001, "is 300.001 s ahead"), (300_990, "is 300.990 s ahead"), (3_600_000, "is 3600.000 s ahead")]
        {
            let scheduled_time = ScheduledTime { at_ms: now_us / 1_000 + ahead_ms, max_lateness_ms: 0, waits: false };
            let error = too_early(Some(scheduled_time), now_us).to_string();
            assert!(error.contains(message) && error.contains("at most 300 s"), "{error}");
        }
    }

    #[test]
    fn a_line_of_a_crontab_is_no_name() {
        for name in ["0 2 * * *", "*/5 * * * MON", "0 0 12 L * ?", " 0  2 1,15 * 1-5 "] {
            let error = check_name(name).unwrap_err().to_string();
            assert!(error.contains("locktender runs no schedule: call this from your scheduler, and give at"), "{error}");
        }
        for name in ["nightly", "0 2 * *", "tidy 0 2 * * *", "a b c d e", "", "0 2 * * * * *"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_time_is_rounded_to_the_scheduled_time_that_was_meant() {
        let minute = 60_000_000;
        for (now, every, expected) in [
            (10 * minute, minute, 10 * minute),
            (10 * minute + 300_000, minute, 10 * minute),
            (11 * minute - 1_000_001, minute, 10 * minute),
            (11 * minute - 1_000_000, minute, 11 * minute),
            (10 * minute + 59_000, 1_000_000, 10 * minute),
            (10 * minute + 899_999, 1_000_000, 10 * minute),
            (10 * minute + 900_000, 1_000_000, 10 * minute + 1_000_000),
        ] {
            assert_eq!(rounded(now, every), expected, "{now} of {every}");
        }
    }
}
