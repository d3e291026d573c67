//! Per server: a list with an entry for each server of a client.

use smallvec::SmallVec;

/// An entry for each server. Most clients have one server, and for one it allocates nothing.
pub(crate) type PerServer<T> = SmallVec<[T; 1]>;
