//! Holder: the beginnings of a lock's value that this library has reserved, for values that are no owner of a hold.

/// The beginning of a value that keeps the lock for a waiter.
const CLAIM: &str = "claim ";

/// The beginning of a value that keeps the lock for a while after its release.
pub(crate) const KEPT: &str = "kept ";

/// The value of the lock's key while the lock is kept after the release by `owner`: none that a late request of the owner finds.
#[must_use]
pub fn kept(owner: &str) -> String {
    format!("{KEPT}{owner}")
}

/// The value of the lock's key while the lock is kept for the waiter `entry`.
#[must_use]
pub fn claim(entry: &str) -> String {
    format!("{CLAIM}{entry}")
}

/// Whether the value of a lock's key keeps the lock after a release: it has no holder.
#[must_use]
pub fn is_kept(value: &str) -> bool {
    value.starts_with(KEPT)
}

/// Whether the value of a lock's key is a claim: the lock has no holder, and is kept for a waiter.
#[must_use]
pub fn is_claim(value: &str) -> bool {
    value.starts_with(CLAIM)
}
