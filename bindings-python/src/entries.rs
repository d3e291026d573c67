//! The open bodies of one `Lock` that is used with `with` itself: which exit belongs to which entry.
//!
//! Several are open at once when a hold is lost before its body ends. An exit must never release a hold that isn't its own.

use pyo3::PyClass;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::guarded::{Guarded, Refer};
use crate::hold_inner::BaseHold;

/// One entry: by whom, in which `with` statement's frame, and what it holds.
struct Entry<T> {
    caller: u64,
    frame: Option<Py<PyAny>>,
    held: Py<T>,
}

impl<T> Refer for Entry<T> {
    fn refer(&self, py: Python<'_>) -> Self {
        Self { caller: self.caller, frame: self.frame.refer(py), held: self.held.refer(py) }
    }
}

/// The entries that are open.
pub(crate) struct Entries<T>(Guarded<Vec<Entry<T>>>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Guarded::default())
    }
}

impl<T: PyClass<BaseType = BaseHold>> Entries<T> {
    /// Notes an entry of `caller`.
    pub(crate) fn open(&self, caller: u64, frame: Option<Bound<'_, PyAny>>, held: Py<T>) {
        let frame = frame.map(Bound::unbind);
        self.0.with(|entries| entries.push(Entry { caller, frame, held }));
    }

    /// For the garbage collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(|entries| {
            entries.iter().try_for_each(|entry| {
                visit.call(&entry.frame)?;
                visit.call(&entry.held)
            })
        })
    }

    /// Takes the entry that an exit of `caller` in `frame` ends.
    ///
    /// A `with` statement leaves in the frame in which it entered, also if another thread runs on with its generator: the latest
    /// entry of that frame is exactly the one. Without it (an `ExitStack`, a wrapper's own `__exit__`) it is the only one there
    /// is, or one of the caller: of several rather one that is lost, because to end that one releases nothing. `None` if it can't
    /// be known, or if there is none.
    pub(crate) fn close(&self, py: Python<'_>, caller: u64, frame: Option<&Bound<'_, PyAny>>) -> Option<Py<T>> {
        let entries = self.0.get(py);
        let is_here = |entry: &Entry<T>| frame.is_some_and(|frame| entry.frame.as_ref().is_some_and(|own| own.is(frame)));
        let chosen = match entries.iter().rposition(is_here) {
            Some(here) => Some(here),
            None if entries.len() == 1 => Some(0),
            None => among(py, caller, &entries),
        };
        let chosen = entries.into_iter().nth(chosen?)?;
        let address = chosen.held.as_ptr() as usize;
        let closed = self.0.with(|entries| {
            let at = entries.iter().position(|entry| entry.held.as_ptr() as usize == address);
            at.map(|at| entries.remove(at))
        });
        closed.map(|entry| entry.held)
    }
}

/// The entry to end if it isn't known by its frame.
fn among<T: PyClass<BaseType = BaseHold>>(py: Python<'_>, caller: u64, entries: &[Entry<T>]) -> Option<usize> {
    let has_own = entries.iter().any(|entry| entry.caller == caller);
    let mut valid = Vec::new();
    for (at, entry) in entries.iter().enumerate().rev() {
        if has_own && entry.caller != caller {
            continue;
        }
        if !entry.held.bind(py).as_super().get().is_valid() {
            return Some(at);
        }
        valid.push(at);
    }
    if valid.len() == 1 { valid.pop() } else { None }
}
