//! Kind: which holders a lock admits at the same time.

/// Kind: which holders a lock admits at the same time. The machine and the scripts have a folder or a file for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// One holder, and no other.
    Exclusive,
    /// The same by the votes of a majority of several servers.
    Quorum,
    /// The lock of a job: exclusive, and beside it a record of the job's attempts and of its end.
    Job,
    /// Any number of readers, and no writer beside them. On one server only.
    Read,
    /// At most so many holders. On one server only.
    Semaphore(u32),
    /// Several exclusive locks that are acquired all at once, or none of them; then each is a lock of its own. On one server only.
    Several,
}

impl Kind {
    /// The kind of a lock on so many servers.
    #[must_use]
    pub const fn of_lock(servers: usize) -> Self {
        if servers > 1 { Self::Quorum } else { Self::Exclusive }
    }

    /// Whether several hold the lock at once, each with a mark.
    #[must_use]
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::Read | Self::Semaphore(_))
    }
}
