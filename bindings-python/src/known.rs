//! What is known of objects of the program, none of which is kept alive.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::guarded::{Guarded, Refer};

/// An object, not kept alive, and what is known of it.
struct Entry<T> {
    object: Py<PyWeakrefReference>,
    value: T,
}

impl<T: Refer> Refer for Entry<T> {
    fn refer(&self, py: Python<'_>) -> Self {
        Self { object: self.object.refer(py), value: self.value.refer(py) }
    }
}

/// Objects by address: something else may have the address of one that has ended.
pub(crate) struct Known<T> {
    entries: Guarded<Option<HashMap<usize, Entry<T>>>>,
    /// At how many of them to look for those that have ended.
    full: AtomicUsize,
}

impl<T: Refer + Send + Sync> Known<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Guarded::new(None), full: AtomicUsize::new(64) }
    }

    /// What is known of `object`.
    pub(crate) fn find(&self, object: &Bound<'_, PyAny>) -> Option<T> {
        let (py, address) = (object.py(), object.as_ptr() as usize);
        let entry = self.entries.find(py, |entries| entries.as_ref()?.get(&address))?;
        entry.object.bind(py).upgrade().is_some_and(|known| known.is(object)).then_some(entry.value)
    }

    /// Notes what is known of `object` from now on.
    pub(crate) fn note(&self, object: &Bound<'_, PyAny>, value: T) -> PyResult<()> {
        let entry = Entry { object: PyWeakrefReference::new(object)?.unbind(), value };
        let address = object.as_ptr() as usize;
        let (previous, count) = self.entries.with(|entries| {
            let entries = entries.get_or_insert_default();
            (entries.insert(address, entry), entries.len())
        });
        drop(previous);
        if count >= self.full.load(Ordering::Relaxed) {
            self.forget_ended(object.py());
        }
        Ok(())
    }

    fn forget_ended(&self, py: Python<'_>) {
        let mut ended = self.entries.get(py).unwrap_or_default();
        let count = ended.len();
        ended.retain(|_, entry| entry.object.bind(py).upgrade().is_none());
        self.full.store(64.max((count - ended.len()) * 2), Ordering::Relaxed);
        let forgotten: Vec<_> = self.entries.with(|entries| {
            // Another thread may have given an address to something else meanwhile.
            let is_ended =
                |address: &usize, entry: &mut Entry<T>| ended.get(address).is_some_and(|known| known.object.is(&entry.object));
            entries.get_or_insert_default().extract_if(is_ended).collect()
        });
        drop((forgotten, ended));
    }
}
