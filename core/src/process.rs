//! Processes: this process, distinguished from the one that it was forked from.
//!
//! Threads don't survive a fork, and mutexes may be copied while they are locked. So a child can't use the objects that its
//! parent made. A process id alone doesn't distinguish the two: in containers both may be process 1, each in its own namespace.
//! So a language that has a hook for forks also counts them.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;

/// The number of forks that led to this process, as far as it was reported.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// A process: its id and the number of its forks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process {
    id: u32,
    forks: u64,
}

impl Process {
    /// The process that runs this code.
    #[must_use]
    pub fn current() -> Self {
        Self { id: std::process::id(), forks: FORKS.load(Ordering::Relaxed) }
    }

    /// Whether this is the process that runs this code, and not one that it was forked from.
    #[must_use]
    pub fn is_current(self) -> bool {
        self == Self::current()
    }

    /// Reports that this process is a new child. Call it in the child before anything else, while the child has one thread.
    pub fn was_forked() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
}

/// Per-process value: made when a process first asks for it. A child never touches its parent's value.
pub struct PerProcess<T>(ArcSwapOption<Made<T>>);

/// The value of one process.
struct Made<T> {
    by: Process,
    value: Arc<T>,
}

impl<T> PerProcess<T> {
    /// No value yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(ArcSwapOption::const_empty())
    }

    /// This process's value. If two threads make a value, both get the same one of the two. `make` must not wait for another
    /// thread.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let Ok(value) = self.get_or_try_make(|| Ok::<_, Infallible>(make()));
        value
    }

    /// The same, of a value that may be impossible to make.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or_try_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        if let Some(made) = &*self.0.load()
            && made.by.is_current()
        {
            return Ok(Arc::clone(&made.value));
        }
        let fresh = Arc::new(Made { by: Process::current(), value: Arc::new(make()?) });
        let previous = self.0.rcu(|made| match made {
            Some(made) if made.by.is_current() => Arc::clone(made),
            _ => Arc::clone(&fresh),
        });
        Ok(match previous {
            Some(made) if made.by.is_current() => Arc::clone(&made.value),
            previous => {
                // Dropping the parent's value would lock mutexes that may have been copied while they were locked.
                std::mem::forget(previous);
                Arc::clone(&fresh.value)
            }
        })
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_another_process_by_its_id_or_by_its_fork() {
        let here = Process::current();
        assert!(here.is_current());
        assert!(!Process { id: here.id + 1, ..here }.is_current());
        assert!(!Process { forks: here.forks + 1, ..here }.is_current());
    }

    #[test]
    fn a_value_is_made_once_in_a_process_and_again_in_another() {
        let values = PerProcess::new();
        let first = values.get_or_make(|| 1);
        assert!(Arc::ptr_eq(&first, &values.get_or_make(|| 2)));
        let parent = Process { id: 0, forks: 0 };
        values.0.store(Some(Arc::new(Made { by: parent, value: Arc::new(0) })));
        assert_eq!((*values.get_or_make(|| 3), *values.get_or_make(|| 4)), (3, 3));
    }
}
