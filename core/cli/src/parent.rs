//! Parent: the `locktender` that runs this program, if there is one.

/// Whether the `locktender` that runs this program holds the lock with this value.
pub(super) fn is_held_by_parent(owner: &str) -> bool {
    std::env::var("LOCKTENDER_OWNER").is_ok_and(|own| own == owner)
}

/// The message about a wait that would never end.
pub(super) fn waits_for_itself(name: &str) -> String {
    format!("{name:?} is held by the locktender that runs this command: it would wait for itself")
}
