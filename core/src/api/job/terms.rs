//! Terms: the bounds of a job's own options.

use std::time::Duration;

use crate::error::Error;
use crate::options::check_span;
use crate::wording::Text;

/// The most attempts that a job may have.
const MOST_ATTEMPTS: u32 = 10_000;

/// Refuses options of a job that are out of their bounds.
pub(crate) fn check_terms(max_attempts: u32, retry_delay: Duration, keep: Duration) -> Result<(), Error> {
    if !(1..=MOST_ATTEMPTS).contains(&max_attempts) {
        return Err(Error::invalid("max_attempts", max_attempts, Text::new("must be from 1 to 10000", [])));
    }
    check_span("retry_delay", retry_delay)?;
    check_span("keep", keep)
}
