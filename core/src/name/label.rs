//! Labels: how events and metrics group locks.

use std::fmt;
use std::sync::Arc;

use super::Kind;
use crate::error::Error;

/// The longest family, in UTF-8 bytes.
const MAX_FAMILY_BYTES: usize = 128;

/// What a lock is for, in events and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LockKind {
    /// A lock.
    Lock,
    /// The lock of a job.
    Job,
    /// The lock of a job that runs once per scheduled time.
    CronJob,
    /// The lock of an election.
    Election,
}

impl LockKind {
    /// The kind's name, the same in every language.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Job => "job",
            Self::CronJob => "cron_job",
            Self::Election => "election",
        }
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How events and metrics group a lock: by what it is for, and by its family.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// What the lock is for.
    pub kind: LockKind,
    /// The family: one text for locks that differ by a number only, as those of all orders.
    pub family: Arc<str>,
}

impl Label {
    /// The label of a lock without an option: its family is its name up to the first colon.
    pub(super) fn of(kind: Kind, name: &str) -> Self {
        let kind = if kind == Kind::Job { LockKind::Job } else { LockKind::Lock };
        let first = name.split(':').next().filter(|first| !first.is_empty()).unwrap_or(name);
        Self::new(kind, first)
    }

    /// A label. A terminal, a log and a page show the family as it is, so it has no control characters.
    pub(crate) fn new(kind: LockKind, family: &str) -> Self {
        let end = (0..=MAX_FAMILY_BYTES.min(family.len())).rev().find(|&at| family.is_char_boundary(at)).unwrap_or(0);
        let family = &family[..end];
        let family =
            if family.contains(char::is_control) { family.replace(char::is_control, "\u{fffd}").into() } else { family.into() };
        Self { kind, family }
    }
}

/// Refuses a family that no label has.
pub(crate) fn check_family(family: &str) -> Result<(), Error> {
    if family.is_empty() || family.len() > MAX_FAMILY_BYTES || family.contains(char::is_control) {
        let why = format!("a family has 1 to {MAX_FAMILY_BYTES} UTF-8 bytes, without control characters");
        return Err(Error::invalid("family", family, why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_the_name_up_to_its_first_colon() {
        let long = "x".repeat(200);
        for (name, family) in [
            ("orders:42", "orders"),
            ("nightly", "nightly"),
            (":x:y", ":x:y"),
            ("{shop}:orders", "{shop}"),
            ("a\u{1b}[31m\n:1", "a\u{fffd}[31m\u{fffd}"),
            (&long, &long[..128]),
            (&"é".repeat(100), &"é".repeat(64)),
        ] {
            assert_eq!(&*Label::of(Kind::Exclusive, name).family, family, "{name:?}");
        }
    }

    #[test]
    fn a_family_that_no_label_has_is_refused() {
        for family in ["", "a\nb", &"x".repeat(129)] {
            assert_eq!(check_family(family).unwrap_err().argument(), Some("family"), "{family:?}");
        }
        assert!(check_family("user:{id} \"<b>").is_ok());
    }
}
