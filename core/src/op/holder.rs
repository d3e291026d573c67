//! Holder: what the value of a lock's key says. It is an owner value, behind which a server writes more words, or begins with a word that
//! this library has reserved for values that are no owner of a hold.

use std::fmt;

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

/// What the lock's key holds while several hold the lock at once, each with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Readers are inside, in the period with this fence.
    Read(u64),
    /// At most so many are inside.
    Permits(u64),
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(period) => write!(f, "read {period}"),
            Self::Permits(limit) => write!(f, "permits {limit}"),
        }
    }
}

/// The gate that the value of a lock's key is, if it is one.
#[must_use]
pub fn gate_of(value: &str) -> Option<Gate> {
    let (kind, number) = value.split_once(' ')?;
    let is_number = (1..=16).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse().ok().filter(|number| is_number && *number < 1 << 53)?;
    match kind {
        "read" => Some(Gate::Read(number)),
        "permits" => Some(Gate::Permits(number)),
        _ => None,
    }
}

/// What stands before the id in an owner value, with its blank: `pid=` contains `id=`.
const ID: &str = " id=";

/// The length of an id.
const ID_LENGTH: usize = 36;

/// The word behind an owner before the fence of the hold.
const FENCE: &str = "fence=";

/// The word behind an owner while a client waits.
const WAITERS: &str = "waiters=1";

/// The longest value that is read as one of ours.
const LONGEST: usize = 1_024;

/// The owner in the value of a lock's key. A value without an id is one as a whole.
#[must_use]
pub fn owner_of(value: &str) -> &str {
    let end = value.find(ID).map(|at| at + ID.len() + ID_LENGTH);
    let parts = end.and_then(|end| value.split_at_checked(end));
    parts.filter(|(_, rest)| rest.is_empty() || rest.starts_with(' ')).map_or(value, |(owner, _)| owner)
}

/// The words behind the owner.
fn notes(value: &str) -> impl Iterator<Item = &str> {
    value[owner_of(value).len()..].split(' ')
}

/// The fence of the hold, if the value shows it.
#[must_use]
pub fn fence_of(value: &str) -> Option<u64> {
    notes(value).find_map(|word| word.strip_prefix(FENCE)?.parse().ok())
}

/// Whether the value says that a client waits.
#[must_use]
pub fn shows_waiters(value: &str) -> bool {
    notes(value).any(|word| word == WAITERS)
}

/// Whether the value is an owner value of this library, behind which more may be written. That of another library is compared as a
/// whole.
#[must_use]
pub fn is_ours(value: &str) -> bool {
    let owner = owner_of(value);
    let has_id = owner.find(ID).is_some_and(|at| owner.len() == at + ID.len() + ID_LENGTH);
    has_id && value.len() <= LONGEST && (value.starts_with("app=") || value.starts_with("host="))
}

/// How the values begin that this library writes into the key of a lock.
const BEGINNINGS: [&str; 6] = ["app=", "host=", CLAIM, KEPT, "read ", "permit"];

/// How many bytes say whether a value is one of this library: what `GETRANGE` is asked for.
const PEEKED: usize = 6;

/// Whether a value that begins so may be one of this library.
#[must_use]
pub(crate) fn begins_as_ours(beginning: &[u8]) -> bool {
    BEGINNINGS.iter().any(|known| beginning.starts_with(&known.as_bytes()[..known.len().min(PEEKED)]))
}

/// The value with the fence behind it.
#[must_use]
pub fn with_fence(value: &str, fence: u64) -> String {
    format!("{value} {FENCE}{fence}")
}

/// The value with the note that a client waits behind it.
#[must_use]
pub fn with_waiters(value: &str) -> String {
    format!("{value} {WAITERS}")
}

/// Owners of tests by short names.
#[cfg(test)]
pub(crate) mod named {
    use crate::op::{Reply, Verdict};

    const ID: &str = " id=0193d1d2-3c4d-7e5f-8a6b-7c8d9e0f1a2b";

    /// An owner value with this name.
    pub(crate) fn named(name: &str) -> String {
        if name.is_empty() || name.contains([':', '=']) { name.to_owned() } else { format!("host={name}{ID}") }
    }

    /// A text with the names in the place of such values.
    pub(crate) fn plain(text: &str) -> String {
        text.replace(ID, "").replace("host=", "")
    }

    /// A reply with the names of owners.
    pub(crate) fn in_short(reply: Reply) -> Reply {
        let shown = |holder: Option<String>| holder.as_deref().map(plain);
        let verdict = match reply.verdict {
            Verdict::Held { holder, remaining } => Verdict::Held { holder: plain(&holder), remaining },
            Verdict::No { holder, remaining } => Verdict::No { holder: shown(holder), remaining },
            Verdict::Seen { holder, remaining, inside } => {
                let inside = inside.map(|mut inside| {
                    inside.owners.iter_mut().for_each(|owner| *owner = plain(owner));
                    inside
                });
                Verdict::Seen { holder: shown(holder), remaining, inside }
            }
            Verdict::Recorded(mut record) => {
                (record.by, record.error) = (plain(&record.by), plain(&record.error));
                record.holder = shown(record.holder.take());
                Verdict::Recorded(record)
            }
            Verdict::Over(mut end) => {
                (end.by, end.text) = (plain(&end.by), plain(&end.text));
                Verdict::Over(end)
            }
            other => other,
        };
        let earlier = reply.earlier.map(|mut earlier| {
            (earlier.by, earlier.error) = (plain(&earlier.by), plain(&earlier.error));
            earlier
        });
        Reply { verdict, earlier, ..reply }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: &str = "app=billing host=web-3 pid=4711 at=2026-11-21T02:22:10.123Z id=0193d1d2-3c4d-7e5f-8a6b-7c8d9e0f1a2b";

    #[test]
    fn what_stands_behind_an_owner_is_none_of_it() {
        for (notes, fence, waits) in [
            ("", None, false),
            (" fence=7", Some(7), false),
            (" waiters=1", None, true),
            (" waiters=1 fence=7", Some(7), true),
            (" later=x fence=7 waiters=1", Some(7), true),
            (" fence=x waiters=2", None, false),
        ] {
            let value = format!("{OWNER}{notes}");
            assert_eq!((owner_of(&value), fence_of(&value), shows_waiters(&value)), (OWNER, fence, waits), "{notes}");
            assert!(is_ours(&value), "{notes}");
        }
    }

    #[test]
    fn a_value_of_another_library_is_its_owner_as_a_whole() {
        let long = format!("app=x id={}", "a".repeat(36));
        for value in [
            "",
            "4f6c",
            "host=a pid=1",
            "host=a id=short",
            "claim b:c:1 host=a",
            "größe id=ü",
            &*format!("x{long}"),
            &*format!("{long}b"),
        ] {
            assert!(!is_ours(value), "{value}");
        }
        for value in ["", "4f6c fence=7", "host=a pid=1 waiters=1", "host=a id=short fence=7"] {
            assert_eq!((owner_of(value), fence_of(value), shows_waiters(value)), (value, None, false), "{value}");
        }
    }
}
