//! Transports: how a connection's socket is opened, and who moves its bytes.
//!
//! `dial` opens a socket to the target of a `url`, with `tls` where that is asked for; `handshake` says the first words on it.
//! `tokio_task` runs a connection as a task of a runtime, `reactor_task` has the calling threads do it. Both exist for measured
//! reasons: a hop to another thread costs a blocked caller more than its operation, and renewals must not depend on callers.

pub(crate) mod aside;
pub(crate) mod dial;
pub(crate) mod direct_link;
pub(crate) mod handshake;
pub(crate) mod link;
pub(crate) mod reactor_task;
pub(crate) mod socket;
pub(crate) mod tls;
pub(crate) mod tokio_task;
pub(crate) mod url;
