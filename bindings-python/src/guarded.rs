//! Values that threads share, locked only while code runs that has no way to the interpreter.
//!
//! Python code may stop at any point and leave the interpreter to another thread. One that then waits for a mutex of the first,
//! with the interpreter in its hands, waits without end, and so does every other thread. So the closures here are `Send`, which
//! neither `Python<'_>` nor `Bound<'_, _>` is: they can't call Python. What they take out they return, because the finalizer of
//! what is dropped is Python code, too. Clippy refuses any other mutex in this crate (`clippy.toml`).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[allow(clippy::disallowed_types, reason = "the one place")]
use locktender::host::sync::{Condvar, Mutex};
use pyo3::gc::PyTraverseError;
use pyo3::prelude::*;

/// A value behind a mutex.
#[derive(Default)]
#[allow(clippy::disallowed_types, reason = "the one place")]
pub(crate) struct Guarded<T>(Mutex<T>);

impl<T> Guarded<T> {
    #[allow(clippy::disallowed_types, reason = "the one place")]
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Does `work` with the value. Python objects that come out of it are to be returned.
    pub(crate) fn with<R: Send>(&self, work: impl FnOnce(&mut T) -> R + Send) -> R {
        work(&mut self.0.lock())
    }

    /// Puts another value in; returns the previous one.
    pub(crate) fn replace(&self, value: T) -> T {
        std::mem::replace(&mut *self.0.lock(), value)
    }

    /// Takes the value out.
    pub(crate) fn take(&self) -> T
    where
        T: Default,
    {
        self.replace(T::default())
    }

    /// The value, which nobody shares any more.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }

    /// A new reference to the value.
    pub(crate) fn get(&self, py: Python<'_>) -> T
    where
        T: Refer,
    {
        self.0.lock().refer(py)
    }

    /// A new reference to what `find` finds in the value.
    pub(crate) fn find<R: Refer>(&self, py: Python<'_>, find: impl FnOnce(&T) -> Option<&R> + Send) -> Option<R> {
        find(&self.0.lock()).map(|found| found.refer(py))
    }

    /// For the garbage collector, which runs no Python code meanwhile. A value that is locked has no garbage.
    pub(crate) fn traverse(&self, visit: impl FnOnce(&T) -> Result<(), PyTraverseError>) -> Result<(), PyTraverseError> {
        self.0.try_lock().map_or(Ok(()), |value| visit(&value))
    }
}

/// A value that threads wait for.
#[derive(Default)]
#[allow(clippy::disallowed_types, reason = "the one place")]
pub(crate) struct Awaited<T> {
    value: Guarded<T>,
    changed: Condvar,
}

impl<T: Send> Awaited<T> {
    /// As [`Guarded::with`].
    pub(crate) fn with<R: Send>(&self, work: impl FnOnce(&mut T) -> R + Send) -> R {
        self.value.with(work)
    }

    /// Has those that wait look again.
    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits until `look` gives something; `None` after `timeout`. For a thread that has let go of the interpreter.
    pub(crate) fn wait<R: Send>(&self, timeout: Duration, mut look: impl FnMut(&mut T) -> Option<R> + Send) -> Option<R> {
        let until = Instant::now() + timeout;
        let mut value = self.value.0.lock();
        loop {
            if let Some(found) = look(&mut value) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            value = self.changed.wait_for(value, left);
        }
    }
}

/// What another reference can be made of without any Python code.
pub(crate) trait Refer {
    /// Another reference.
    fn refer(&self, py: Python<'_>) -> Self;
}

impl<T> Refer for Py<T> {
    fn refer(&self, py: Python<'_>) -> Self {
        self.clone_ref(py)
    }
}

impl Refer for u64 {
    fn refer(&self, _: Python<'_>) -> Self {
        *self
    }
}

impl<T> Refer for Arc<T> {
    fn refer(&self, _: Python<'_>) -> Self {
        Self::clone(self)
    }
}

impl<T: Refer> Refer for Option<T> {
    fn refer(&self, py: Python<'_>) -> Self {
        self.as_ref().map(|value| value.refer(py))
    }
}

impl<T: Refer> Refer for Vec<T> {
    fn refer(&self, py: Python<'_>) -> Self {
        self.iter().map(|value| value.refer(py)).collect()
    }
}

impl<K: Copy + Eq + Hash, V: Refer> Refer for HashMap<K, V> {
    fn refer(&self, py: Python<'_>) -> Self {
        self.iter().map(|(key, value)| (*key, value.refer(py))).collect()
    }
}
