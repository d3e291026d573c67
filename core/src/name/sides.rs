//! Sides: the keys beside a lock's own one.

use super::clock_tag;
use super::kind::Kind;
use super::slot::slot_of;

/// The infix of every side key. A name that contains it is refused.
pub(super) const SIDE: &str = ":~lt:";

/// The infix of the side keys of a name that has a tag. It differs from the infix for braces of ours. Otherwise the locks `x` and
/// `{x}` would share all side keys.
pub(super) const TAGGED_SIDE: &str = ":~lt:tag:";

/// The last part of the key of a job's record.
pub(super) const RECORD: &str = "job";

/// The marker of a server of a quorum: one for all locks.
pub(super) const MARKER: &str = "{~lt}:marker";

/// The last part of the key of a fence.
const FENCE: &str = "fence";

/// The last part of the key of a clock. It stands behind a number that no lock's side keys stand behind with this word.
const CLOCK: &str = "clock";

/// The last part of the key of the marks of a lock that several hold at once.
pub(super) const MARKS: &str = "shared";

/// How many bytes a side key has at most besides the lock's own ones.
const LONGEST: usize = 24;

/// The keys beside a lock's own one, each behind the other in one text: what a program uses for one pair only is to cost little.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sides {
    text: String,
    /// Where each of them ends.
    ends: [usize; Side::COUNT],
    /// The slot of all keys of the lock.
    pub(super) slot: u16,
}

/// The keys beside a lock's own one, in the order of the scripts.
#[derive(Clone, Copy)]
pub(super) enum Side {
    /// The fence of a lock of a quorum. Of any other lock the clock of its slot, which gives all fences there.
    Fence,
    Queue,
    Marker,
    /// The record of a job; empty for other kinds.
    Record,
    /// The marks of those who hold the lock at once; empty on a quorum.
    Marks,
}

impl Side {
    const COUNT: usize = 5;
    pub(super) const ALL: [Self; Self::COUNT] = [Self::Fence, Self::Queue, Self::Marker, Self::Record, Self::Marks];
}

impl Sides {
    /// Those of the lock with this key.
    pub(super) fn of(lock: &str, kind: Kind, single_server: bool) -> Self {
        let infix = Infix::of(lock);
        let slot = slot_of(lock);
        let mut sides = Self { text: String::with_capacity(Side::COUNT * (lock.len() + LONGEST)), ends: [0; Side::COUNT], slot };
        for side in Side::ALL {
            match side {
                Side::Fence if kind != Kind::Quorum => {
                    let tag = clock_tag::clock_tag(slot);
                    sides.text.extend(["{", itoa::Buffer::new().format(tag), "}", SIDE, CLOCK]);
                }
                // One server may be a node of a cluster, where all keys of a script must share a slot. A server of a quorum never is.
                Side::Marker if !single_server => sides.text += MARKER,
                Side::Record if kind != Kind::Job => {}
                Side::Marks if kind == Kind::Quorum => {}
                Side::Fence => infix.push(lock, FENCE, &mut sides.text),
                Side::Queue => infix.push(lock, "queue", &mut sides.text),
                Side::Marker => infix.push(lock, "marker", &mut sides.text),
                Side::Record => infix.push(lock, RECORD, &mut sides.text),
                Side::Marks => infix.push(lock, MARKS, &mut sides.text),
            }
            sides.ends[side as usize] = sides.text.len();
        }
        sides
    }

    pub(super) fn get(&self, side: Side) -> &str {
        let at = side as usize;
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[begin..self.ends[at]]
    }
}

/// What stands between a lock's key and the last part of its side keys.
#[derive(Clone, Copy)]
pub(super) enum Infix {
    /// The key has a tag, which keeps them in its slot.
    Tagged,
    /// The whole key becomes one.
    Braced,
}

impl Infix {
    pub(super) fn of(key: &str) -> Self {
        if matches!(tags(key), Tags::One) { Self::Tagged } else { Self::Braced }
    }

    /// Appends a side key.
    pub(super) fn push(self, key: &str, what: &str, out: &mut String) {
        match self {
            Self::Tagged => out.extend([key, TAGGED_SIDE, what]),
            Self::Braced => out.extend(["{", key, "}", SIDE, what]),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tags {
    None,
    One,
    Many,
    Unpaired,
}

/// Counts hash tags by the rule of Redis Cluster: the text between the first `{` and the first `}` after it, if not empty.
pub(super) fn tags(key: &str) -> Tags {
    let first = |text: &str| -> Option<usize> {
        let open = text.find('{')?;
        let length = text[open + 1..].find('}')?;
        (length > 0).then_some(open + 1 + length + 1)
    };
    match first(key) {
        Some(end) if first(&key[end..]).is_some() => Tags::Many,
        Some(_) => Tags::One,
        None if key.contains('}') => Tags::Unpaired,
        None => Tags::None,
    }
}
