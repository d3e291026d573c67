//! Per server: a list with an entry for each server of a client.

use smallvec::SmallVec;

/// An entry for each server. Most clients have one server, and for one it allocates nothing.
pub(crate) type PerServer<T> = SmallVec<[T; 1]>;

/// The same entry for each of so many servers.
pub(crate) fn per_server<T: Clone>(entry: T, servers: usize) -> PerServer<T> {
    SmallVec::from_elem(entry, servers)
}
