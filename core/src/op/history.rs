//! History: who has held which lock on a server, as the holders have noted it there.

use std::sync::Arc;

use crate::name::Kind;
use crate::wording::words;

/// How many entries the history keeps: the oldest ones go.
pub const HISTORY_LENGTH: usize = 10_000;

/// How many entries a server is asked for at a time. A connection takes no reply of more than a megabyte, or of more than 4,096 values,
/// of which an entry has up to thirteen.
pub(crate) const HISTORY_PART: u32 = 300;

words! {
    /// How a hold stood when it was noted.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    pub enum HoldState, ALL;
    /// The state's spelling in the history.
    fn as_str;
    /// It has been renewed once, and continues.
    Holds = "holds",
    /// It was released.
    Released = "released",
    /// It was lost.
    Lost = "lost",
}

impl HoldState {
    /// The state of this spelling.
    #[doc(hidden)]
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.as_str() == text)
    }
}

words! {
    /// Who may hold a lock beside a holder.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Beside, ALL;
    /// Its spelling in the history; nothing for nobody.
    fn as_str;
    /// Nobody.
    Nobody = "",
    /// Other readers.
    Readers = "r",
    /// Holders of other permits.
    Permits = "p",
}

impl Beside {
    pub(crate) const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Read => Self::Readers,
            Kind::Semaphore(_) => Self::Permits,
            Kind::Exclusive | Kind::Quorum | Kind::Job | Kind::Several => Self::Nobody,
        }
    }

    /// What is spelled so.
    #[doc(hidden)]
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|beside| beside.as_str() == text)
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
