//! Names: lock names and the keys made of them. Keys are formatted nowhere else.
//!
//! The lock is the plain string key `<prefix><name>`. So holders of other lock libraries and of this one exclude each other on
//! one name. All other data is in *side keys* in the lock's cluster slot.

mod clock_tag;
mod kind;
mod label;
mod safe;
mod several;
mod sides;
pub(crate) mod slot;

use std::sync::Arc;

pub(crate) use label::check_category;
pub use label::{Label, LockKind};
pub use safe::safe_name;

pub use self::kind::Kind;
use self::sides::{Infix, MARKER, MARKS, RECORD, SIDE, Side, Sides, TAGGED_SIDE, Tags, tags};
use crate::error::Error;
use crate::wording::{Part, Text};

/// The longest name, in UTF-8 bytes.
pub const MAX_NAME_BYTES: usize = 1024;

/// The longest prefix, in UTF-8 bytes.
const MAX_PREFIX_BYTES: usize = 256;

/// The history of a server, or of a cluster: one for all locks.
pub(crate) const HISTORY: &str = "{~lt}:log";

/// How the channels begin on which leaders announce themselves.
pub(crate) const LEADERS: &str = "~lt:lead:";

/// The keys of one lock, in the order in which every script receives them, and the lock's kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keys {
    kind: Kind,
    label: Label,
    name: Arc<str>,
    lock: Arc<str>,
    sides: Sides,
    /// Of several locks: those, in the order in which their names were given.
    parts: Arc<[Arc<Self>]>,
    /// Of a lock that is acquired with others: the names of all.
    together: Option<Arc<[Arc<str>]>>,
}

impl Keys {
    /// Makes the keys of the lock `name` of a client with `prefix`. `single_server` means that the client has no quorum.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a name (or a prefix and name together) that can't be a lock: empty, longer than 1,024 UTF-8
    /// bytes, with a NUL, with more than one `{tag}`, with `:~lt:` in it, or with a `}` but no tag.
    pub fn new(kind: Kind, prefix: &str, name: &str, single_server: bool) -> Result<Self, Error> {
        let refuse = |why: String| {
            let why = Text::new("{}; {safe_name}() makes a name of any text", [Part::Words(why)]);
            Err(Error::invalid("name", name, why))
        };
        if name.is_empty() {
            return refuse("a lock's name must not be empty".into());
        }
        if name.len() > MAX_NAME_BYTES {
            return refuse(format!("a lock's name has at most {MAX_NAME_BYTES} UTF-8 bytes, this one has {}", name.len()));
        }
        if name.contains('\0') {
            return refuse("a lock's name must not contain NUL".into());
        }
        let shown: Arc<str> = name.into();
        let lock = if prefix.is_empty() { Arc::clone(&shown) } else { [prefix, name].concat().into() };
        if lock.contains(SIDE) {
            return refuse(format!("names containing \"{SIDE}\" are reserved for the lock's own side keys"));
        }
        if *lock == *MARKER {
            return refuse(format!("\"{MARKER}\" is the key of a server's marker"));
        }
        if *lock == *HISTORY {
            return refuse(format!("\"{HISTORY}\" is the key of the history"));
        }
        match tags(&lock) {
            Tags::One | Tags::None => Ok(Self::on(kind, shown, lock, single_server)),
            Tags::Many => refuse("a lock's name has at most one {tag}".into()),
            Tags::Unpaired => {
                refuse("a name with a \"}\" needs a {tag} before it that isn't empty, because the keys beside the lock's own one take their slot from it".into())
            }
        }
    }

    /// Keys with `prefix` that no lock has. A user needs the same rights for them as for a lock's keys.
    pub(crate) fn of_no_lock(kind: Kind, prefix: &str, single_server: bool) -> Self {
        Self::on(kind, "".into(), format!("{prefix}{SIDE}probe").into(), single_server)
    }

    fn on(kind: Kind, name: Arc<str>, lock: Arc<str>, single_server: bool) -> Self {
        let sides = Sides::of(&lock, kind, single_server);
        Self { kind, label: Label::of(kind, &name), name, lock, sides, parts: Arc::default(), together: None }
    }

    /// The same keys, with another label.
    #[must_use]
    pub fn labelled(self, label: Label) -> Self {
        Self { label, ..self }
    }

    /// The keys of the same lock as one of another kind, on one server and no job's.
    pub(crate) fn of_kind(&self, kind: Kind) -> Self {
        let label = Label { kind: LockKind::of(kind), ..self.label.clone() };
        Self { kind, label, sides: Sides::of(&self.lock, kind, self.marker() != MARKER), ..self.clone() }
    }

    /// What events and metrics call the lock.
    #[must_use]
    pub const fn label(&self) -> &Label {
        &self.label
    }

    /// The kind of the lock.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The name that the user gave, without the prefix.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key that holds the owner value.
    #[must_use]
    pub fn lock(&self) -> &str {
        &self.lock
    }

    /// The name and the key of the lock, to be shared.
    pub(crate) fn shared(&self) -> (Arc<str>, Arc<str>) {
        (Arc::clone(&self.name), Arc::clone(&self.lock))
    }

    /// The key of the fence of a lock of a quorum.
    #[must_use]
    pub fn fence(&self) -> &str {
        self.sides.get(Side::Fence)
    }

    /// The key of the clock that gives the fences of a lock on one server.
    #[must_use]
    pub fn clock(&self) -> &str {
        self.sides.get(Side::Fence)
    }

    /// The slot of all keys of the lock, in any cluster.
    pub(crate) const fn slot(&self) -> u16 {
        self.sides.slot
    }

    /// The queue of waiters.
    #[must_use]
    pub fn queue(&self) -> &str {
        self.sides.get(Side::Queue)
    }

    /// The server's marker; a server of a quorum has one.
    #[must_use]
    pub fn marker(&self) -> &str {
        self.sides.get(Side::Marker)
    }

    /// The record of a job. Other kinds have none, and an empty text here.
    #[must_use]
    pub fn record(&self) -> &str {
        self.sides.get(Side::Record)
    }

    /// The marks of those who share the lock. A lock with one holder meets them, too; a lock of a quorum has none, and an empty text here.
    #[must_use]
    pub fn marks(&self) -> &str {
        self.sides.get(Side::Marks)
    }

    /// The keys in the order of the scripts' `KEYS`: four, a job's record, and on one server the marks, the last key; of several locks of each.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &str> {
        self.each()
            .flat_map(|of| std::iter::once(&*of.lock).chain(Side::ALL.into_iter().map(|side| of.sides.get(side))))
            .filter(|key| !key.is_empty())
    }

    /// The marker's key on a server of a quorum. It belongs to no lock.
    #[doc(hidden)]
    #[must_use]
    pub const fn server_marker() -> &'static str {
        MARKER
    }
}

/// Whether a prefix has a tag, which puts every name behind it into one slot of a cluster.
pub(crate) fn has_tag(prefix: &str) -> bool {
    matches!(tags(prefix), Tags::One)
}

/// The keys by which the local queues of a lock go, beside its own: its record and its marks.
pub(crate) fn sides_of(lock: &str) -> [String; 2] {
    [beside(lock, RECORD), beside(lock, MARKS)]
}

fn beside(lock: &str, what: &str) -> String {
    let mut key = String::new();
    Infix::of(lock).push(lock, what, &mut key);
    key
}

/// What keys are listed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Locks, by their own keys.
    Locks,
    /// Jobs, by their records.
    Records,
}

impl Listed {
    /// Whether the key may be such a one.
    pub(crate) fn may_be(self, key: &str) -> bool {
        match self {
            Self::Locks => !key.contains(SIDE) && key != MARKER && key != HISTORY,
            Self::Records => key.ends_with(&[SIDE, RECORD].concat()) || key.ends_with(&[TAGGED_SIDE, RECORD].concat()),
        }
    }

    /// A glob pattern of Redis for those of locks whose keys contain `part`. It matches other keys, too.
    pub(crate) fn pattern(self, part: &str) -> String {
        let mut pattern = String::from(if self == Self::Records { "*" } else { "" });
        for character in part.chars() {
            if matches!(character, '*' | '?' | '[' | ']' | '^' | '\\') {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        if self == Self::Records { pattern + "*" + SIDE + "*" + RECORD } else { pattern + "*" }
    }

    /// The name of the lock that `key` belongs to, of a client with `prefix`; `None` if it is no such lock's.
    pub(crate) fn name_of<'a>(self, key: &'a str, prefix: &str) -> Option<&'a str> {
        let lock = match self {
            Self::Locks => key,
            Self::Records => {
                let side = key.strip_suffix(RECORD)?;
                match side.strip_suffix(TAGGED_SIDE) {
                    Some(lock) => lock,
                    None => side.strip_suffix(SIDE)?.strip_prefix('{')?.strip_suffix('}')?,
                }
            }
        };
        let name = lock.strip_prefix(prefix)?;
        let keys = Keys::new(Kind::Job, prefix, name, true).ok()?;
        let own = if self == Self::Records { keys.record() } else { keys.lock() };
        (own == key).then_some(name)
    }
}

/// Refuses a prefix that no name could follow.
pub(crate) fn check_prefix(prefix: &str) -> Result<(), Error> {
    if prefix.len() > MAX_PREFIX_BYTES {
        return Err(Error::invalid("prefix", prefix, format!("a prefix has at most {MAX_PREFIX_BYTES} UTF-8 bytes")));
    }
    if prefix.contains('\0') {
        return Err(Error::invalid("prefix", prefix, "a prefix must not contain NUL"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
