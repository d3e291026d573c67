//! Labels: how events and metrics group locks.

use std::sync::Arc;

use super::Kind;
use crate::error::Error;
use crate::wording::words;

/// The longest category, in UTF-8 bytes.
const MAX_FAMILY_BYTES: usize = 128;

words! {
    /// What a lock is for, in events and metrics.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum LockKind;
    /// The kind's name, the same in every language.
    fn as_str, impl Display;
    /// A lock.
    Lock = "lock",
    /// The lock of a job.
    Job = "job",
    /// The lock of a job that runs once per scheduled time.
    CronJob = "cron_job",
    /// The lock of an election.
    Election = "election",
    /// A lock that several hold at once, as many as it has permits.
    Semaphore = "semaphore",
    /// A lock that any number of readers hold at once.
    ReadLock = "read_lock",
    /// Several locks that are held all at once, or none of them.
    MultiLock = "multi_lock",
}

impl LockKind {
    /// What a lock of this kind is for, unless its user says otherwise.
    pub(crate) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Exclusive | Kind::Quorum => Self::Lock,
            Kind::Job => Self::Job,
            Kind::Read => Self::ReadLock,
            Kind::Semaphore(_) => Self::Semaphore,
            Kind::Several => Self::MultiLock,
        }
    }
}

/// How events and metrics group a lock: by what it is for, and by its category.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// What the lock is for.
    pub kind: LockKind,
    /// The category: one text for locks that differ by a number only, as those of all orders.
    pub category: Arc<str>,
}

impl Label {
    /// The label of a lock without an option: its category is its name up to the first colon.
    pub(super) fn of(kind: Kind, name: &str) -> Self {
        let first = name.split(':').next().filter(|first| !first.is_empty()).unwrap_or(name);
        Self::new(LockKind::of(kind), first)
    }

    /// A label. A terminal, a log and a page show the category as it is, so it has no control characters.
    pub(crate) fn new(kind: LockKind, category: &str) -> Self {
        let end = (0..=MAX_FAMILY_BYTES.min(category.len())).rev().find(|&at| category.is_char_boundary(at)).unwrap_or(0);
        let category = &category[..end];
        let category = if category.contains(char::is_control) {
            category.replace(char::is_control, "\u{fffd}").into()
        } else {
            category.into()
        };
        Self { kind, category }
    }
}

/// Refuses a category that no label has.
pub(crate) fn check_category(category: &str) -> Result<(), Error> {
    if category.is_empty() || category.len() > MAX_FAMILY_BYTES || category.contains(char::is_control) {
        let why = format!("a category has 1 to {MAX_FAMILY_BYTES} UTF-8 bytes, without control characters");
        return Err(Error::invalid("category", category, why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_category_is_the_name_up_to_its_first_colon() {
        let long = "x".repeat(200);
        for (name, category) in [
            ("orders:42", "orders"),
            ("nightly", "nightly"),
            (":x:y", ":x:y"),
            ("{shop}:orders", "{shop}"),
            ("a\u{1b}[31m\n:1", "a\u{fffd}[31m\u{fffd}"),
            (&long, &long[..128]),
            (&"é".repeat(100), &"é".repeat(64)),
        ] {
            assert_eq!(&*Label::of(Kind::Exclusive, name).category, category, "{name:?}");
        }
    }

    #[test]
    fn a_category_that_no_label_has_is_refused() {
        for category in ["", "a\nb", &"x".repeat(129)] {
            assert_eq!(check_category(category).unwrap_err().argument(), Some("category"), "{category:?}");
        }
        assert!(check_category("user:{id} \"<b>").is_ok());
    }
}
