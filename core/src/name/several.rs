//! The keys of locks that are acquired together.

use std::sync::Arc;

use super::{Keys, Kind};

impl Keys {
    /// Several locks as one, in the order of their keys. Its own keys are those of the first, its name has all names, as they were given.
    #[must_use]
    pub fn of_several(mut parts: Vec<Self>) -> Option<Self> {
        let together: Arc<[Arc<str>]> = parts.iter().map(|part| Arc::clone(&part.name)).collect();
        parts.sort_by(|one, other| one.lock.cmp(&other.lock));
        let first = parts.first()?.clone();
        let name = together.join(", ").into();
        let of_all = |part: Self| Arc::new(Self { together: Some(Arc::clone(&together)), ..part });
        let parts = parts.into_iter().map(of_all).collect();
        Some(Self { kind: Kind::Several, name, parts, together: Some(together), ..first })
    }

    /// The locks that are acquired together, in the order of their keys; else none.
    #[must_use]
    pub fn parts(&self) -> &[Arc<Self>] {
        &self.parts
    }

    /// The keys of each lock.
    pub fn each(&self) -> impl Iterator<Item = &Self> {
        self.parts.is_empty().then_some(self).into_iter().chain(self.parts.iter().map(|part| &**part))
    }

    /// The names of all locks that are acquired together.
    pub(crate) const fn together(&self) -> Option<&Arc<[Arc<str>]>> {
        self.together.as_ref()
    }
}
