//! Sync: the mutex and the condition variable of the standard library, without poisoning.
//!
//! A mutex of another crate may keep its sleeping threads in a table of the whole process, as `parking_lot` does. A fork copies
//! that table with threads that the child doesn't have. The child's new threads get the addresses of those threads. Then they are
//! queued behind themselves, and crash or never wake. The mutexes of the standard library sleep on their own address instead.
//! So a child inherits nothing but the mutexes that were locked. These are recognised by the process in which they were made.
//!
//! A panic while a mutex is locked does not poison it. The guarded data is consistent between any two statements. A second panic
//! in every later thread would help no user.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{self, PoisonError, TryLockError};
use std::time::Duration;

/// A mutex: mutual exclusion of threads.
#[derive(Default)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

/// The guard of a mutex: access to its data while the guard lives.
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct MutexGuard<'a, T: ?Sized>(sync::MutexGuard<'a, T>);

impl<T> Mutex<T> {
    /// An unlocked mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until no other thread holds the mutex, and locks it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Locks the mutex, unless it is locked.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(MutexGuard(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(MutexGuard(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The guarded data, if there is no other reference to the mutex.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A condition variable: threads wait for it.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// A condition variable without waiting threads.
    #[must_use]
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// Unlocks the mutex, waits for a notice, and locks it again. May return without a notice.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard(self.0.wait(guard.0).unwrap_or_else(PoisonError::into_inner))
    }

    /// [`Condvar::wait`] for at most `timeout`.
    pub fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, timeout: Duration) -> MutexGuard<'a, T> {
        let (guard, _) = self.0.wait_timeout(guard.0, timeout).unwrap_or_else(PoisonError::into_inner);
        MutexGuard(guard)
    }

    /// Wakes one thread that waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all threads that wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_panic_while_it_is_locked_leaves_no_poison() {
        let mut mutex = Mutex::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut value = mutex.lock();
            *value = 2;
            panic!("while the mutex is locked");
        }));
        assert!(panicked.is_err());
        assert_eq!(*mutex.lock(), 2);
        assert_eq!(mutex.try_lock().map(|value| *value), Some(2));
        assert_eq!(*mutex.get_mut(), 2);
    }

    #[test]
    fn a_locked_mutex_is_not_locked_again() {
        let mutex = Mutex::new(());
        let guard = mutex.lock();
        assert!(mutex.try_lock().is_none());
        drop(guard);
        assert!(mutex.try_lock().is_some());
    }

    #[test]
    fn a_thread_that_waits_is_woken_or_gives_up() {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let waits = Arc::clone(&shared);
        let waiter = std::thread::spawn(move || {
            let mut notified = waits.0.lock();
            while !*notified {
                notified = waits.1.wait(notified);
            }
        });
        let guard = shared.1.wait_for(shared.0.lock(), Duration::from_millis(1));
        assert!(!*guard);
        drop(guard);
        *shared.0.lock() = true;
        shared.1.notify_all();
        waiter.join().unwrap();
        shared.1.notify_one();
    }
}
