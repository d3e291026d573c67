//! History: who has held which lock on a server, as the holders have noted it there.

use std::sync::Arc;

use crate::name::Kind;

/// How many entries the history keeps: the oldest ones go.
pub const HISTORY_LENGTH: usize = 10_000;

/// How many entries a server is asked for at a time. A connection takes no reply of more than a megabyte, or of more than 4,096 values,
/// of which an entry has up to thirteen.
pub(crate) const HISTORY_PART: u32 = 300;

/// How a hold stood when it was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HoldState {
    /// It has been renewed once, and continues.
    Holds,
    /// It was released.
    Released,
    /// It was lost.
    Lost,
}

impl HoldState {
    const ALL: [Self; 3] = [Self::Holds, Self::Released, Self::Lost];

    /// The state's spelling in the history.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Released => "released",
            Self::Lost => "lost",
        }
    }

    /// The state of this spelling.
    #[doc(hidden)]
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// Who may hold a lock beside a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Nobody.
    Nobody,
    /// Other readers.
    Readers,
    /// Holders of other permits.
    Permits,
}

impl Beside {
    const ALL: [Self; 3] = [Self::Nobody, Self::Readers, Self::Permits];

    pub(crate) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Read => Self::Readers,
            Kind::Semaphore(_) => Self::Permits,
            Kind::Exclusive | Kind::Quorum | Kind::Job | Kind::Several => Self::Nobody,
        }
    }

    /// Its spelling in the history; nothing for nobody.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nobody => "",
            Self::Readers => "r",
            Self::Permits => "p",
        }
    }

    /// What is spelled so.
    #[doc(hidden)]
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|beside| beside.as_str() == text)
    }
}

/// What a holder notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryNote {
    /// The key of the lock.
    pub lock: Arc<str>,
    /// The owner of the hold.
    pub owner: Arc<str>,
    /// The fence of the hold.
    pub fence: u64,
    /// How the hold stands.
    pub state: HoldState,
    /// Who may hold the lock at the same time.
    pub beside: Beside,
}

/// A note, and the id that the server gave it: its time in milliseconds, and a number within the millisecond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The id.
    pub id: (u64, u64),
    /// The note.
    pub note: HistoryNote,
}
