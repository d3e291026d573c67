//! The open bodies of one `Lock` that is used with `with` itself: which exit belongs to which entry.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::guarded::Guarded;

/// Who entered, and what it holds.
type Entry = (u64, Py<PyAny>);

#[derive(Default)]
pub(crate) struct Entries(Guarded<Vec<Entry>>);

impl Entries {
    /// Notes an entry of `caller`.
    pub(crate) fn open(&self, caller: u64, held: Py<PyAny>) {
        self.0.with(|entries| entries.push((caller, held)));
    }

    /// For the garbage collector.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(|entries| entries.iter().try_for_each(|(_, held)| visit.call(held)))
    }

    /// Takes the entry an exit of `caller` belongs to: its own latest, else the only one there is.
    pub(crate) fn close(&self, caller: u64) -> Option<Py<PyAny>> {
        self.0.with(|entries| {
            let own = entries.iter().rposition(|(entered, _)| *entered == caller);
            let only = (entries.len() == 1).then_some(0);
            own.or(only).map(|at| entries.remove(at).1)
        })
    }
}
