//! The kinds of lock that one class describes.

/// How many may hold the lock at once.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Exclusive,
    Read,
    Semaphore(u32),
}

impl Kind {
    /// The core's lock of this kind.
    pub(super) fn of(self, client: &locktender::Client, name: &str) -> locktender::Lock {
        match self {
            Self::Exclusive => client.lock(name),
            Self::Read => client.read_lock(name),
            Self::Semaphore(permits) => client.semaphore(name, permits),
        }
    }

    /// The method of a client that makes it.
    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Exclusive => "lock",
            Self::Read => "read_lock",
            Self::Semaphore(_) => "semaphore",
        }
    }

    pub(super) const fn permits(self) -> Option<u32> {
        if let Self::Semaphore(permits) = self { Some(permits) } else { None }
    }
}
