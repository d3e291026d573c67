//! The kinds of lock that there are: how many hold it at once, and whether it is one or several.

/// How many may hold the lock at once, or that it is several locks.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Exclusive,
    Read,
    Semaphore(u32),
    Several,
}

impl Kind {
    /// The core's lock of this kind. Only several have other than one name.
    pub(super) fn of(self, client: &locktender::Client, names: &[String]) -> locktender::Lock {
        let name = || names.first().cloned().unwrap_or_default();
        match self {
            Self::Exclusive => client.lock(name()),
            Self::Read => client.read_lock(name()),
            Self::Semaphore(permits) => client.semaphore(name(), permits),
            Self::Several => client.multi_lock(names).into_lock(),
        }
    }

    /// The method of a client that makes it.
    pub(super) const fn method(self) -> &'static str {
        match self {
            Self::Exclusive => "lock",
            Self::Read => "read_lock",
            Self::Semaphore(_) => "semaphore",
            Self::Several => "multi_lock",
        }
    }

    pub(super) const fn permits(self) -> Option<u32> {
        if let Self::Semaphore(permits) = self { Some(permits) } else { None }
    }
}
