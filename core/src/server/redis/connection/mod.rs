//! A connection, decided without I/O: when to connect, what may be sent, what an answer means, and what becomes of all that when
//! the connection breaks.
//!
//! `connection` decides; `pipeline` has what was sent and not answered, `backlog` what waits for a connection, `backoff` when to try
//! again, `health` whether the server answers. `subscriber` decides how one listens, with `subscription` and `listener`. A transport
//! brings in what happens and carries out what is decided.

pub(crate) mod backlog;
pub(crate) mod backoff;
#[allow(clippy::module_inception, reason = "the room is called after what it is for")]
pub(crate) mod connection;
pub(crate) mod failure;
pub(crate) mod health;
pub(crate) mod listener;
pub(crate) mod outbox;
pub(crate) mod pipeline;
pub(crate) mod subscriber;
pub(crate) mod subscription;
